"""What became of the cells of a run: what was expected, held against its records and its jobs. Pure.

No cell is lost and nothing is counted twice. Every attempt's cost counts. A cell without a record was certainly not
paid for where its job never began or never came to the paid step; in every other case its cost is unknown, and what is
unknown keeps its reservation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from runner_e2e.dispatch.money import usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner_e2e.dispatch.downloads import CellRecord
    from runner_e2e.report.results import Verdict

__all__ = ["MOST_OF_A_CELL", "PAID_STEP", "CellOutcome", "Expected", "JobState", "Joined", "join", "nothing_paid"]

PAID_STEP: Final = "Run the cell"
"""The step of the template that pays."""

MOST_OF_A_CELL: Final = 10_000_000 * 1_000_000
"""Ten million dollars. Records come from jobs that run foreign code; what 256 of them say, spent and kept, must fit
into the 2^53 micro-dollars of the shared ledger's numbers, or nobody could read it any more."""

_HANDLE: Final = re.compile(r"(?<![0-9A-Za-z])cell-[0-9a-f]{16}(?![0-9A-Za-z])")
_OTHER_JOBS: Final = frozenset({"Gate", "Plan", "Claim", "Results", "Settle"})


class Expected(Protocol):
    """A cell that a run was to pay for; money in micro-dollars."""

    @property
    def handle(self) -> str:
        """What it is called in public."""

    @property
    def expected(self) -> int:
        """What one attempt is expected to cost."""

    @property
    def reserved(self) -> int:
        """What was reserved for all its attempts."""


@dataclass(frozen=True, kw_only=True)
class JobState:
    """A job of an attempt of a run that has ended. *began*: a runner took it. *paid*: its paid step was started."""

    name: str
    began: bool
    paid: Literal["yes", "no", "unknown"]

    @property
    def handle(self) -> str:
        """The handle in its name, empty where there is none: jobs of a matrix are named by their cell."""
        found = _HANDLE.search(self.name)
        return found[0] if found else ""


