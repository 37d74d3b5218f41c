"""JSON with unknown parts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.languages.documents import Unknown, read_json
from runner_e2e.lint.values import Hole, Label, Taint, Value

TAINTS = frozenset((Taint(Label(kind="confidential", name="id")),))
HOLE = Hole(TAINTS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text('ab"\\{}[]:,\n é'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\{:', max_size=3), inner, max_size=3),
)


def plain(data: object) -> object:
    """Data with strings again."""
    if isinstance(data, Value):
        return data.constant
    if isinstance(data, dict):
        return {key: plain(item) for key, item in data.items()}
    return [plain(item) for item in data] if isinstance(data, list) else data


@given(JSON)
def test_known_text_is_read_as_json_reads_it(data: object) -> None:
    assert plain(read_json((json.dumps(data, indent=1),))) == data


def test_an_unknown_part_of_a_string_stays_there() -> None:
    data = read_json(('{"id": "a-', HOLE, '-b", "mode": "fast"}'))
    assert isinstance(data, dict)
    assert data["id"] == Value((("a-", HOLE, "-b"),))
    assert data["mode"] == Value.literal("fast")


def test_an_unknown_value_may_be_anything() -> None:
    assert read_json(('{"id": ', HOLE, ', "list": [1, ', HOLE, "]}")) == {
        "id": Unknown(TAINTS),
        "list": [1, Unknown(TAINTS)],
    }


def test_unknown_entries_stand_for_any_others() -> None:
    assert read_json(('{\n  "mode": "x",\n  ', HOLE, "\n}")) == {"mode": Value.literal("x"), None: Unknown(TAINTS)}
    assert read_json(("{", HOLE, "}")) == {None: Unknown(TAINTS)}


@pytest.mark.parametrize(
    "text", ["{", "nothing", '{"a": 1,}', "[" * 5_000, '"' + "x" * 300_000 + '"', '"\U000f0000"', "\0", '"\0"']
)
def test_what_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        read_json((text,))


@pytest.mark.parametrize("escaped", ["\\udb80\\udc00", "\\uDB80\\uDC07", "\\udbbf\\udffd"])
def test_an_escaped_letter_is_taken_for_no_unknown_part(escaped: str) -> None:
    with pytest.raises(ValueError, match="letters that stand for unknown text"):
        read_json((f'{{"a": "{escaped}", "b": ', HOLE, "}"))
