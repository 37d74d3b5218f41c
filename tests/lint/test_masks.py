"""Masks hide exactly what was registered."""

from __future__ import annotations

import pytest

from runner_e2e.lint.contexts import confidential, secret
from runner_e2e.lint.masks import CAPTURED, NO_MASKS, Masks, case_part
from runner_e2e.lint.shell.parameters import transform
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Value

ID = confidential("inputs.selected-id")
CASE = case_part(ID)
NAME = confidential("inputs.case")
FILTERED = Value(((Hole(ID.taints, f"{CAPTURED}1:1)"),),))
CHANGED = ID.opaque()
ENCODED = FILTERED.weakened(Confidence.LOW)
TEXT = Value.literal("text ")


def confidence(masks: Masks, value: Value) -> Confidence | None:
    """That of what stays readable, None when nothing does."""
    return max((taint.confidence for taint in masks.uncovered(value)), default=None)


@pytest.mark.parametrize(
    ("registered", "shown", "left"),
    [
        ([], ID, Confidence.HIGH),
        ([], TEXT, None),
        ([], UNKNOWN, None),
        ([ID], ID, None),
        ([ID], TEXT + ID + TEXT, None),
        ([ID], ID + TEXT + ID, None),
        ([ID], CASE, Confidence.HIGH),
        ([ID], TEXT + CASE, Confidence.HIGH),
        ([CASE], ID, None),
        ([CASE], CASE, None),
        ([ID, CASE], TEXT + CASE + TEXT + ID, None),
        ([ID], ID | CASE, Confidence.HIGH),
        ([ID | CASE], ID, Confidence.LOW),
        ([ID], CHANGED, Confidence.LOW),
        ([NAME], NAME, None),
        ([NAME], ID, Confidence.HIGH),
        ([TEXT + NAME], NAME, Confidence.HIGH),
        ([TEXT + NAME], Value.literal("more text ") + NAME, None),
        # What a filter took from the event file is the whole value, or the very text it was.
        ([FILTERED], FILTERED, None),
        ([FILTERED], ID, None),
        ([FILTERED], CASE, Confidence.HIGH),
        ([FILTERED], CHANGED, Confidence.LOW),
        ([CHANGED], CHANGED, None),
        ([CHANGED], ID, None),
        ([Value.of(ID.taints | NAME.taints)], ID, Confidence.HIGH),
        ([UNKNOWN], ID, Confidence.HIGH),
        ([EMPTY], ID, Confidence.HIGH),
        # Masks tell upper case from lower case.
        ([ID], transform(ID, str.upper), Confidence.HIGH),
        ([ID], transform(ID, str.lower), Confidence.LOW),
        ([transform(ID, str.upper)], transform(ID, str.upper), None),
        # An encoding covers itself alone.
        ([ENCODED], ENCODED, None),
        ([ENCODED], ID, Confidence.HIGH),
        ([ENCODED], NAME, Confidence.HIGH),
    ],
)
def test_what_stays_readable(registered: list[Value], shown: Value, left: Confidence | None) -> None:
    assert confidence(NO_MASKS.with_texts(registered), shown) == left


def test_github_masks_secrets_itself() -> None:
    token = secret("secrets.TOKEN")
    assert confidence(NO_MASKS, TEXT + token) is None
    assert confidence(NO_MASKS, token.opaque()) is Confidence.LOW


def test_pieces_of_a_few_characters_say_nothing() -> None:
    assert confidence(NO_MASKS, Value(((Hole(ID.taints, "", 3),),))) is None
    assert confidence(NO_MASKS, Value(((Hole(ID.taints, "", 8),),))) is Confidence.HIGH


def test_joining_keeps_what_both_ways_have() -> None:
    both, one = NO_MASKS.with_texts([ID, NAME]), NO_MASKS.with_texts([NAME])
    joined = both.joined(one)
    assert joined == one.joined(both)
    assert confidence(joined, NAME) is None
    assert confidence(joined, ID) is Confidence.LOW
    assert (NO_MASKS | both) == (both | NO_MASKS) == both
    assert confidence(joined | both, ID) is None
    assert confidence(NO_MASKS.perhaps([ID]), ID) is Confidence.LOW


def test_an_unknown_caller_may_have_masked_everything() -> None:
    assert confidence(Masks(any_caller=True), ID) is Confidence.LOW


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (ID, EMPTY),
        (TEXT + ID, EMPTY),
        (CASE, CASE),
        (TEXT, TEXT),
        (ID | TEXT, EMPTY | TEXT),
        (NAME, NAME),
    ],
)
def test_an_output_with_masked_text_does_not_arrive(value: Value, left: Value) -> None:
    assert NO_MASKS.with_texts([ID]).passing(value) == left


def test_many_masks_stay_few() -> None:
    masks = NO_MASKS
    for number in range(200):
        masks = masks.with_texts([Value.literal(f"{number} ") + ID])
    assert len(masks.sure) <= 64
