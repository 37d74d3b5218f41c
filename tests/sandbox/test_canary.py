"""The finder: values, pieces, encodings, any case; nothing else; and redaction that leaves nothing behind."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.errors import UsageError
from runner_e2e.sandbox.canary import Canary, Finder

ID = "smoke.codex-high.linux.readme-fix"
VALUES = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=["Cs"]), min_size=8, max_size=60
)


def finder(value: str = ID, **options: object) -> Finder:
    return Finder([Canary(name="id", value=value)], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "kind", "start", "end"),
    [
        (ID, "value", 0, len(ID)),
        (f"--case={ID}.", "value", 7, 7 + len(ID)),
        (ID.upper(), "value", 0, len(ID)),
        ("x linux.readme y", "piece", 1 + 1, 14),
        ("EADME-FI", "piece", 0, 8),
        (base64.b64encode(ID.encode()).decode(), "encoded", 0, 44),
        (ID.encode().hex(), "encoded", 0, 2 * len(ID)),
    ],
)
def test_finds(text: str, kind: str, start: int, end: int) -> None:
    (found,) = finder().find(text)
    assert (found.kind, found.start, found.end) == (kind, start, end)


@pytest.mark.parametrize("text", ["", "smoke", "codex-", "readme-", "linux.r", "a quite different text of some length"])
def test_passes_over_what_is_too_short_or_different(text: str) -> None:
    assert finder().find(text) == ()


@pytest.mark.parametrize("shift", range(3))
def test_finds_base64_at_every_alignment(shift: int) -> None:
    text = base64.b64encode(b"x" * shift + ID.encode() + b"yyyy").decode()
    assert [found.kind for found in finder().find(text)] == ["encoded"]


def test_a_public_text_may_share_a_piece_but_not_the_whole() -> None:
    quiet = finder(public=("codex-high",))
    assert quiet.find("--profile codex-high") == ()
    assert [found.kind for found in quiet.find("codex-high.linux")] == ["piece"]
    assert [found.kind for found in finder(public=(ID,)).find(ID)] == ["value"]


def test_a_short_value_counts_as_a_whole_only() -> None:
    assert [found.kind for found in finder("abcd").find("xABCDx abc")] == ["value"]


@pytest.mark.parametrize("value", ["", "abc"])
def test_refuses_a_value_that_chance_repeats(value: str) -> None:
    with pytest.raises(UsageError, match="characters"):
        finder(value)


def test_two_canaries_keep_their_names() -> None:
    both = Finder([Canary(name="a", value="alphabetical"), Canary(name="b", value="betamaximal")])
    assert [found.canary for found in both.find("betamaximal alphabetical")] == ["b", "a"]


@given(VALUES, st.data())
def test_every_piece_is_found_in_any_case_and_redacted(value: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(value) - 8))
    end = data.draw(st.integers(start + 8, len(value)))
    piece = value[start:end]
    changed = "".join(
        c.swapcase() if len(c.swapcase().lower()) == 1 and c.swapcase().lower() == c.lower() else c for c in piece
    )
    text = f"…{data.draw(st.sampled_from([piece, changed]))}…"
    looking = finder(value)
    assert looking.find(text)
    assert looking.may_hold(text.encode())
    redacted = looking.redact(text)
    assert "***" in redacted
    assert looking.find(redacted) == ()


@given(VALUES, st.text(max_size=50))
def test_may_hold_never_misses_what_find_finds(value: str, around: str) -> None:
    looking = finder(value)
    for text in (around, around + value, value.upper() + around, quote(value, safe=""), value.encode().hex()):
        if looking.find(text):
            assert looking.may_hold(text.encode("utf-8", "surrogatepass"))
