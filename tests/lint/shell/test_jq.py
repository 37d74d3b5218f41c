"""What a program of ``jq`` lets through. Snippets in ``reductions.txt`` show the same by execution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.shell.jq import INPUT, Flow, flow_of, read_command
from runner_e2e.lint.shell.state import Field
from runner_e2e.lint.values import Hole, Value


def flow(program: str) -> Flow | None:
    return flow_of((program,), {"$x": frozenset({"$x"}), "$y": frozenset()}, frozenset({INPUT}))


@pytest.mark.parametrize(
    "program",
    [
        "length",
        "$x | length",
        ".a | type",
        "keys | length",
        "[.[] | select(.a == $x)] | length",
        ".a == $x",
        '.a != null and (.b | startswith("x")) or has($x)',
        'if .a == $x then "same" else "other" end',
        "if .a then 1 elif .b then 2 else empty end",
        "map(length) | add",
        "reduce .[] as $i (0; . + ($i | length))",
        '"constant \\u0041"',
        "{size: .id | length, kind: (.id | type)}",
        ".a as $v | $v | length",
        '"\\(.a | length) of \\($y)"',
        "[.[] | test($x)] | all",
        "-1 + 2 * (3 % 2)",
        "$__loc__",
        "[]",
        "try (.a | length) catch 0",
        "first(.[] | length)",
        "limit(2; .[] | length)",
        "input | type",
    ],
)
def test_facts_hold_nothing(program: str) -> None:
    assert flow(program) == frozenset()


@pytest.mark.parametrize(
    ("program", "sources"),
    [
        ("", {"."}),
        (".", {"."}),
        ("# a comment\n.a", {"."}),
        (".a.b[0]?.c[]", {"."}),
        ('."a b"', {"."}),
        ('.["a"] // $x', {".", "$x"}),
        (".a?//1", {"."}),
        ("..|.a?", {"."}),
        ("$x", {"$x"}),
        ("$y", set()),
        ("{$x, b: .c}", {"$x", "."}),
        ("{a}", {"."}),
        ("{(.k): 1}", {"."}),
        ('{"a b": $x}', {"$x"}),
        ("{a: .b | length, c: $x}", {"$x"}),
        ('"it is \\($x), \\(.a)"', {"$x", "."}),
        ("env.S", {"env.S"}),
        ("$ENV.S | @base64", {"~env.S"}),
        ("env", {"env"}),
        ('$ENV["S"]', {"env"}),
        ("strenv(S)", {"env.S"}),
        ('@base64 "a\\($x)"', {"~$x"}),
        ("@uri", {"."}),
        (".a |= length", {"."}),
        (".a = $x", {".", "$x"}),
        ("if .a then $x end", {".", "$x"}),
        (". as [$a, {b: $c}] | $c", {"."}),
        ("reduce .[] as $i (0; . + $i)", {"."}),
        ('foreach .[] as $i (""; $x; .)', {"$x"}),
        ("try error($x) catch .", {".", "$x"}),
        ("error($x)", {"!$x"}),
        ("debug", {".", "!."}),
        ("input", {"."}),
        ("$ARGS.positional[0]", {"$ARGS"}),
        ("$other", {"$ARGS"}),
        ('sub($x; "")', {".", "$x"}),
        ("select(. == $x)", {"."}),
        ("ltrimstr($x)", {"."}),
    ],
)
def test_what_is_carried(program: str, sources: set[str]) -> None:
    assert flow(program) == frozenset(sources)


@pytest.mark.parametrize(
    "program",
    ["def f: .; f", "surprise(.a)", ".a |", "(", '"open', "{a:", "reduce . (1; 2)", "`", 'include "m"; .', "if . then"],
)
def test_what_is_not_understood_has_no_answer(program: str) -> None:
    assert flow(program) is None


def test_deep_nesting_ends() -> None:
    assert flow("(" * 5000 + "." + ")" * 5000) is None


def test_text_put_into_a_string() -> None:
    hole = Hole()
    assert flow_of(('.a | "', hole, " ", hole, '"'), {}, frozenset({INPUT})) == frozenset({"#0", "#1"})
    assert flow_of(('.a == "', hole, '"'), {}, frozenset({INPUT})) == frozenset()
    assert flow_of((".a | ", hole), {}, frozenset({INPUT})) is None


@given(st.text(alphabet='.|,()[]{}"\\$x:=/?@1a #', max_size=24))
def test_no_text_breaks_it(program: str) -> None:
    flow(program)


def words(*texts: str) -> tuple[Field, ...]:
    return tuple(Field(Value.literal(text)) for text in texts)


def constant(field: Field) -> str | None:
    return field.value.constant


def test_a_command_line() -> None:
    line = read_command("jq", words("-rn", "--arg", "x", "1", "--rawfile", "y", "f", "--indent", "2", ".a", "in.json"))
    assert line is not None
    assert constant(line.program) == ".a"
    assert [(name, kind, constant(field)) for name, kind, field in line.named] == [
        ("$x", "text", "1"),
        ("$y", "file", "f"),
    ]
    assert [constant(one) for one in line.files] == ["in.json"]
    assert line.null_input
    assert not line.from_file


def test_a_program_in_a_file() -> None:
    line = read_command("jq", words("-f", "p.jq", "in.json"))
    assert line is not None
    assert line.from_file
    assert constant(line.program) == "p.jq"


def test_operands_of_the_program() -> None:
    line = read_command("jq", words("-n", "$ARGS", "--args", "a", "b"))
    assert line is not None
    assert [constant(one) for one in line.operands] == ["a", "b"]
    assert line.files == ()


def test_yq_has_commands_and_other_options() -> None:
    line = read_command("yq", words("eval", "-o", "json", ".a", "f.yml"))
    assert line is not None
    assert (constant(line.program), [constant(one) for one in line.files]) == (".a", ["f.yml"])


def test_yq_may_write_to_its_file() -> None:
    line = read_command("yq", words("-i", ".a = 1", "f.yml"))
    assert line is not None
    assert line.in_place


@pytest.mark.parametrize("given_words", [(), ("-r",), ("--arg", "x")])
def test_no_program(given_words: tuple[str, ...]) -> None:
    assert read_command("jq", words(*given_words)) is None
    assert read_command("jq", (*words(".a"), Field(Value.unknown(), "list"))) is None