@dataclass(frozen=True, kw_only=True)
class CellOutcome:
    """What became of a cell; money in micro-dollars.

    *actual* is the sum of what is known, None where nothing is; *kept* is what stays reserved for the unknown rest, 0
    where there is none. So ``actual=0, kept=0`` is a cell that was certainly not paid for. *attempts* counts those
    that are known to have been made.
    """

    handle: str
    verdict: Verdict
    actual: int | None
    kept: int
    attempts: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Every expected cell in the given order, and what did not fit, in sentences for a person.

    *without_record* are the cells that only the run's jobs can tell of. *foreign* are records of cells that were not
    expected: they are counted for none.
    """

    cells: tuple[CellOutcome, ...]
    problems: tuple[str, ...] = ()
    without_record: tuple[str, ...] = ()
    foreign: tuple[CellRecord, ...] = ()

    @property
    def actual(self) -> int:
        """The sum of what is known."""
        return sum(cell.actual or 0 for cell in self.cells)

    @property
    def kept(self) -> int:
        """The sum of what stays reserved."""
        return sum(cell.kept for cell in self.cells)


def join(expected: Sequence[Expected], records: Iterable[CellRecord], jobs: Sequence[JobState] | None = None) -> Joined:
    """Holds *records* against the cells that were *expected*.

    *jobs* are all jobs of all attempts of the ended run, None where they were not asked for.
    """
    wanted = {cell.handle for cell in expected}
    found: dict[str, list[CellRecord]] = defaultdict(list)
    foreign: list[CellRecord] = []
    for record in records:
        if record.handle in wanted:
            found[record.handle].append(record)
        else:
            foreign.append(record)
    problems = [f"there is a record of {record.handle}, which was not expected" for record in foreign]
    cells = []
    for cell in expected:
        made = found.get(cell.handle)
        cells.append(_with_records(cell, made, problems) if made else _without_record(cell, jobs))
    return Joined(
        cells=tuple(cells),
        problems=tuple(problems),
        without_record=tuple(cell.handle for cell in expected if cell.handle not in found),
        foreign=tuple(foreign),
    )


def nothing_paid(jobs: Sequence[JobState]) -> bool:
    """Whether none of *jobs*, which are all of an attempt, came to a paid step, whatever they are called."""
    return all(job.name.rpartition(" / ")[2] in _OTHER_JOBS or job.paid == "no" for job in jobs if job.began)


def _with_records(cell: Expected, records: Sequence[CellRecord], problems: list[str]) -> CellOutcome:
    made: dict[tuple[str, int], list[CellRecord]] = defaultdict(list)
    for record in records:
        if all(record.digest != other.digest for other in made[record.campaign, record.attempt]):
            made[record.campaign, record.attempt].append(record)
    last = max(made, key=lambda which: (max(each.started for each in made[which]), *which))
    costs = [each[0].cost if len(each) == 1 else None for each in made.values()]
    numbers: dict[str, set[int]] = defaultdict(set)
    for campaign, attempt in made:
        numbers[campaign].add(attempt)
    lost = sum(max(each) - len(each) for each in numbers.values())
    notes = []
    contradictions = sum(len(each) > 1 for each in made.values())
    if contradictions:
        notes.append("two records of one attempt contradict each other")
        problems.append(f"{cell.handle}: {notes[-1]}; neither is believed")
    if lost:
        notes.append(f"{lost} earlier attempts left no record")
        problems.append(f"{cell.handle}: {notes[-1]}")
    if unknown := sum(cost is None for cost in costs) - contradictions:
        notes.append(f"the cost of {unknown} attempts is unknown")
    known = [cost for cost in costs if cost is not None]
    if (said := sum(known)) > MOST_OF_A_CELL:
        notes.append(f"it is said to have cost {usd(said)}, of which {usd(MOST_OF_A_CELL)} are counted")
        problems.append(f"{cell.handle}: {notes[-1]}")
    actual, kept = _money(cell, known, costs.count(None) + lost)
    return CellOutcome(
        handle=cell.handle,
        verdict=made[last][0].verdict if len(made[last]) == 1 else "failed",
        actual=actual,
        kept=kept,
        attempts=len(made) + lost,
        note="; ".join(notes),
    )


def _money(cell: Expected, known: Sequence[int], unknown: int) -> tuple[int | None, int]:
    """What is known, and what stays reserved for *unknown* attempts: the rest, and at least what they should cost."""
    actual = min(sum(known), MOST_OF_A_CELL)
    rest = max(0, cell.reserved - actual)
    kept = max(rest, min(unknown * cell.expected, MOST_OF_A_CELL)) if unknown else 0
    return (actual if known else None), kept


def _without_record(cell: Expected, jobs: Sequence[JobState] | None) -> CellOutcome:
    if jobs is None:
        return _unknown(cell, "no result record, and the jobs of the run are not known")
    own = [job for job in jobs if job.handle == cell.handle]
    if not own and not _tells_cells(jobs):
        return _unknown(cell, "no result record, and no job of the run is named by its cell")
    if all(not job.began for job in own):
        return _not_paid(cell, "its job never began")
    if all(job.paid == "no" for job in own):
        return _not_paid(cell, "its job ended before the paid step")
    return _unknown(cell, "its job began and left no result record")


def _tells_cells(jobs: Sequence[JobState]) -> bool:
    """Whether a cell that has no job among *jobs* certainly had none.

    So it is where jobs are named by cells, or only jobs began that do not pay. A workflow may name its jobs otherwise.
    """
    return any(job.handle for job in jobs) or nothing_paid(jobs)


def _unknown(cell: Expected, note: str) -> CellOutcome:
    return CellOutcome(
        handle=cell.handle, verdict="failed", actual=None, kept=cell.reserved, attempts=0, note=f"{note}; cost unknown"
    )


def _not_paid(cell: Expected, note: str) -> CellOutcome:
    return CellOutcome(handle=cell.handle, verdict="not_run", actual=0, kept=0, attempts=0, note=f"{note}; not paid")
