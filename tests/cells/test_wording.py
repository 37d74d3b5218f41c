from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.cells.wording import nearest, quote, suggestion


@given(st.text(max_size=200))
def test_what_is_quoted_cannot_command_a_terminal(text: str) -> None:
    shown = quote(text)
    assert all(" " <= character <= "~" or character == "…" for character in shown)


def test_different_texts_are_quoted_differently() -> None:
    assert quote("a\nb") == r"'a\nb'"
    assert quote(r"a\nb") == r"'a\\nb'"


def test_long_texts_are_cut_and_secrets_are_not_shown() -> None:
    assert quote("a" * 100) == f"'{'a' * 80}…' (100 characters)"
    assert "abcdefghij" not in quote("ghp_" + "abcdefghij" * 4)


def test_the_nearest_name_comes_first() -> None:
    known = ["agents.change-manager", "agents.hire", "hello", "OPENAI_API_KEY"]
    assert nearest("helo", known) == ("hello",)
    assert nearest("agents", known) == ("agents.change-manager", "agents.hire")
    assert nearest("change-manager", known)[0] == "agents.change-manager"
    assert nearest("openai_api_key", known) == ("OPENAI_API_KEY",)
    assert nearest("zzz", known) == ()


def test_a_suggestion_falls_back_to_what_there_is() -> None:
    assert suggestion("zzz", ["hello", "bye"]) == "known are: hello, bye"
    assert suggestion("zzz", []) == "declare it first: there is none yet"
    many = suggestion("zzz", [f"name-{number}" for number in range(20)])
    assert many.endswith("and 12 more")
