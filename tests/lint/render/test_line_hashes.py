"""The values that GitHub's upload action computes, from its own tests."""

from __future__ import annotations

import pytest

from runner_e2e.lint.render.line_hashes import line_hashes

GREETINGS = [
    "e9496ae3ebfced30:1", "fb7c023a8b9ccb3f:1", "ce8ba1a563dcdaca:1", "e20e36e16fcb0cc8:1", "b3edc88f2938467e:1",
    "c8e28b0b4002a3a0:1", "c129715d7a2bc9a3:1",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", ["c129715d7a2bc9a3:1"]),
        (
            " a\nb\n  \t\tc\n d",
            ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"],
        ),
        (" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n", GREETINGS),
        (" hello; \t\nworld!!!\r\r\r  \t\tGreetings\r End\r", GREETINGS),
        (" hello; \t\r\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n", GREETINGS),
    ],
)
def test_the_reference_s_values(text: str, hashes: list[str]) -> None:
    assert line_hashes(text) == hashes


def test_equal_lines_are_counted() -> None:
    found = line_hashes("Lorem ipsum dolor sit amet.\n" * 10)
    assert found[:6] == [f"a7f2ff13bc495cf2:{number}" for number in range(1, 7)]
    assert found[6:] == [
        "a7f2ff1481e87703:1", "a9cf91f7bbf1862b:1", "55ec222b86bcae53:1", "cc97dc7b1d7d8f7b:1", "c129715d7a2bc9a3:1",
    ]  # fmt: skip


def test_a_character_beyond_the_basic_plane_counts_as_two() -> None:
    assert line_hashes("😀")[0] != line_hashes("\U0001f601")[0]
    assert len(line_hashes("a\n😀\n")) == 3


def test_lines_put_before_change_nothing() -> None:
    text = "\n".join(f"line {number} has words" for number in range(30))
    assert line_hashes(f"new\n\n{text}")[2:] == line_hashes(text)
