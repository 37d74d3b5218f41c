"""The arithmetic of caps: never passed, never refused for nothing, and shown as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.dispatch.caps import check_caps, overdrafts, rooms
from runner_e2e.dispatch.money import BudgetError
from runner_e2e.dispatch.shared_ledger_file import Caps, Entry

DAY = "2026-11-30"
DAYS = (DAY, "2026-11-29", "2026-10-31")
DOLLAR = 1_000_000


def entry(**changes: Any) -> Entry:
    given: dict[str, Any] = {"key": "k", "campaign": "c", "owner": "o", "nonce": "n", "cells": 1, "reserved": DOLLAR}
    return Entry(**{**given, "day": DAY, **changes})


@st.composite
def entries(draw: st.DrawFn, *, fresh: bool = False) -> list[Entry]:
    found = []
    for number in range(draw(st.integers(1 if fresh else 0, 6))):
        state = "reserved" if fresh else draw(st.sampled_from(["reserved", "settled", "released"]))
        found.append(
            entry(
                key=f"{'new' if fresh else 'old'}-{number}", campaign=draw(st.sampled_from(["a", "b"])),
                reserved=draw(st.integers(0, 10)), day=DAY if fresh else draw(st.sampled_from(DAYS)), state=state,
                charged=draw(st.integers(0, 20)) if state == "settled" else None,
            )
        )  # fmt: skip
    return found


def sums(found: list[Entry], campaign: str) -> tuple[int, int, int]:
    """What a campaign, the day and the month come to, written down once more and plainly."""
    amounts = [
        (each, {"reserved": each.reserved, "settled": each.charged, "released": 0}[each.state] or 0) for each in found
    ]
    return (
        sum(amount for each, amount in amounts if each.campaign == campaign),
        sum(amount for each, amount in amounts if each.day == DAY),
        sum(amount for each, amount in amounts if each.day.startswith("2026-11")),
    )


@given(standing=entries(), more=entries(fresh=True), limits=st.tuples(*[st.none() | st.integers(0, 60)] * 4))
def test_a_reservation_passes_exactly_where_every_cap_holds_after_it(
    standing: list[Entry], more: list[Entry], limits: tuple[int | None, ...]
) -> None:
    caps = Caps(campaign=limits[0], day=limits[1], month=limits[2])
    fits = True
    for campaign in {each.campaign for each in more}:
        own, day, month = sums([*standing, *more], campaign)
        pairs = ((own, caps.campaign), (day, caps.day), (month, caps.month), (own, limits[3]))
        fits &= all(cap is None or amount <= cap for amount, cap in pairs)
    try:
        check_caps(caps, standing, more, day=DAY, max_cost=limits[3])
    except BudgetError:
        assert not fits
    else:
        assert fits


def test_nothing_more_always_fits() -> None:
    """What is over a cap already, since cells cost more than they should, refuses no call that reserves nothing."""
    check_caps(Caps(day=1), [entry()], [], day=DAY)


def test_every_cap_that_is_passed_is_told_with_its_way_out() -> None:
    caps = Caps(campaign=2 * DOLLAR, day=3 * DOLLAR, month=4 * DOLLAR)
    standing = [entry(state="settled", charged=1_500_000), entry(key="other", campaign="d", reserved=500_000)]
    with pytest.raises(BudgetError) as caught:
        check_caps(caps, standing, [entry(key="new", reserved=3 * DOLLAR)], day=DAY, max_cost=DOLLAR)
    told = [(each.what, each.why, each.fix) for each in caught.value.problems]
    assert told == [
        (
            "$3.00 more would pass the cap of the campaign c, $2.00",
            "$1.50 spent + $0.00 reserved + $3.00 = $4.50, which is $2.50 more than it",
            "select fewer cells, or raise it with `runner-e2e dispatch caps --campaign USD`",
        ),
        (
            "$3.00 more would pass the cap that the plan of c has, $1.00",
            "$1.50 spent + $0.00 reserved + $3.00 = $4.50, which is $3.50 more than it",
            "select fewer cells, or raise it with `runner-e2e dispatch plan --max-cost USD`",
        ),
        (
            "$3.00 more would pass the cap of 2026-11-30, $3.00",
            "$1.50 spent + $0.50 reserved + $3.00 = $5.00, which is $2.00 more than it",
            "select fewer cells, wait until tomorrow (UTC), or raise it with `runner-e2e dispatch caps --day USD`",
        ),
        (
            "$3.00 more would pass the cap of 2026-11, $4.00",
            "$1.50 spent + $0.50 reserved + $3.00 = $5.00, which is $1.00 more than it",
            "select fewer cells, wait until next month, or raise it with `runner-e2e dispatch caps --month USD`",
        ),
    ]


@pytest.mark.parametrize("amount", [0, 1, None])
def test_unknown_is_refused_only_where_there_is_a_cap(amount: int | None) -> None:
    unknown = [entry(reserved=None)]
    assert overdrafts(rooms(Caps(), unknown, day=DAY), amount) == ()
    (problem,) = overdrafts(rooms(Caps(day=10), unknown, day=DAY), amount)
    assert ("what this costs is not known" in problem.what) is (amount is None)
    # Of yesterday's nobody has to know the cost today.
    assert overdrafts(rooms(Caps(day=10), [entry(reserved=None, day="2026-11-29")], day=DAY), 10) == ()


def test_what_is_left() -> None:
    day, month = rooms(Caps(day=DOLLAR), [entry(reserved=3 * DOLLAR), entry(key="k2", day="2026-11-01")], day=DAY)
    assert (day.taken, day.left, day.unknown) == (3 * DOLLAR, -2 * DOLLAR, 0)
    assert (month.taken, month.left, month.cap) == (4 * DOLLAR, None, None)
    assert [each.name for each in rooms(Caps(), [], day=DAY, campaign="c")] == [
        "of the campaign c", "of 2026-11-30", "of 2026-11",
    ]  # fmt: skip
