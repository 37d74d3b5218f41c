"""Where the program of an interpreter is: on its command line, in a file, a module, or its input."""

from __future__ import annotations

import shlex

import pytest

from runner_e2e.lint.languages import ANALYSERS, language_of
from runner_e2e.lint.shell import Files, ShellOptions, ShellResult, analyse
from runner_e2e.lint.shell.interpreters import command_line
from runner_e2e.lint.shell.state import Field
from runner_e2e.lint.values import Confidence, Label, Origin, Script, Taint, Value

LABELLED = Value.of([Taint(Label(kind="confidential", name="S"), Confidence.HIGH)])
RUN = "import os\nos.system('tool ' + os.environ['S'])\n"


def read(command: str) -> tuple[str, str | None, list[str], str] | None:
    """Kind, program, arguments and options for a command."""
    name, *words = shlex.split(command)
    language = language_of(name)
    assert language is not None
    line = command_line(language, tuple(Field(Value.literal(word)) for word in words))
    if line is None:
        return None
    program = line.program.value.constant if line.program is not None else None
    return line.kind, program, [one.value.constant or "" for one in line.arguments], "".join(sorted(line.flags))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python3 -c 'x = 1' a b", ("text", "x = 1", ["a", "b"], "")),
        ("python3 -Iuc 'x = 1'", ("text", "x = 1", [], "Iu")),
        ("python3 -W error -X dev -u run.py --x", ("file", "run.py", ["--x"], "u")),
        ("python3 -m http.server 80", ("module", "http.server", ["80"], "")),
        ("python3 -Im tool", ("module", "tool", [], "I")),
        ("python3 - a", ("input", None, ["a"], "")),
        ("python3", ("input", None, [], "")),
        ("python3 -- run.py", ("file", "run.py", [], "")),
        ("/usr/bin/python3.12 run.py", ("file", "run.py", [], "")),
        ("pypy3 run.py", ("file", "run.py", [], "")),
        ("node -e 'x()' a", ("text", "x()", ["a"], "")),
        ("node -r ./setup --eval 'x()'", ("text", "x()", [], "")),
        ("node -p 1", ("text", "1", [], "p")),
        ("node --print 1", ("text", "1", [], "p")),
        ("node -pe 1", ("text", "1", [], "p")),
        ("node --input-type=module -e 'x()'", ("text", "x()", [], "")),
        ("node run.mjs --x", ("file", "run.mjs", ["--x"], "")),
        ("nodejs run.js", ("file", "run.js", [], "")),
        ("deno run --allow-all run.ts a", ("file", "run.ts", ["a"], "")),
        ("bun run.ts", ("file", "run.ts", [], "")),
        ("perl -e 'print 1' a", ("text", "print 1", ["a"], "")),
        ("perl -lane 'print' f", ("text", "print", ["f"], "aln")),
        ("perl -i.bak -pe 's/a/b/' f", ("text", "s/a/b/", ["f"], "ip")),
        ("perl -Mstrict -we 'x'", ("text", "x", [], "w")),
        ("perl -e 'a;' -e 'b;' f", ("text", "a;\nb;", ["f"], "")),
        ("perl run.pl a", ("file", "run.pl", ["a"], "")),
        ("ruby -ne 'puts $_' f", ("text", "puts $_", ["f"], "n")),
        ("ruby -rjson -e 'x'", ("text", "x", [], "")),
        ("ruby run.rb", ("file", "run.rb", [], "")),
        ("pwsh -NoProfile -Command tool $env:S", ("text", "tool $env:S", [], "")),
        ("pwsh -File run.ps1 a", ("file", "run.ps1", ["a"], "")),
        ("pwsh run.ps1", ("file", "run.ps1", [], "")),
        ("cmd /c 'tool %S%'", ("text", "tool %S%", [], "")),
    ],
)
def test_command_lines(command: str, expected: tuple[str, str | None, list[str], str]) -> None:
    found = read(command)
    assert found is not None
    # Options that take a value leave their letter behind; what they are given is not an argument.
    assert (*found[:3], "".join(letter for letter in found[3] if letter not in "rM")) == expected


def test_names_of_interpreters() -> None:
    assert [
        language_of(name) for name in ("python3.12", "/opt/bin/node", "perl5.36", "pwsh.exe", "ruby", "PYTHON.EXE")
    ] == [*("python", "javascript", "perl", "powershell", "ruby", "python")]
    assert [language_of(name) for name in ("pythonic", "php", "bash", "", "node-gyp")] == [None] * 5
    assert {"python", "perl", "ruby", "javascript", "powershell", "cmd"} <= ANALYSERS.keys()


def follow(text: str, files: dict[str, str] | None = None) -> ShellResult:
    def find(path: str) -> Script | None:
        content = (files or {}).get(path.removeprefix("/github/workspace/"))
        origin = Origin(path=path, text=content) if content is not None else None
        return Script(origin=origin, text=origin.text) if origin is not None else None

    return analyse(
        Script(origin=Origin(path="step", text=text), text=text),
        environment={"S": LABELLED},
        files=Files(find_script=find),
        options=ShellOptions(),
    )


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("python3 run.py", "/github/workspace/run.py"),
        ("cd tools && python3 ../run.py", "/github/workspace/run.py"),
        ("python3 < run.py", "step"),
        ("cat run.py | python3 -", "step"),
        ("python3 -m run", "run.py"),
        ("python3 -m pack", "pack/__main__.py"),
        ("PYTHONPATH=lib python3 -m inner", "lib/inner.py"),
        ("./tool", "/github/workspace/tool"),
        ("env X=1 ./tool", "/github/workspace/tool"),
        ("sudo -E nice ./tool --x", "/github/workspace/tool"),
        ("uv run run.py", "/github/workspace/run.py"),
        ("uv run --with x python run.py", "/github/workspace/run.py"),
        ("poetry run python3 run.py", "/github/workspace/run.py"),
    ],
)
def test_programs_are_found(command: str, path: str) -> None:
    files = {
        "run.py": RUN,
        "pack/__main__.py": RUN,
        "lib/inner.py": RUN,
        "tool": f"#!/usr/bin/env -S python3 -I\n{RUN}",
    }
    leaks = follow(command, files).leaks
    assert [leak.origin.path.removeprefix("/github/workspace/") for leak in leaks] == [
        path.removeprefix("/github/workspace/")
    ]


def test_a_file_that_is_not_there_is_an_unknown_program() -> None:
    result = follow('python3 nothing.py && ./nothing "$S"')
    assert [leak.command for leak in result.leaks] == ["nothing"]
    assert result.unanalysable == ()


def test_a_program_whose_text_is_not_known_may_print_its_environment() -> None:
    assert follow('python3 -c "$(curl https://example.org)"').leaks == ()
    assert follow('python3 -c "$X" "$S"').leaks[0].command == "python3"
