"""JavaScript beside what execution proves: places, ways, outputs, the log, what is only possible, and bounds."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lint.languages.following import TIME, arguments_of, confidence, follow, labelled, labels, mutations
from tests.lint.languages.test_execution import followed

from runner_e2e.lint.values import Confidence, Interpolation, Value

IMPORTS = """\
const { spawnSync, execSync, spawn } = require("child_process");
const core = require("@actions/core");
const exec = require("@actions/exec");
"""


def leaks(text: str, **given: object) -> list[tuple[str, str]]:
    return arguments_of(follow("javascript", IMPORTS + text, **given))  # type: ignore[arg-type]


# --- places


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('spawnSync("tool", ["--id", process.env.ID]);', "process.env.ID"),
        ('spawnSync("tool", ["a", `--id=${process.env.ID}`, "b"]);', "`--id=${process.env.ID}`"),
        ('const all = ["a", process.env.ID];\nspawnSync("tool", all);', "all"),
        ('spawnSync("tool", [...[process.env.ID]]);', "...[process.env.ID]"),
        ('spawnSync("é😀", ["日本", /* ü */ process.env.ID]);', "process.env.ID"),
        ('exec.exec("tool", ["x", process.env.ID]);', "process.env.ID"),
        ("exec.exec(`tool ${process.env.ID}`);", "`tool ${process.env.ID}`"),
        ('execSync("tool " + process.env.ID);', '"tool " + process.env.ID'),
        ("execSync('tool \"$ID\"');", '"$ID"'),
        ('spawnSync("bash", ["-c", "tool $ID x"]);', "$ID"),
    ],
)
def test_the_argument_itself_is_marked(text: str, expected: str) -> None:
    assert [argument for _, argument in leaks(text)] == [expected]


def test_the_way_leads_from_the_source_to_the_argument() -> None:
    text = IMPORTS + 'const id = process.env.ID;\nconst cell = {};\ncell.id = id;\nspawnSync("tool", [cell.id]);'
    (leak,) = follow("javascript", text).leaks
    (taint,) = leak.taints
    assert taint.trail is not None
    steps = [(step.origin.span(step.start, step.end).line, step.note) for step in taint.trail.walk()]
    assert steps == [
        (1, "source"),
        (4, "assigned to id"),
        (6, "assigned to a property id"),
        (7, "argument of tool"),
    ]


def test_a_leak_in_a_module_stands_in_its_file() -> None:
    text = 'require("./lib/start").run(process.env.ID);'
    scripts = {
        "/github/workspace/lib/start.js": 'exports.run = (x) => require("child_process").spawnSync("tool", [x]);'
    }
    (leak,) = follow("javascript", text, scripts=scripts).leaks
    assert leak.origin.path == "/github/workspace/lib/start.js"
    assert leak.origin.text[leak.start : leak.end] == "x"


@pytest.mark.parametrize(
    ("specifier", "path"),
    [
        ("./a", "/github/workspace/a.js"),
        ("./a.js", "/github/workspace/a.js"),
        ("./a.cjs", "/github/workspace/a.cjs"),
        ("./a", "/github/workspace/a/index.js"),
        ("../workspace/a", "/github/workspace/a.js"),
        ("/github/workspace/a", "/github/workspace/a.js"),
    ],
)
def test_modules_are_found_as_node_finds_them(specifier: str, path: str) -> None:
    text = f'require("{specifier}")(process.env.ID);'
    scripts = {path: 'module.exports = (x) => require("child_process").spawnSync("tool", [x]);'}
    assert arguments_of(follow("javascript", text, scripts=scripts)) == [("tool", "x")]


def test_modules_that_need_one_another_end() -> None:
    scripts = {
        "/github/workspace/a.js": 'exports.x = 1; const b = require("./b"); b.go(process.env.ID);',
        "/github/workspace/b.js": 'require("./a"); exports.go = (x) => require("child_process").spawn("tool", [x]);',
    }
    assert follow("javascript", 'require("./a")', scripts=scripts).leaks


def test_json_of_the_repository_is_read() -> None:
    scripts = {"/github/workspace/cells.json": '{"tool": "runner", "options": ["--id"]}'}
    text = IMPORTS + 'const c = require("./cells.json");\nspawnSync(c.tool, [...c.options, process.env.ID]);'
    assert arguments_of(follow("javascript", text, scripts=scripts)) == [("runner", "process.env.ID")]


# --- expressions of the workflow in the text


@pytest.mark.parametrize(
    "text",
    [
        "const id = '@@@'; require('child_process').spawnSync('tool', [id]);",
        "require('child_process').spawnSync('tool', [`--id=@@@`]);",
        'require("child_process").spawnSync("tool", [@@@]);',
        "require('child_process').execSync('tool @@@');",
    ],
)
def test_a_labelled_expression(text: str) -> None:
    at = text.index("@@@")
    hole = Interpolation(start=at, end=at + 3, value=labelled())
    assert follow("javascript", text, interpolations=(hole,)).leaks


def test_a_known_expression_becomes_part_of_the_program() -> None:
    text = "if (@@@ === 'push') require('child_process').spawnSync('tool', [process.env.ID]);"
    for event, expected in (("'push'", 1), ("'schedule'", 0)):
        hole = Interpolation(start=4, end=7, value=Value.literal(event))
        assert len(follow("javascript", text, interpolations=(hole,)).leaks) == expected


# --- what else it tells


def test_outputs_variables_states_and_paths() -> None:
    result = follow(
        "javascript",
        IMPORTS
        + """
