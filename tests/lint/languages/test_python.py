"""What the analysis of a Python program tells beside leaks, where it says so, and what it does with bad input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lint.languages.following import arguments_of, follow
from tests.lint.languages.test_execution import followed
from tests.work import calls_of

from runner_e2e.lint.linter import lint
from runner_e2e.lint.shell import Files, ShellOptions, ShellResult, analyse
from runner_e2e.lint.values import Confidence, Interpolation, Label, Origin, Script, Step, Taint, Value

if TYPE_CHECKING:
    from pathlib import Path

LABEL = Label(kind="confidential", name="S")
HEAD = "import os, subprocess\n"


def labelled(origin: Origin) -> Value:
    return Value.of([Taint(LABEL, Confidence.HIGH, Step(origin, 0, 0, "source"))])


def labels(value: Value) -> set[str]:
    return {taint.label.name for taint in value.taints}


def arguments(result: ShellResult) -> list[str]:
    """The text of each leaking argument, as it is written."""
    return [leak.origin.text[leak.start : leak.end] for leak in result.leaks]


# --- effects


@pytest.mark.parametrize(
    "text",
    [
        'f = open(path, "a")\nf.write("ID=" + case + "\\n")\nf.write("MODE=fast\\n")',
        'with open(path, "a") as f:\n    print(f"ID={case}", "MODE=fast", sep="\\n", file=f)',
        'from pathlib import Path\nPath(path).open("a").write("ID=%s\\nMODE=fast\\n" % case)',
        'open(path, "a").writelines([f"{k}={v}\\n" for k, v in {"ID": case, "MODE": "fast"}.items()])',
        'subprocess.run(\'echo "ID=$S" >> "$GITHUB_ENV"; echo MODE=fast >> "$GITHUB_ENV"\', shell=True)',
        'f = open(path, "a")\nprint("ID<<END", case, "END", "MODE=fast", sep="\\n", file=f)',
    ],
)
def test_environment_writes(text: str) -> None:
    head = 'path, case = os.environ["GITHUB_ENV"], os.environ["S"]\n'
    written = followed("python", HEAD + head + text).environment_writes
    assert set(written) == {"ID", "MODE"}
    assert labels(written["ID"]) == {"S"}
    assert written["MODE"].constant == "fast"


def test_outputs_and_paths() -> None:
    result = followed(
        "python",
        HEAD + 'open(os.environ["GITHUB_OUTPUT"], "a").write("id=" + os.environ["S"] + "\\nmode=fast\\n")\n'
        'open(os.environ["GITHUB_PATH"], "a").write("/opt/" + os.environ["S"] + "\\n")\n',
    )
    assert labels(result.outputs["id"]) == {"S"}
    assert result.outputs["mode"].constant == "fast"
    assert [labels(path) for path in result.paths] == [{"S"}]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ('print("case", os.environ["S"])', "log"),
        ('print("case", os.environ["S"], file=sys.stderr)', "log"),
        ('sys.stdout.write(os.environ["S"])', "log"),
        ('logging.getLogger(__name__).info("case %s", os.environ["S"])', "log"),
        ('raise RuntimeError("no " + os.environ["S"])', "log"),
        ('sys.exit("no " + os.environ["S"])', "log"),
        ('subprocess.run(["cat"], input=os.environ["S"], text=True)', "log"),
        ("print(f\"::error::no {os.environ['S']}\")", "annotation"),
        ("print(f\"::notice file=a.py::{os.environ['S']}\")", "annotation"),
        ('open(os.environ["GITHUB_STEP_SUMMARY"], "a").write(os.environ["S"])', "summary"),
    ],
)
def test_prints(text: str, target: str) -> None:
    result = followed("python", "import logging, sys\n" + HEAD + text)
    assert [printed.target for printed in result.prints] == [target]
    assert result.leaks == ()


@pytest.mark.parametrize(
    "text",
    [
        'print("case", len(os.environ["S"]))',
        'print(bool(os.environ["S"]), os.environ["S"] == "x", "x" in os.environ["S"])',
        'open("x.txt", "w").write(os.environ["S"])',
        'subprocess.run(["cat"], input=os.environ["S"], text=True, capture_output=True)',
        'subprocess.run(["cat"], input=os.environ["S"], text=True, stdout=subprocess.DEVNULL)',
        'try:\n    raise RuntimeError(os.environ["S"])\nexcept RuntimeError:\n    pass',
    ],
)
def test_what_prints_nothing(text: str) -> None:
    assert followed("python", HEAD + text).prints == ()


def test_masks_are_told() -> None:
    result = followed("python", HEAD + "print(f\"::add-mask::{os.environ['S']}\")")
    assert [labels(mask) for mask in result.masks] == [{"S"}]
    assert result.prints == ()


def test_files_outlive_the_program() -> None:
    result = followed("python", HEAD + 'os.chdir("out")\nopen("id.txt", "w").write(os.environ["S"])')
    content = result.files.read("/github/workspace/out/id.txt")
    assert content is not None
    assert labels(content) == {"S"}


# --- places


def test_the_argument_is_marked_exactly() -> None:
    text = HEAD + (
        'case = os.environ["S"]\n'
        'subprocess.run(["tool", "é", "--id", f"x-{case}"])\n'
        'subprocess.run(["tool"] + ["--id", case] + extra)\n'
        'subprocess.run(["tool", *words, case])\n'
        'words = ["tool", case]\n'
        "subprocess.run(words, check=True)\n"
        'os.execvp("tool", ["tool", case])\n'
    )
    assert arguments(followed("python", text)) == ['f"x-{case}"', "case", "*words, case", "words", "case"]


def test_columns_count_characters() -> None:
    text = HEAD + 'subprocess.run(["tööl", "日本語 🎉", os.environ["S"]])\n'
    leak = followed("python", text).leaks[0]
    span = leak.origin.span(leak.start, leak.end)
    assert text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1] == 'os.environ["S"]'


def test_line_ends_of_other_systems_keep_places() -> None:
    text = '# comment\r\nimport os\r\n\r\nos.system("tool " + os.environ["S"])\r\n'
    assert arguments(followed("python", text)) == ['"tool " + os.environ["S"]']


def test_the_way_is_told_step_by_step() -> None:
    text = HEAD + ('case = os.environ["S"]\ndef run(word):\n    subprocess.run(["tool", word])\nrun(case)\n')
    (leak,) = followed("python", text).leaks
    (taint,) = leak.taints
    assert taint.trail is not None
    steps = [(step.origin.span(step.start, step.end).line, step.note) for step in taint.trail.walk()]
    assert steps[1:] == [
        (2, "read from the environment variable S"),
        (2, "assigned to case"),
        (5, "argument of run"),
        (4, "argument of tool"),
    ]


# --- text that the runner puts in


def interpolated(text: str, mark: str) -> ShellResult:
    """Follows a program in which *mark* stands for an expression with the labelled value."""
    origin = Origin(path="step", text=text)
    holes = []
    at = text.find(mark)
    while at >= 0:
        holes.append(Interpolation(start=at, end=at + len(mark), value=labelled(origin)))
        at = text.find(mark, at + 1)
    script = Script(origin=origin, text=text, interpolations=tuple(holes))
    return analyse(script, environment={}, options=ShellOptions(language="python"))


@pytest.mark.parametrize(
    "line",
    [
        'subprocess.run(["tool", "${{ inputs.id }}"])',
        "subprocess.run(['tool', '--id=${{ inputs.id }}-x'])",
        'subprocess.run(["tool", f"{mode}-${{ inputs.id }}"])',
        'subprocess.run(["tool", """\n${{ inputs.id }}\n"""])',
        'case = r"${{ inputs.id }}"\nsubprocess.run(["tool", case])',
        "case = ${{ inputs.id }}\nsubprocess.run(['tool', case])",
        'subprocess.run(["tool", {"id": ${{ inputs.id }}}["id"]])',
        'subprocess.run(["tool", config.${{ inputs.id }}])',
    ],
)
def test_interpolations_inside_and_outside_of_strings(line: str) -> None:
    result = interpolated(f"import subprocess\nmode = 'x'\nimport config\n{line}\n", "${{ inputs.id }}")
    assert result.unanalysable == ()
    assert len(result.leaks) == 1


@pytest.mark.parametrize(
    "line",
    ["# ${{ inputs.id }}", 'case = "${{ inputs.id }}"', 'subprocess.run(["tool", str(len("${{ inputs.id }}"))])'],
)
def test_interpolations_that_reach_no_argument(line: str) -> None:
    result = interpolated(f"import subprocess\n{line}\n", "${{ inputs.id }}")
    assert result.leaks == ()
    assert result.unanalysable == ()


# --- what is not understood


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ('import any\nany.run("tool " + os.environ["S"])', Confidence.LOW),
        ('import x\nsubprocess.run(["tool", x.change(os.environ["S"])])', Confidence.LOW),
        ('import base64\nsubprocess.run(["tool", base64.b64encode(os.environ["S"].encode())])', Confidence.LOW),
        ('subprocess.run(["tool", os.environ["S"][::-1]])', Confidence.LOW),
        ('subprocess.run(["tool", str(int(os.environ["S"]) + 1)])', Confidence.LOW),
        ('import yaml\nsubprocess.run(yaml.safe_load(os.environ["S"]))', Confidence.MEDIUM),
    ],
)
def test_what_is_possible(text: str, confidence: Confidence) -> None:
    result = followed("python", HEAD + text)
    assert {max(taint.confidence for taint in leak.taints) for leak in result.leaks} == {confidence}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os\nprint(os.environ['S']", "cannot parse it: '(' was never closed"),
        ("import os\nprint os.environ['S']\n", "cannot parse it: Missing parentheses in call to 'print'"),
        ("import os\n\tprint(1)\n", "cannot parse it: unexpected indent"),
        ("import os\nx = '\0' + os.environ['S']\n", "null bytes"),
        ("import os\nx = " + "(" * 300 + "os" + ")" * 300, "too many nested parentheses"),
        ("import os\nx = " + "-" * 100_000 + "1", "nested too deeply to follow"),
        ("import os\nx = os.environ['S']" + ".a" * 5_000, "nested too deeply to follow"),
        ("x = 1\n" * 90_000, "more than 524288 characters"),
        ("import os\nexec(os.environ['S'])", "exec runs text that is not known"),
        (
            "import os\ndef f(x):\n    return f(x + 'a')\nf(os.environ['S'])",
            "the recursion is not followed to its end",
        ),
    ],
)
def test_gaps_are_reported(text: str, reason: str) -> None:
    (gap,) = followed("python", text).unanalysable
    assert reason in gap.reason


def test_a_mistake_is_reported_at_its_line() -> None:
    (gap,) = followed("python", "import os\n\nx = = 1\n").unanalysable
    assert gap.origin.span(gap.start, gap.end).line == 3


def test_without_a_label_in_reach_nothing_is_said() -> None:
    text = "x = = 1"
    script = Script(origin=Origin(path="step", text=text), text=text)
    assert analyse(script, environment={}, options=ShellOptions(language="python")).unanalysable == ()


# --- files of a repository


def repository(folder: Path, files: dict[str, str | bytes], run: str) -> list[tuple[str, str, int]]:
    """Rule, file and line of what the lint finds in a workflow that runs *run* with the id in ``ID``."""
    workflow = folder / ".github" / "workflows" / "one.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(
        "on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}\n"
        "jobs:\n  one:\n    runs-on: ubuntu-latest\n    steps:\n      - env:\n          ID: ${{ inputs.selected-id }}\n"
        f"        run: {run}\n"
    )
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = lint([workflow], current=folder).findings
    rules = ("confidential-argv", "unanalysable-script")
    return sorted((one.rule, one.span.path, one.span.line) for one in found if one.rule in rules)


def test_modules_and_packages_are_followed_to_their_lines(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "tools/main.py": "from lib import launch\nimport lib.more as more\nlaunch.go(more.CASE)\n",
        "tools/lib/__init__.py": "",
        "tools/lib/launch.py": 'import subprocess\n\ndef go(case):\n    subprocess.run(["tool", case])\n',
        "tools/lib/more.py": 'import os\nfrom . import launch\nCASE = os.environ["ID"]\n',
    }
    assert repository(tmp_path, files, "python3 tools/main.py") == [("confidential-argv", "tools/lib/launch.py", 4)]


def test_a_circle_of_imports_ends(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.py": 'import b\nimport os\n\ndef run():\n    os.system("tool " + os.environ["ID"])\n\nb.go()\n',
        "b.py": "import a\n\ndef go():\n    a.run()\n",
    }
    assert repository(tmp_path, files, "python3 a.py")[-1][:2] == ("confidential-argv", "a.py")


def test_a_module_with_a_mistake_is_reported_in_its_file(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "main.py": 'import broken, os\nos.system("tool " + os.environ["ID"])\n',
        "broken.py": "x = = 1\n",
    }
    assert repository(tmp_path, files, "python3 main.py") == [
        ("confidential-argv", "main.py", 2),
        ("unanalysable-script", "broken.py", 1),
    ]


@pytest.mark.parametrize(
    "content",
    [b"\x7fELF\x02\x01\x01\0\0\0", b"#!/usr/bin/env python3\n\xff\xfe\n", b"#!/opt/unknown\nos.environ", b"", b"#!\n"],
    ids=["binary", "not UTF-8", "another interpreter", "empty", "no interpreter"],
)
def test_a_program_that_is_no_script_is_no_mistake(tmp_path: Path, content: bytes) -> None:
    found = repository(tmp_path, {"tool.py": content}, "./tool.py --mode fast && python3 tool.py")
    assert [one for one in found if one[0] == "confidential-argv"] == []


def test_programs_that_start_one_another_end(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.py": 'import subprocess\nsubprocess.run(["bash", "b.sh"])\n',
        "b.sh": "python3 a.py\n",
    }
    (found,) = repository(tmp_path, files, "python3 a.py")
    assert found[0] == "unanalysable-script"


def test_a_script_written_before_is_followed() -> None:
    text = "cat > run.py <<'END'\nimport os\nos.system('tool ' + os.environ['S'])\nEND\npython3 run.py\n"
    origin = Origin(path="step", text=text)
    result = analyse(Script(origin=origin, text=text), environment={"S": labelled(origin)}, files=Files())
    assert [text.count("\n", 0, leak.start) + 1 for leak in result.leaks] == [5]


# --- bounds

WORDS = st.sampled_from(
    [
        *("os", "subprocess", "x", "y", "f", "run", "environ", "S", "'tool'", "'S'", "1", "None", "self", "print"),
        *("=", "+", ".", ",", "(", ")", "[", "]", "{", "}", ":", "*", "**", "%", "in", "not", "if", "else", "for"),
        *("while", "def", "class", "return", "yield", "lambda", "try", "except", "finally", "with", "as", "import"),
        *("from", "global", "del", "await", "async", "match", "case", "\n", "\n    ", "\n        ", " ", "f'{x}'"),
    ]
)


@given(st.lists(WORDS, max_size=40).map(" ".join))
@settings(max_examples=150, deadline=None)
def test_any_words_are_survived(text: str) -> None:
    followed("python", HEAD + text)


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_is_survived(text: str) -> None:
    followed("python", text)


EXPRESSIONS = st.recursive(
    st.sampled_from(["os.environ['S']", "x", "1", "'a'", "None", "[]", "{}", "os.environ", "subprocess", "print"]),
    lambda inner: st.one_of(
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({}).{}".format, inner, st.sampled_from(["a", "get", "append", "split", "run", "items", "format"])),
        st.builds("({})({}, k={})".format, inner, inner, inner),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds(
            "(({}) {} ({}))".format, inner, st.sampled_from(["+", "%", "*", "/", "|", "and", "or", "in", "=="]), inner
        ),
        st.builds("[y for y in ({}) if ({})]".format, inner, inner),
        st.builds("(lambda *a, **k: {})".format, inner),
        st.builds("(({}) if ({}) else ({}))".format, inner, inner, inner),
        st.builds("f'{{{}!r:>{{1}}}}'".format, st.sampled_from(["x", "os", "1"])),
        st.builds("str({})".format, inner),
        st.builds("subprocess.run({}, shell={}, env={})".format, inner, inner, inner),
    ),
    max_leaves=12,
)


@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
@settings(max_examples=200, deadline=None)
def test_any_expressions_are_survived(first: str, second: str, third: str) -> None:
    text = (
        f"{HEAD}x = {first}\nfor i in ({second}):\n    x = [x, i]\n    if i: break\nelse:\n    x += ({third})\n"
        f"try:\n    del x[{third}]\n    x[{second}] = {first}\nexcept Exception as e:\n    raise\nprint(x)\n"
    )
    assert all(gap.reason == "too many steps to follow" for gap in followed("python", text).unanalysable)


@pytest.mark.parametrize(
    "line",
    [
        "x{n} = os.environ['S'] + str({n})\n",
        "if x > {n}:\n    x = os.environ['S']\nelse:\n    x = {n}\n",
        "try:\n    x{n} = f({n})\nexcept OSError:\n    pass\n",
        "words.append('{n}')\n",
        "table['{n}'] = os.environ['S']\n",
        "def g{n}(a):\n    return g{m}(a) if {n} else a\n",
        "subprocess.run(['tool', '{n}'])\n",
    ],
)
def test_work_grows_with_the_program(line: str) -> None:
    head = HEAD + "x = 0\nwords = []\ntable = {}\ndef f(a):\n    return a\ng0 = f\n"

    def work_on(lines: int) -> int:
        text = head + "".join(line.format(n=n, m=n - 1) for n in range(1, 1 + lines))
        return calls_of(lambda: followed("python", text))

    work_on(1)  # what is loaded for the first program counts to none
    assert work_on(1_200) < 10 * work_on(150)


def test_calls_that_multiply_are_bounded() -> None:
    text = HEAD + "def f0(a):\n    return a\n"
    text += "".join(f"def f{n}(a):\n    return f{n - 1}(a) + f{n - 1}(a)\n" for n in range(1, 20))
    began = time.process_time()
    result = followed("python", text + "f19(os.environ['S'])\n")
    assert time.process_time() - began < 10
    assert [gap.reason for gap in result.unanalysable] == ["too many steps to follow"]


# --- libraries that are not followed


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("import sh\nsh.tool('--id', case)", Confidence.MEDIUM),
        ("from plumbum import local\nlocal['tool']('--id', case)", Confidence.MEDIUM),
        ("import invoke\ninvoke.run('tool ' + case)", Confidence.MEDIUM),
        ("import docker\ndocker.from_env().containers.run('image', command=['tool', case])", Confidence.MEDIUM),
        ("import paramiko\nc = paramiko.SSHClient()\nc.exec_command('tool ' + case)", Confidence.MEDIUM),
        ("import anyio\nasync def go():\n    await anyio.run_process(['tool', case])\nanyio.run(go)", Confidence.HIGH),
        ("from environs import Env\nsubprocess.run(['tool', Env().str('S')])", Confidence.MEDIUM),
        ("from decouple import config\nsubprocess.run(['tool', config('S')])", Confidence.MEDIUM),
        ("import any\nsubprocess.run(['tool', any.read('S')])", Confidence.LOW),
        ("import any\nsubprocess.run(['tool', any.read(os.environ).s])", Confidence.LOW),
        ("import any\nbox = any.Box()\nbox.put(case)\nsubprocess.run(['tool', box.take()])", Confidence.LOW),
        (
            "import typer\napp = typer.Typer()\n@app.command()\ndef main(case): subprocess.run(['tool', case])\napp()",
            Confidence.LOW,
        ),
        (
            "from pydantic_settings import BaseSettings as B\nclass C(B): s: str\nsubprocess.run(['tool', C().s])",
            Confidence.HIGH,
        ),
    ],
)
def test_libraries_that_start_programs_or_hold_values(text: str, confidence: Confidence) -> None:
    result = followed("python", f'{HEAD}case = os.environ["S"]\n{text}')
    assert [max(taint.confidence for taint in leak.taints) for leak in result.leaks] == [confidence]


@pytest.mark.parametrize(
    "text",
    [
        "import docker\ndocker.from_env().containers.run('image', environment={'CASE': case})",
        "import sh\nsh.tool('--id', _env={'CASE': case})",
        "import any\nbox = any.Box()\nbox.put('x')\nsubprocess.run(['tool', box.take()])",
        "from environs import Env\nsubprocess.run(['tool', Env().str('HOME')])",
    ],
)
def test_libraries_that_are_used_well(text: str) -> None:
    assert followed("python", f'{HEAD}case = os.environ["S"]\n{text}').leaks == ()


@pytest.mark.parametrize("end", ["sys.exit(0)", "raise SystemExit", "os.execvp('true', ['true'])", "stop()"])
def test_what_is_written_before_the_program_ends_stays_written(end: str) -> None:
    text = f"""
import os, sys
def stop():
    sys.exit(1)
if os.path.exists("x"):
    with open(os.environ["GITHUB_ENV"], "a") as file:
        file.write("CASE=" + os.environ["ID"])
    {end}
print("no")
"""
    assert labels(follow("python", text).environment_writes["CASE"]) == {"inputs.id"}


def test_a_function_given_to_a_library_is_called_before_the_program_ends() -> None:
    text = """
import os, subprocess, sys, typer
app = typer.Typer()
@app.command()
def main():
    subprocess.run(["tool", os.environ["ID"]])
sys.exit(app())
"""
    assert arguments_of(follow("python", text)) == [("tool", 'os.environ["ID"]')]
