from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st
from tests.truth.canary import PIECE, PUBLIC, Canary, random_canary

CANARY = Canary(case="bcdfghjkmnpq-rstvwxz23456")


def test_two_are_never_the_same_and_look_like_ids() -> None:
    first, second = random_canary(), random_canary()
    assert first.id != second.id
    assert first.id.startswith(PUBLIC)
    assert not first.is_in(second.id)


@given(start=st.integers(0, 16), length=st.integers(1, 24), upper=st.booleans())
def test_a_piece_is_eight_characters_of_the_case_part_in_any_case(start: int, length: int, upper: bool) -> None:
    piece = CANARY.case[start : start + length]
    text = f"x/{piece.upper() if upper else piece}/y"
    assert CANARY.is_in(text) == (len(piece) >= PIECE)


def test_the_public_part_is_no_piece() -> None:
    assert not CANARY.is_in(PUBLIC)
    assert CANARY.is_in(CANARY.id)


def test_masks_hold_nothing_of_it() -> None:
    text = f"{CANARY.id} {CANARY.case.upper()} {CANARY.case[3:14]} {CANARY.case[:7]}"
    assert CANARY.masked(text) == f"{{id}} {{case}} {{piece}} {CANARY.case[:7]}"


@given(before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_base64_is_known_at_every_alignment(before: bytes, after: bytes) -> None:
    encoded = base64.b64encode(before + CANARY.id.encode() + after).decode()
    assert CANARY.encodings_in(encoded) == ("base64",)


def test_other_encodings() -> None:
    assert CANARY.encodings_in(CANARY.id.encode().hex()) == ("hex",)
    assert CANARY.encodings_in(CANARY.id[::-1]) == ("reversed",)
    assert CANARY.encodings_in(CANARY.id) == ()