core.setOutput("id", process.env.ID);
core.setOutput("mode", "fast");
core.setOutput("count", 3);
core.setOutput("cell", { mode: "fast" });
core.exportVariable("CELL", process.env.ID);
core.saveState("cell", process.env.ID);
core.addPath("/opt/tool");
require("fs").appendFileSync(process.env.GITHUB_OUTPUT, `other=${process.env.ID}\\n`);
""",
    )
    assert {name: value.constant for name, value in result.outputs.items() if not value.taints} == {
        "mode": "fast",
        "count": "3",
        "cell": '{"mode":"fast"}',
    }
    assert {name for name, value in result.outputs.items() if value.taints} == {"id", "other"}
    assert labels(result.environment_writes["CELL"]) == {"inputs.id"}
    assert labels(result.states["cell"]) == {"inputs.id"}
    assert [path.constant for path in result.paths] == ["/opt/tool"]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("console.log(process.env.ID)", "log"),
        ("console.error('x', { id: process.env.ID })", "log"),
        ("process.stdout.write(process.env.ID)", "log"),
        ("core.info(process.env.ID)", "log"),
        ("core.notice(`cell ${process.env.ID}`)", "annotation"),
        ("core.setFailed(new Error(process.env.ID).message)", "annotation"),
        ("core.startGroup(process.env.ID)", "log"),
        ("core.summary.addHeading('x').addRaw(process.env.ID).write()", "summary"),
        ("core.summary.addTable([['id', process.env.ID]])", "summary"),
        ("exec.exec('tool', [process.env.ID])", "log"),
        ("execSync('cat', { input: process.env.ID, stdio: ['pipe', 'inherit'] })", "log"),
    ],
)
def test_what_is_printed(text: str, target: str) -> None:
    assert {one.target for one in follow("javascript", IMPORTS + text).prints} == {target}


@pytest.mark.parametrize(
    "text",
    [
        "console.log('x')",
        "exec.exec('tool', [process.env.ID], { silent: true })",
        "execSync('cat', { input: process.env.ID })",
        "const { stdout } = spawnSync('printenv', ['ID']);",
        "console.log(process.env.ID.length)",
    ],
)
def test_what_is_not_printed(text: str) -> None:
    assert follow("javascript", IMPORTS + text).prints == ()


def test_a_mask() -> None:
    result = follow("javascript", IMPORTS + "core.setSecret(process.env.ID); core.info(process.env.ID);")
    assert [labels(mask) for mask in result.masks] == [{"inputs.id"}]


# --- only possible


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ('require("some-package").run(process.env.ID);', "process.env.ID"),
        ('const { run } = require("some-package");\nrun("x", { cell: process.env.ID });', "{ cell: process.env.ID }"),
        ("somewhere(process.env.ID);", "process.env.ID"),
        ("require(process.env.MODULE)(process.env.ID);", "process.env.ID"),
    ],
)
def test_what_is_not_known_may_start_a_process(text: str, argument: str) -> None:
    result = follow("javascript", text)
    assert [(confidence(leak), leak.origin.text[leak.start : leak.end]) for leak in result.leaks] == [
        (Confidence.LOW, argument)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "fetch('https://example.org', { body: process.env.ID });",
        'require("axios").post("https://example.org", process.env.ID);',
        'require("lodash").merge({}, { id: process.env.ID });',
        "new Date(process.env.ID).getTime();",
        "process.env.ID.codePointAt(0);",
        "[process.env.ID].includes('x');",
    ],
)
def test_what_starts_no_process(text: str) -> None:
    assert follow("javascript", text).leaks == ()


def test_functions_that_something_unknown_is_given_are_called() -> None:
    text = IMPORTS + 'require("some-framework").onReady(() => spawnSync("tool", [process.env.ID]));'
    assert arguments_of(follow("javascript", text)) == [("tool", "process.env.ID")]


def test_an_encoding_is_possible_at_most() -> None:
    (leak,) = follow(
        "javascript", IMPORTS + 'spawnSync("tool", [Buffer.from(process.env.ID).toString("base64")]);'
    ).leaks
    assert confidence(leak) == Confidence.LOW


def test_a_bundle_is_possible_at_most_and_said_so() -> None:
    started = time.process_time()
    result = follow("javascript", "!function(){" + "a(b,c);" * 100_000 + "}()")
    assert time.process_time() - started < TIME
    assert result.leaks == ()
    (gap,) = result.unanalysable
    assert "size" in gap.reason
    assert {taint.confidence for taint in gap.taints} == {Confidence.LOW}


def test_recursion_ends() -> None:
    text = IMPORTS + "const f = (x, n) => f(x + 'a', n + 1);\nf(process.env.ID, 0);"
    result = follow("javascript", text)
    assert any("recursion" in gap.reason for gap in result.unanalysable)


def test_nothing_in_reach_needs_no_look() -> None:
    assert follow("javascript", "%%%", environment={"ID": Value.literal("x")}).unanalysable == ()


# --- actions/github-script


EVENT = {"/github/event.json": Value.literal('{"inputs": {"mode": "fast", "id": "') + labelled() + Value.literal('"}}')}


@pytest.mark.parametrize(
    "text",
    [
        "await exec.exec('tool', [process.env.ID]);",
        "const { id } = context.payload.inputs;\nawait exec.exec('tool', [id]);",
        "const cp = require('child_process');\ncp.spawnSync('tool', [context.payload.inputs['id']]);",
        "const run = require('./run.js');\nawait run({ exec, core }, process.env.ID);",
        "const { run } = await import('./run.mjs');\nawait run(process.env.ID);",
        "for (const [k, v] of Object.entries(context.payload.inputs)) {\n  await exec.exec(`tool --${k}=${v}`);\n}",
        "const id = core.getInput('id');\nawait exec.exec('tool', [id]);",
    ],
)
def test_github_script(text: str) -> None:
    scripts = {
        "/github/workspace/run.js": "module.exports = async ({ exec }, id) => { await exec.exec('tool', [id]); };",
        "/github/workspace/run.mjs": (
            "import { spawnSync } from 'child_process';\nexport const run = (id) => spawnSync('tool', [id]);"
        ),
    }
    given = {"INPUT_ID": labelled()}
    result = follow("github-script", text, scripts=scripts, contents=EVENT, environment=given)
    assert [command for command, _ in arguments_of(result)] == ["tool"]


@pytest.mark.parametrize(
    "text",
    [
        "await github.rest.issues.createComment({ ...context.repo, body: process.env.ID });",
        "const { mode } = context.payload.inputs;\nawait exec.exec('tool', [mode]);",
        "await io.mkdirP('out');",
        "await exec.exec('tool', [String(context.runId)], { env: { ...process.env, CELL: process.env.ID } });",
    ],
)
def test_github_script_without_a_leak(text: str) -> None:
    assert follow("github-script", text, contents=EVENT).leaks == ()


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("return 'x'", "", '"x"'),
        ("return 'x'", "string", "x"),
        ("return { a: [1, true, null] }", "json", '{"a":[1,true,null]}'),
        ("if (process.env.MODE) return 'a';\nreturn 'a';", "string", "a"),
    ],
)
def test_the_result_of_github_script(text: str, encoding: str, expected: str) -> None:
    given = {"INPUT_RESULT-ENCODING": Value.literal(encoding)}
    assert follow("github-script", text, environment=given).outputs["result"].constant == expected


def test_a_labelled_result_of_github_script() -> None:
    assert labels(follow("github-script", "return process.env.ID;").outputs["result"]) == {"inputs.id"}
    assert follow("github-script", "core.setOutput('x', '1');").outputs.keys() == {"x"}


# --- bounds


SNIPPETS = [
    "const id = process.env.ID; for (const x of [id, 'b']) { require('child_process').spawnSync('tool', [x]); }",
    "class A { #x = 1; get y() { return this.#x; } static z = () => 1; }\nlabel: while (a) { if (b) continue label; }",
    "try { await f?.(...g, { ...h, [i]: `a${j}b` }); } catch ({ message }) { throw message; } finally { k ??= 1; }",
    "switch (a) { case 1: b(); default: c(); }\nexport default async function* m({ n = 1, ...o }, [p, , q] = []) {}",
    "const { a: { b = 1 } = {} } = c, d = /e/g, f = new (class extends g {})(), h = await $`i ${j}`;",
]


@pytest.mark.parametrize("seed", range(6))
def test_no_text_breaks_it(seed: int) -> None:
    for text in mutations(SNIPPETS, seed, 40):
        result = follow("javascript", text)
        assert all(0 <= leak.start <= leak.end <= len(leak.origin.text) for leak in result.leaks)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("(){}[]`'\"$;,.=>+-*/!?:&|abx1 \n\U000f0000é"), max_size=80))
def test_no_signs_break_it(text: str) -> None:
    follow("javascript", "process.env.ID;" + text)


@pytest.mark.parametrize(
    "text",
    [
        "let s = '';" + "s += process.env.ID;\n" * 2_000,
        "if (process.env.A) { x = process.env.ID;" * 800 + "}" * 800,
        "try { x();" * 800 + "} catch (e) { y(); }" * 800,
        "(" * 3_000 + "1" + ")" * 3_000,
        "x = a && " * 1_500 + "b",
        "for (const x of y) " * 800 + "z();",
        "".join(f"function f{n}() {{ f{n + 1}(); f{n + 1}(); }}\n" for n in range(800)) + "f0();",
        "const o = {};" + "".join(f"o.k{n} = process.env.ID;" for n in range(2_000)) + "JSON.stringify(o);",
        "const a = [];" + "while (b) { a.push(process.env.ID); }" * 300,
        "`${" * 1_000,
    ],
    ids=range(10),
)
def test_large_programs_end_in_time(text: str) -> None:
    started = time.process_time()
    follow("javascript", text)
    assert time.process_time() - started < TIME


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("Bun.spawn(['tool', Bun.env.S]);", ["Bun.env.S"]),
        ("import process from 'node:process'; Bun.spawn(['tool', process.env.S]);", ["process.env.S"]),
        ("import { env } from 'node:process'; Bun.spawn(['tool', env.S]);", ["env.S"]),
        ("const { env, argv } = require('process'); Bun.spawn(['tool', env.S]);", ["env.S"]),
        (
            "const { Buffer: B } = require('node:buffer'); Bun.spawn(['t', `${B.from(process.env.S)}`]);",
            ["`${B.from(process.env.S)}`"],
        ),
        (
            "const { setTimeout: later } = require('timers'); later(() => Bun.spawn(['t', process.env.S]), 1);",
            ["process.env.S"],
        ),
        ("Bun.spawnSync({ cmd: ['tool', process.env.S] });", ["{ cmd: ['tool', process.env.S] }"]),
        ("Bun.spawnSync(['tool'], { env: { CASE: process.env.S } });", []),
        ("await Bun.$`tool ${process.env.S}`;", ["${process.env.S}"]),
        ("import { $ } from 'bun';\nawait $`tool ${process.env.S}`;", ["${process.env.S}"]),
        (
            "await new Deno.Command('tool', { args: [Deno.env.get('S')] }).output();",
            ["{ args: [Deno.env.get('S')] }"],
        ),
        ("new Deno.Command('tool', { env: { CASE: Deno.env.get('S') } }).spawn();", []),
        ("import { x } from 'tinyexec';\nawait x('tool', [process.env.S]);", ["process.env.S"]),
        ("import { execa } from 'execa';\nawait execa`tool ${process.env.S}`;", ["${process.env.S}"]),  # from 9.0 on
        (
            "const { execa } = await import('execa');\nexeca({ reject: false })`tool ${process.env.S}`;",
            ["${process.env.S}"],
        ),
        ("import { execa } from 'execa';\nawait execa`tool ${process.env.S.length}`;", []),
        ("import spawn from 'nano-spawn';\nawait spawn('tool', [process.env.S]);", ["process.env.S"]),
    ],
)
def test_other_runtimes_and_libraries(text: str, leaks: list[str]) -> None:
    found = followed("javascript", text).leaks
    assert [leak.origin.text[leak.start : leak.end] for leak in found] == leaks
    assert all(max(taint.confidence for taint in leak.taints) == Confidence.HIGH for leak in found)


def test_the_whole_environment_in_unknown_hands_may_come_back() -> None:
    text = "import { z } from 'zod';\nconst env = z.object({}).parse(process.env);\n"
    text += "require('child_process').spawnSync('tool', [env.S]);"
    (leak,) = followed("javascript", text).leaks
    assert {taint.confidence for taint in leak.taints} == {Confidence.LOW}


def test_what_a_runtime_has_is_there_in_every_module() -> None:
    scripts = {"/github/workspace/other.js": "Bun.spawn(['tool', Bun.env.ID]);"}
    assert arguments_of(follow("javascript", "require('./other');", scripts=scripts)) == [("tool", "Bun.env.ID")]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        # A function that was made in a block reads and writes its variables when the block has ended.
        (
            (
                "let f = () => ''; if (core.getInput('a')) { let x = ''; x = process.env.ID; f = () => x; }\n"
                "spawnSync('tool', [f()]);"
            ),
            ["f()"],
        ),
        (
            (
                "let set, get; { let x = ''; set = (y) => { x = y; }; get = () => x; }\n"
                "if (core.getInput('a')) { set(process.env.ID); }\nspawnSync('tool', [get()]);"
            ),
            ["get()"],
        ),
        # What a round wrote outside of the program is there in the next one, though no variable has changed.
        (
            (
                "const fs = require('fs'); for (const one of core.getMultilineInput('a')) {\n"
                "if (fs.existsSync('f')) { spawnSync('tool', [fs.readFileSync('f', 'utf8')]); }\n"
                "fs.writeFileSync('f', process.env.ID); }"
            ),
            ["fs.readFileSync('f', 'utf8')"],
        ),
        # A variable of a block that has ended is another one the next time.
        (
            "for (const one of core.getMultilineInput('a')) { let x = ''; spawnSync('t', [x]); x = process.env.ID; }",
            [],
        ),
    ],
)
def test_variables_live_as_long_as_something_reaches_them(text: str, arguments: list[str]) -> None:
    assert [argument for _, argument in leaks(text)] == arguments
