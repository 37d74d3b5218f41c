"""Pieces of texts with holes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.languages.pieces import at_most, joined, mapped, sliced, split_at, stripped, words
from runner_e2e.lint.values import EMPTY, UNKNOWN, Hole, Label, Taint, Value

SECRET = Value.of([Taint(Label(kind="confidential", name="id"))])
CELL = UNKNOWN + Value.literal(".") + UNKNOWN + Value.literal(".") + SECRET


def longest(value: Value) -> int | None:
    holes = [piece for piece in value.pieces() if isinstance(piece, Hole)]
    return holes[0].longest if holes else 0


@given(st.text(max_size=20), st.integers(-25, 25), st.one_of(st.none(), st.integers(-25, 25)))
def test_known_text_is_sliced_as_python_does(text: str, start: int, end: int | None) -> None:
    assert sliced(Value.literal(text), start, end).constant == text[start:end]


@pytest.mark.parametrize(
    ("start", "end", "expected"), [(0, 3, 3), (2, 6, 4), (-4, None, 4), (-6, -2, 4), (3, None, None), (0, -2, None)]
)
def test_a_slice_of_unknown_text_has_at_most_so_many_characters(
    start: int, end: int | None, expected: int | None
) -> None:
    value = sliced(SECRET, start, end)
    assert value.taints == SECRET.taints
    assert longest(value) == expected


def test_an_empty_slice_carries_nothing() -> None:
    assert sliced(SECRET, 2, 2) == EMPTY
    assert at_most(SECRET, 0) == EMPTY


def test_a_known_prefix_is_cut_off() -> None:
    assert str(sliced(Value.literal("--id=") + SECRET, 5, None)) == str(SECRET)


def test_a_cell_id_is_taken_apart() -> None:
    parts = split_at(CELL, ".")
    assert parts is not None
    assert [bool(part.taints) for part in parts] == [False, False, True]


@pytest.mark.parametrize(
    ("value", "separator"),
    [(UNKNOWN, "."), (SECRET, "-"), (UNKNOWN, ","), (SECRET | (SECRET + Value.literal(".a")), "."), (SECRET, "")],
)
def test_parts_of_unknown_number_are_not_told(value: Value, separator: str) -> None:
    assert split_at(value, separator) is None


@given(st.text(max_size=30), st.sampled_from([".", ",", "ab", "\n"]))
def test_known_text_is_split_as_python_does(text: str, separator: str) -> None:
    parts = split_at(Value.literal(text), separator)
    assert parts is not None
    assert [part.constant for part in parts] == text.split(separator)


def test_words_keep_holes_whole() -> None:
    found = words(Value.literal("tool  --id ") + SECRET + Value.literal("x y"))
    assert found is not None
    assert [str(word) for word in found] == ["tool", "--id", "{id}x", "y"]


def test_changes_reach_known_pieces() -> None:
    assert str(mapped(Value.literal("a") + SECRET + Value.literal("b"), str.upper)) == "A{id}B"
    assert str(stripped(Value.literal("  a ") + SECRET + Value.literal(" b  "))) == "a {id} b"


def test_values_are_put_together_with_a_separator_between_them() -> None:
    comma = Value.literal(", ")
    assert joined([], comma) == EMPTY
    assert joined([Value.literal("a")], comma) == Value.literal("a")
    assert joined([Value.literal("a"), EMPTY, Value.literal("b")], comma) == Value.literal("a, , b")
