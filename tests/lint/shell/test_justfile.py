"""The text of a justfile: what is read of it, and what its expressions give."""

from __future__ import annotations

import time

import pytest

from runner_e2e.lint.contexts import confidential
from runner_e2e.lint.shell.justfile import evaluate, evaluate_all, read_justfile
from runner_e2e.lint.values import UNKNOWN, Value

ID = confidential("inputs.case")
TEXT = """\
# A comment: with a colon
set shell := ["bash", "-cu"]
set export
export a := "x"
alias b := build
import 'other.just'

[private]
@build first second="2" *rest: (check "a b") clean && after # a comment
    one \\
      two

    {{first}}
check id:
\t@three
clean:
"""


def test_what_is_read() -> None:
    found = read_justfile(TEXT)
    assert found.settings == {"shell": '["bash", "-cu"]', "export": ""}
    assert found.has("export")
    assert not found.has("quiet")
    assert found.aliases == {"b": "build"}
    assert found.imports == ["other.just"]
    assert found.variables["a"].expression == '"x"'
    assert found.variables["a"].exported
    assert list(found.recipes) == ["build", "check", "clean"]
    build = found.recipes["build"]
    assert build.quiet
    assert build.attributes == {"private"}
    assert [(one.name, one.many, one.default) for one in build.parameters] == [
        ("first", False, None),
        ("second", False, '"2"'),
        ("rest", True, None),
    ]
    assert build.before == (("check", '"a b"'), ("clean", ""))
    assert build.after == (("after", ""),)
    assert [line.text for line in build.lines] == ["one \\", "  two", "", "{{first}}"]
    assert all(TEXT[line.start :].startswith(line.text) for line in build.lines)
    assert [line.text for line in found.recipes["check"].lines] == ["@three"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('"a" + \'b\' / "c"', "ab/c"),
        (r'"a\tb\"\\"', 'a\tb"\\'),
        (r"'a\tb'", r"a\tb"),
        ("'''\n  a'''", "  a"),
        ("known", "k"),
        ("('a' + known) + 'b'", "akb"),
        ("env('SET')", "s"),
        ("env('UNSET', 'd')", "d"),
        ("env_var_or_default('SET', 'd')", "s"),
        ("if known == 'k' { 'yes' } else { 'no' }", "yes"),
        ("if known != 'k' { 'yes' } else if known == 'x' { 'x' } else { 'no' }", "no"),
        ("quote(known)", "'k'"),
        ("`echo x`", "ran echo x"),
        ("shell('echo x')", "ran echo x"),
        ("", ""),
    ],
)
def test_texts_that_are_known(expression: str, value: str) -> None:
    names, environment = {"known": Value.literal("k")}, {"SET": Value.literal("s")}
    assert evaluate(expression, names, environment, lambda text: Value.literal("ran ") + text).constant == value


@pytest.mark.parametrize(
    ("expression", "labelled"),
    [
        ("id", True),
        ("'x' + id", True),
        ("uppercase(id)", True),
        ("replace('a', 'b', id)", True),
        ("env('ID')", True),
        ("if unknown == 'x' { id } else { 'y' }", True),
        ("if 'x' == 'x' { 'y' } else { id }", False),
        ("sha256(id)", False),
        ("unknown", False),
        ("arch()", False),
    ],
)
def test_labels_that_pass(expression: str, labelled: bool) -> None:
    value = evaluate(expression, {"id": ID}, {"ID": ID}, lambda _: UNKNOWN)
    assert bool(value.taints) is labelled


def test_arguments_of_what_a_recipe_needs() -> None:
    found = evaluate_all("'a' id + 'x' b", {"b": Value.literal("c"), "id": ID}, {}, lambda _: UNKNOWN)
    assert [value.constant for value in found] == ["a", None, "c"]


LONG = (
    *("a" * 50_000, "a " * 25_000, "a:" + " (b" * 15_000, "a " + "x=(" * 15_000 + ":", "a x='" * 10_000, " " * 50_000),
    *("[" + "a " * 20_000, "a:" + "(" * 9_000 + "b (c)" * 3_000, "set " + "a" * 50_000, "a:\n  {{" + "(" * 20_000),
)


@pytest.mark.parametrize("text", LONG)
def test_long_texts_take_no_time(text: str) -> None:
    before = time.process_time()
    read_justfile(text)
    assert time.process_time() - before < 2
