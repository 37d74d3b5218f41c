from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.cells.ids import CASE, SEGMENT, CellId, is_case, is_segment, parse_id
from runner_e2e.errors import UsageError

segments = st.from_regex(SEGMENT, fullmatch=True)
cases = st.from_regex(CASE, fullmatch=True)


@given(suite=segments, profile=segments, environment=segments, case=cases)
def test_an_id_has_one_reading(suite: str, profile: str, environment: str, case: str) -> None:
    cell = CellId(suite=suite, profile=profile, environment=environment, case=case)
    if len(str(cell)) <= 512:
        assert parse_id(str(cell)) == cell


def test_the_case_keeps_its_dots() -> None:
    cell = parse_id("chat-features.runner-opencode.local.agents.change-manager")
    assert (cell.suite, cell.profile, cell.environment, cell.case) == (
        "chat-features",
        "runner-opencode",
        "local",
        "agents.change-manager",
    )


@given(st.text())
def test_every_text_is_an_id_or_a_clean_message(text: str) -> None:
    message = ""
    try:
        assert str(parse_id(text)) == text
    except UsageError as error:
        message = str(error)
    assert all(" " <= character <= "~" or character in "…\n" for character in message)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the id is empty"),
        ("a.b.c", "has 3 of the 4 parts"),
        ("a", "has 1 of the 4 parts"),
        ("a.b.c.d\n", "a line break at character 8"),
        ("a.b.c.d;rm -rf /", "the character ; at character 8"),
        ("a.b.c.$(id)", "the character $ at character 7"),
        ("a.b.c.`id`", "the character ` at character 7"),
        ("a.b.c d", "a blank at character 6"),
        ("a.b.c.d\x1b[31m", "the character U+001B at character 8"),
        ("a.b.c.é", "the character U+00E9 at character 7"),
        ("a.b.c.D", "the character D at character 7"),
        ("a..c.d", "has an empty part"),
        ("a.b.c.d.", "has an empty part"),
        ("a.b.c.-d", "begins with '-'"),
        ("_a.b.c.d", "begins with '_'"),
        ("a.b.c." + "d" * 594, "has 600 characters"),
    ],
)
def test_what_is_no_id_is_described(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_id(text)
    assert says in caught.value.problem.what
    assert "\x1b" not in str(caught.value)


def test_512_characters_are_allowed_and_513_are_not() -> None:
    parse_id("a.b.c." + "d" * 506)
    with pytest.raises(UsageError, match="513"):
        parse_id("a.b.c." + "d" * 507)


@pytest.mark.parametrize(("text", "segment", "case"), [("a", True, True), ("a.b", False, True), ("a.", False, False)])
def test_segments_and_cases(text: str, segment: bool, case: bool) -> None:
    assert (is_segment(text), is_case(text)) == (segment, case)
    assert not is_segment(text + "\n")
    assert not is_case(text + "\n")
