"""The parser: agrees with ``bash -n``, keeps places, runs what stands before a mistake."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.lint.shell.test_execution import SNIPPETS

from runner_e2e.lint.shell.ir import Assignment, Inserted, Parameter, Simple
from runner_e2e.lint.shell.parser import parse
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import Hole, Interpolation, Label, Origin, Script, Taint, Value

if TYPE_CHECKING:
    from tests.lint.shell.execution import Snippet

MISTAKES = (
    "if true",
    "x=(1",
    "f() {",
    "echo 'a",
    'echo "a',
    "cat <(",
    "a | | b",
    "done",
    "case x in",
    "[[ a",
    "(a",
    "$(a",
    "&& a",
    "for",
    "a ;; b",
)
SOUND = (
    "cmd >f <<< x",
    "cat <<E | tee f\na\nE",
    "case a in a) b ;& c) d ;;& *) e ;; esac",
    "a=([x]=1 [y]=2)",
    "coproc name { a; }",
    "for ((;;)); do break; done",
    "[[ a =~ (b|c) && ( d || ! e ) ]]",
    "x=$(case a in a) b;; esac)",
    "cat <<A <<B\na\nA\nb\nB",
    "echo ${x:-${y:-'}'}}",
    "$((1 + (2)))",
    "! (a)",
    "if ! { a; }; then b; fi",
    "f () ( a )",
    "echo a#b # c",
    "time -p a | b",
    "{ a; } 2>&1 | b &",
    "echo $'\\'' $\"a\"",
    "shopt -s extglob; echo !(a|b)",
)


def error_of(text: str, *, bash: bool = True) -> str | None:
    _, error = parse(Source(Origin(path="x.sh", text=text), text), bash=bash)
    return None if error is None else error.message


def accepted_by_bash(text: str) -> bool:
    done = subprocess.run(["bash", "-O", "extglob", "-n"], input=text, text=True, capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("text", [*MISTAKES, *SOUND])
def test_agrees_with_bash(text: str) -> None:
    assert (error_of(text) is None) == accepted_by_bash(text)


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_mistakes(text: str) -> None:
    assert error_of(text)


@pytest.mark.parametrize("snippet", [one for one in SNIPPETS if one.shell == "bash"], ids=lambda one: one.name)
def test_every_snippet_is_read(snippet: Snippet) -> None:
    assert error_of(snippet.text) is None


def test_what_stands_before_a_mistake_runs() -> None:
    text = "a\nb; c\nif\n"
    program, error = parse(Source(Origin(path="x.sh", text=text), text), bash=True)
    assert [text[one.start : one.end] for one in program.commands] == ["a", "b", "c"]
    assert error is not None
    assert error.offset >= text.index("if")


def test_a_line_with_a_mistake_does_not_run_at_all() -> None:
    text = "a\nb; (\n"
    program, error = parse(Source(Origin(path="x.sh", text=text), text), bash=True)
    assert [text[one.start : one.end] for one in program.commands] == ["a"]
    assert error is not None


def test_places_of_words_and_assignments() -> None:
    text = 'X="ä$A" cmd é "$B" <<E\nbody $C\nE\n'
    program, _ = parse(Source(Origin(path="x.sh", text=text), text), bash=True)
    command = program.commands[0]
    assert isinstance(command, Simple)
    assert isinstance(command.assignments[0], Assignment)
    assert text[command.assignments[0].start : command.assignments[0].end] == 'X="ä$A"'
    assert [text[word.start : word.end] for word in command.words] == ["cmd", "é", '"$B"']
    body = command.redirections[0].target
    assert text[body.start : body.end] == "body $C\n"
    parameter = body.parts[1]
    assert isinstance(parameter, Parameter)
    assert text[parameter.start : parameter.end] == "$C"


def test_interpolations_are_put_in_before_the_shell_reads() -> None:
    hole = Hole(frozenset({Taint(Label(kind="secret", name="t"))}))
    text = "${{ a }} --x '${{ b }}' ${{ c }}"
    values = (Value.literal("tool --flag"), Value(((hole,),)), Value.literal("'one word'"))
    interpolations = []
    at = 0
    for value in values:
        start = text.index("${{", at)
        at = text.index("}}", start) + 2
        interpolations.append(Interpolation(start=start, end=at, value=value))
    script = Script(origin=Origin(path="x.sh", text=text), text=text, interpolations=tuple(interpolations))
    program, error = parse(Source.of_script(script), bash=True)
    assert error is None
    command = program.commands[0]
    assert isinstance(command, Simple)
    assert [word.static for word in command.words] == ["tool", "--flag", "--x", None, "one word"]
    inserted = command.words[3].parts[-1]
    assert isinstance(inserted, Inserted)
    assert inserted.quoted
    assert text[inserted.start : inserted.end] == "${{ b }}"


@pytest.mark.parametrize("text", ["a=(x)", "cat <(a)", "((1)) && (", "cmd <<< x"])
def test_what_only_bash_has_is_a_mistake_for_a_posix_shell(text: str) -> None:
    assert error_of(text, bash=False)


def test_deep_nesting_ends_with_a_message() -> None:
    assert error_of("$(" * 500 + "a" + ")" * 500) == "nested too deeply to follow"
    assert error_of("( " * 3000 + "a" + " )" * 3000) == "nested too deeply to follow"
