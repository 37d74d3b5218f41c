"""What became of each cell: every way in which records, jobs and what was expected can differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dispatch.kept_results import handle

from runner_e2e.dispatch.campaign import PlannedCell
from runner_e2e.dispatch.downloads import CellRecord
from runner_e2e.dispatch.outcomes import MOST_OF_A_CELL, CellOutcome, JobState, join
from runner_e2e.report.results import VERDICTS

DOLLAR = 1_000_000
CELL = PlannedCell(handle=handle(1), expected=DOLLAR, reserved=2 * DOLLAR)


def record(number: int = 1, **changes: Any) -> CellRecord:
    known: dict[str, Any] = {
        "handle": handle(number), "campaign": "c1", "attempt": 1, "verdict": "passed", "cost": DOLLAR // 2,
        "failure": None, "started": "2026-11-30T00:00:00.000Z", "source": "result.json",
    } | changes  # fmt: skip
    return CellRecord(**{"digest": repr(sorted(known.items(), key=str)), **known})


def job(name: str = handle(1), *, began: bool = True, paid: Any = "unknown") -> JobState:
    return JobState(name=name, began=began, paid=paid if began else "no")


def outcome(*records: CellRecord, jobs: Any = None) -> CellOutcome:
    (found,) = join([CELL], records, jobs).cells
    return found


def money(found: CellOutcome) -> tuple[str, int | None, int, int]:
    return found.verdict, found.actual, found.kept, found.attempts


@pytest.mark.parametrize("verdict", VERDICTS)
def test_one_record(verdict: Any) -> None:
    assert money(outcome(record(verdict=verdict))) == (verdict, DOLLAR // 2, 0, 1)
    assert outcome(record(verdict=verdict)).note == ""


def test_every_attempt_costs_and_the_last_one_decides() -> None:
    records = [record(attempt=2, cost=3, started="2026-11-30T00:05:00.000Z"), record(verdict="failed", cost=4)]
    for each in (records, records[::-1]):
        assert money(outcome(*each)) == ("passed", 7, 0, 2)


def test_attempts_of_another_attempt_of_the_run_are_others() -> None:
    again = record(campaign="c2", verdict="failed", cost=5, started="2026-12-01T00:00:00.000Z")
    assert money(outcome(record(cost=4), again)) == ("failed", 9, 0, 2)


def test_a_copy_is_counted_once() -> None:
    """A later attempt of the run keeps the records of jobs that it did not repeat."""
    joined = join([CELL], [record(cost=4), record(cost=4)])
    assert money(joined.cells[0]) == ("passed", 4, 0, 1)
    assert joined.problems == ()


def test_a_cost_that_nobody_knows_keeps_the_reservation() -> None:
    found = outcome(record(cost=None))
    assert money(found) == ("passed", None, 2 * DOLLAR, 1)
    assert "the cost of 1 attempts is unknown" in found.note


def test_a_cost_that_is_known_in_part_keeps_the_rest() -> None:
    second = record(attempt=2, cost=None, started="2026-11-30T00:05:00.000Z")
    assert money(outcome(record(cost=DOLLAR // 4), second)) == ("passed", DOLLAR // 4, 2 * DOLLAR - DOLLAR // 4, 2)


def test_what_is_unknown_keeps_at_least_what_it_should_cost() -> None:
    """The first attempt used the whole reservation up: the second one is not free for that."""
    second = record(attempt=2, cost=None, started="2026-11-30T00:05:00.000Z")
    assert money(outcome(record(cost=3 * DOLLAR), second)) == ("passed", 3 * DOLLAR, DOLLAR, 2)


def test_attempts_without_a_record_are_unknown() -> None:
    joined = join([CELL], [record(attempt=3, cost=4)])
    assert money(joined.cells[0]) == ("passed", 4, 2 * DOLLAR, 3)
    assert "2 earlier attempts left no record" in joined.cells[0].note
    assert joined.problems == (f"{handle(1)}: 2 earlier attempts left no record",)


@pytest.mark.parametrize("order", [1, -1])
def test_contradicting_records_are_believed_neither(order: int) -> None:
    records = [record(cost=4), record(cost=5, verdict="failed")][::order]
    joined = join([CELL], records)
    assert money(joined.cells[0]) == ("failed", None, 2 * DOLLAR, 1)
    assert "contradict each other; neither is believed" in joined.problems[0]


def test_a_record_of_another_cell_is_told_and_counted_for_none() -> None:
    joined = join([CELL], [record(), record(2, cost=9)])
    assert joined.actual == DOLLAR // 2
    assert [each.cost for each in joined.foreign] == [9]
    assert joined.problems == (f"there is a record of {handle(2)}, which was not expected",)


PRE = [job("Gate"), job("Plan"), job("Claim"), job("Results")]


@pytest.mark.parametrize(
    ("jobs", "verdict", "actual", "kept", "note"),
    [
        (None, "failed", None, 2 * DOLLAR, "the jobs of the run are not known"),
        # It never began.
        ([], "not_run", 0, 0, "never began"),
        (PRE, "not_run", 0, 0, "never began"),
        ([job("caller / Gate"), job("caller / Plan")], "not_run", 0, 0, "never began"),
        ([*PRE, job("${{ matrix.handle }}", began=False)], "not_run", 0, 0, "never began"),
        ([*PRE, job(began=False)], "not_run", 0, 0, "never began"),
        ([*PRE, job(handle(2), paid="yes")], "not_run", 0, 0, "never began"),
        # It began and did not come to the paid step.
        ([*PRE, job(paid="no")], "not_run", 0, 0, "before the paid step"),
        ([*PRE, job(began=False), job(paid="no")], "not_run", 0, 0, "before the paid step"),
        # It may have been paid for.
        ([*PRE, job()], "failed", None, 2 * DOLLAR, "left no result record"),
        ([*PRE, job(paid="yes")], "failed", None, 2 * DOLLAR, "left no result record"),
        ([*PRE, job(paid="no"), job(paid="unknown")], "failed", None, 2 * DOLLAR, "left no result record"),
        ([*PRE, job(f"paid / {handle(1)}", paid="yes")], "failed", None, 2 * DOLLAR, "left no result record"),
        ([*PRE, job(f"cells ({handle(1)}, KEY, linux, 10)")], "failed", None, 2 * DOLLAR, "left no result record"),
        # Jobs have other names than the template gives.
        ([job("cells (1)"), job("cells (2)")], "failed", None, 2 * DOLLAR, "named by its cell"),
        ([*PRE, job("Something")], "failed", None, 2 * DOLLAR, "named by its cell"),
        ([*PRE, job("Something", paid="no")], "not_run", 0, 0, "never began"),
        ([*PRE, job(f"x{handle(1)}")], "failed", None, 2 * DOLLAR, "named by its cell"),
        ([*PRE, job(f"{handle(1)}0")], "failed", None, 2 * DOLLAR, "named by its cell"),
    ],
)
def test_a_cell_without_a_record(jobs: Any, verdict: str, actual: int | None, kept: int, note: str) -> None:
    joined = join([CELL], [], jobs)
    assert money(joined.cells[0]) == (verdict, actual, kept, 0)
    assert note in joined.cells[0].note
    assert joined.without_record == (handle(1),)


def test_nothing_was_expected() -> None:
    assert join([], []).cells == ()


records = st.builds(
    record,
    st.integers(0, 4),
    campaign=st.sampled_from(["c1", "c2"]),
    attempt=st.integers(1, 3),
    cost=st.one_of(st.none(), st.integers(0, 3 * DOLLAR)),
    verdict=st.sampled_from(VERDICTS),
    started=st.sampled_from(["2026-11-30T00:00:00.000Z", "2026-11-30T01:00:00.000Z"]),
)
jobs = st.one_of(
    st.none(),
    st.lists(
        st.builds(
            job,
            st.sampled_from([handle(n) for n in range(5)] + ["Gate", "cells"]),
            began=st.booleans(),
            paid=st.sampled_from(["yes", "no", "unknown"]),
        )
    ),
)


@given(st.lists(records, max_size=12), jobs, st.randoms())
def test_nothing_is_lost_counted_twice_or_free_by_mistake(found: list[CellRecord], jobs: Any, random: Any) -> None:
    expected = [PlannedCell(handle=handle(n), expected=DOLLAR, reserved=2 * DOLLAR) for n in range(3)]
    joined = join(expected, found, jobs)
    assert [cell.handle for cell in joined.cells] == [cell.handle for cell in expected]
    assert len(joined.foreign) == sum(each.handle not in {cell.handle for cell in expected} for each in found)
    for cell in joined.cells:
        own = {(each.campaign, each.attempt): each for each in found if each.handle == cell.handle}
        told = {each.cost for each in found if each.handle == cell.handle}
        if own and None in told:
            assert cell.kept >= DOLLAR or cell.kept >= 2 * DOLLAR - (cell.actual or 0)
        if cell.verdict == "passed":
            assert "passed" in {each.verdict for each in own.values()}
        if not cell.kept and not cell.actual:
            assert told == {0} or (not own and jobs is not None)
        if cell.actual is None:
            assert cell.kept >= 2 * DOLLAR
        assert cell.attempts >= len(own)
    again = list(found)
    random.shuffle(again)
    assert join(expected, again, jobs).cells == joined.cells


def test_no_record_can_say_more_than_the_ledgers_can_hold() -> None:
    """Foreign code writes records: of many attempts of a billion dollars each, or with an attempt of any number."""
    cells = [PlannedCell(handle=handle(number), expected=DOLLAR, reserved=2 * DOLLAR) for number in range(256)]
    dear = [record(number, campaign=f"c{copy}", cost=10**15) for number in range(256) for copy in range(3)]
    joined = join(cells, dear)
    assert joined.actual == 256 * MOST_OF_A_CELL
    assert "are counted" in joined.cells[0].note
    assert len(joined.problems) == 256
    many = [record(number, attempt=2**53 - 1, cost=10**15) for number in range(256)]
    for found in (joined, join(cells, many)):
        assert found.actual + found.kept < 2**53
        assert all(each.actual is None or each.actual <= MOST_OF_A_CELL for each in found.cells)


def test_a_cell_that_cost_more_than_was_reserved_keeps_no_less_than_nothing() -> None:
    assert money(outcome(record(attempt=2, cost=5 * DOLLAR))) == ("passed", 5 * DOLLAR, DOLLAR, 2)
    free = PlannedCell(handle=handle(1), expected=0, reserved=0)
    assert money(join([free], [record(attempt=2, cost=5)]).cells[0]) == ("passed", 5, 0, 2)
