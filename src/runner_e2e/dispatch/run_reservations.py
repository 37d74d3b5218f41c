"""What a run does with the shared ledger: it reserves before it claims, and settles what it has cost.

A run that a client sent finds the client's reservation by its nonce. One that nobody sent (a schedule, a start by
hand) and a rerun have reservations of their own. In a repository without a ledger nothing is kept.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from runner_e2e.dispatch.campaign import PlannedCell
from runner_e2e.dispatch.claim import (
    CLAIMS,
    RERUNS,
    Claim,
    authorise,
    find_holder,
    manual_nonce,
    scheduled_nonce,
    take_claim,
)
from runner_e2e.dispatch.money import BudgetError, micros, usd
from runner_e2e.dispatch.outcomes import join, nothing_paid
from runner_e2e.dispatch.records import moment_of, read_run
from runner_e2e.dispatch.run_results import job_states
from runner_e2e.dispatch.shared_ledger import SharedLedger
from runner_e2e.dispatch.shared_ledger_file import Entry
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.dispatch.downloads import CellRecord
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.outcomes import Joined
    from runner_e2e.dispatch.records import RunRecord

__all__ = ["Bill", "RunPlan", "Settlement", "authorise_within_caps", "bill_of", "claim_within_caps", "settle_run"]


_SLACK = timedelta(seconds=30)
"""What jobs of an attempt may seem to have begun before it: one that is taken for an earlier one must be none of it."""

_NAMELESS = "cell"
"""What a single cell is called that left no record; no job has this in its name."""


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What a run is expected to cost at most, in micro-dollars for all planned attempts; None where unknown.

    *reserved* is for all cells, *largest* for the dearest of them.
    """

    cells: int
    reserved: int | None
    largest: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What the plan of a run said: the *handles* of its cells, none for a single one, which its records name.

    *largest* is what the dearest of them may cost, in micro-dollars; None where it was not handed on.
    """

    handles: tuple[str, ...] = ()
    largest: int | None = None


def bill_of(catalog: Catalog, cells: Sequence[Cell]) -> Bill:
    """The bill of *cells*, with the retries that *catalog* plans."""
    costs = [None if cell.expected_cost is None else micros(cell.expected_cost) for cell in cells]
    known = [each for each in costs if each is not None]
    attempts = 1 + catalog.retries
    if len(known) != len(costs):
        return Bill(cells=len(costs), reserved=None)
    return Bill(cells=len(costs), reserved=sum(known) * attempts, largest=max(known, default=0) * attempts)


def claim_within_caps(api: GitHubApi, claim: Claim, bill: Bill, *, commit: str) -> Entry | None:
    """Takes *claim* when its cost is reserved; returns the reservation, None where the repository keeps no ledger.

    Raises :class:`~runner_e2e.dispatch.money.BudgetError` where a cap would be passed, or the cost is not known and
    there are caps; what :func:`~runner_e2e.dispatch.claim.take_claim` raises for the claim.
    """
    entry = None
    if _can_be_taken(api, claim):
        entry = SharedLedger(api).reserve_for_nonce(_entry_of(claim, bill))
        _check_coverage(entry, bill, claim)
    try:
        take_claim(api, claim, commit=commit)
    except RefusedError:
        if entry is not None and entry.key == _entry_of(claim, bill).key:
            _give_back(api, entry)
        raise
    return entry


def authorise_within_caps(api: GitHubApi, run: RunRecord, nonce: str, *, cost: int | None = None) -> Claim:
    """Lets the next attempt of *run* pay, when its cost is reserved.

    It is taken to cost *cost* micro-dollars; without it what was reserved for an attempt before. What earlier attempts
    have reserved and certainly did not pay is given back first. Raises
    :class:`~runner_e2e.dispatch.money.BudgetError` where a cap would be passed, what
    :func:`~runner_e2e.dispatch.claim.authorise` raises, and :class:`~runner_e2e.errors.RefusedError` where something
    else than *cost* is reserved already.
    """
    first = Claim(nonce=nonce, run=run.id, attempt=1)
    again = Claim(nonce=nonce, run=run.id, attempt=run.attempt + 1)
    if _can_be_taken(api, first):
        ledger = SharedLedger(api)
        earlier = ledger.of_nonce(nonce) or next(iter(ledger.entries(_key_of(first))), None)
        _release_unpaid(api, ledger, run, nonce)
        bill = Bill(cells=earlier.cells if earlier else 0, reserved=earlier.reserved if earlier else None)
        if cost is not None:
            bill = Bill(cells=bill.cells, reserved=cost)
        elif bill.reserved is None and ledger.caps():
            raise BudgetError(
                f"what attempt {again.attempt} of run {run.id} will cost is not known, and there are caps",
                why="the ledger does not say what its first attempt was expected to cost",
                fix="give it as --cost USD",
            )
        entry = ledger.reserve_for_nonce(_entry_of(again, bill, earlier))
        if cost is not None and entry is not None and entry.reserved != cost:
            kept = "an unknown amount" if entry.reserved is None else usd(entry.reserved)
            raise RefusedError(
                f"attempt {again.attempt} of run {run.id} is authorised already, with {kept} reserved for it",
                why="what is reserved for an attempt is not changed",
                fix=f"start it so; where that is too little it pays nothing, and attempt {again.attempt + 1} can have "
                "more",
            )
    return authorise(api, run, nonce)


@dataclass(frozen=True, kw_only=True)
class Settlement:
    """What was written for a run, in micro-dollars. *charged* is None where *entry* stays as it was.

    *kept* is the part of it that stays reserved for what is unknown.
    """

    entry: Entry
    charged: int | None
    kept: int
    joined: Joined


def settle_run(
    api: GitHubApi, claim: Claim, plan: RunPlan, records: Sequence[CellRecord], *, inside: bool = True
) -> Settlement | None:
    """Writes what the attempt that holds *claim* has cost by its *records*; all cell jobs of it are over.

    A cell of unknown cost keeps what the dearest of the *plan* may cost, and all together no more than was reserved.
    *inside*: a job of that attempt asks, and none of a later one. None where nothing is reserved for the claim, or the
    repository keeps no ledger. Raises :class:`~runner_e2e.errors.GitHubError` where it should be tried again later.
    """
    ledger = SharedLedger(api)
    entry = ledger.of_nonce(claim.name)
    if entry is None:
        # Where there is a ledger by now, what was paid counts in it.
        entry = ledger.add_unreserved(_entry_of(claim, Bill(cells=max(1, len(plan.handles)), reserved=None)))
    if entry is None:
        return None
    own = _of_attempt(api, claim, records)
    names = plan.handles or tuple(dict.fromkeys(each.handle for each in own)) or (_NAMELESS,)
    # The ledger has one sum for all cells, and which of them is dear is not public. At least 1, so that what is unknown
    # shows in the sum.
    most = max(1, (entry.reserved or 0) if plan.largest is None else plan.largest)
    expected = [PlannedCell(handle=each, expected=most, reserved=most) for each in names]
    joined = join(expected, own)
    if joined.without_record:
        joined = join(expected, own, job_states(api, claim.run, only_attempt=claim.attempt, inside=inside))
    unknown = any(each.kept for each in joined.cells)
    nothing_known = all(each.actual is None for each in joined.cells)
    kept = joined.kept if entry.reserved is None else min(joined.kept, max(entry.reserved, unknown))
    charged = None if unknown and (nothing_known or entry.reserved is None) else joined.actual + kept
    if unknown and entry.charged is not None and entry.charged >= joined.actual:
        charged = None  # who settled it before saw more
    ledger.settle([(entry.key, charged, claim.run)])
    return Settlement(entry=entry, charged=charged, kept=kept, joined=joined)


def _of_attempt(api: GitHubApi, claim: Claim, records: Sequence[CellRecord]) -> list[CellRecord]:
    """Without the records of earlier attempts, which a rerun finds among its artifacts where a cell left none."""
    if claim.attempt == 1:
        return list(records)
    began = _start_of(api, claim.run, claim.attempt)
    return [each for each in records if moment_of(each.started) >= began]


def _start_of(api: GitHubApi, run: int, attempt: int) -> datetime:
    return moment_of(read_run(api, run, attempt).started_at)


def _can_be_taken(api: GitHubApi, claim: Claim) -> bool:
    """Whether the claim is free or ours: a twin and a rerun that nobody authorised reserve nothing."""
    if claim.attempt > 1:
        holder = find_holder(api, f"{RERUNS}/{claim.name}")
        if holder is None or holder.claim != claim:
            return False
    holder = find_holder(api, f"{CLAIMS}/{claim.name}")
    return holder is None or holder.claim == claim


def _release_unpaid(api: GitHubApi, ledger: SharedLedger, run: RunRecord, nonce: str) -> None:
    """Gives back what attempts of *run* have reserved that are over and did not come to their paid step.

    A run that was cancelled between reserving and claiming is one, and a rerun of the failed jobs alone. The
    reservation of a first attempt is that of its twins too, where a client made the nonce: they must not get the claim.
    """
    if run.status != "completed":
        return
    own = nonce in {manual_nonce(run.id), scheduled_nonce(run.id)}
    for attempt in range(1, run.attempt + 1):
        claim = Claim(nonce=nonce, run=run.id, attempt=attempt)
        entry = ledger.of_nonce(claim.name)
        if entry is None or entry.state != "reserved" or entry.key != _key_of(claim):
            continue
        holder = find_holder(api, f"{CLAIMS}/{claim.name}")
        if attempt > 1 or own or (holder is not None and holder.claim == claim):
            since = None if attempt == 1 else _start_of(api, run.id, attempt) - _SLACK
            jobs = job_states(api, run.id, only_attempt=attempt, since=since)
            if jobs and nothing_paid(jobs):
                ledger.release([entry.key], made=[claim.name])


def _give_back(api: GitHubApi, entry: Entry) -> None:
    """Releases what a run reserved just before the claim was burned: nothing can be paid under its nonce any more.

    Where another run has the claim, it pays from this reservation.
    """
    with suppress(GitHubError):
        holder = find_holder(api, f"{CLAIMS}/{entry.nonce}")
        if holder is not None and holder.burned:
            SharedLedger(api).release([entry.key], made=[entry.nonce])


def _entry_of(claim: Claim, bill: Bill, earlier: Entry | None = None) -> Entry:
    """A reservation of a run itself; a rerun's belongs to the campaign of the attempt before."""
    name = f"run-{claim.run}"
    return Entry(
        key=_key_of(claim),
        campaign=earlier.campaign if earlier else name,
        owner=earlier.owner if earlier else name,
        nonce=claim.name,
        cells=bill.cells,
        reserved=bill.reserved,
    )


def _key_of(claim: Claim) -> str:
    """The key of what a run itself reserves for *claim*."""
    return f"run-{claim.run}" if claim.attempt == 1 else f"run-{claim.run}-{claim.attempt}"


def _check_coverage(entry: Entry | None, bill: Bill, claim: Claim) -> None:
    """A client plans with the catalog that it has, a run with that of its target."""
    if entry is None:
        return
    if entry.state == "settled":
        raise RefusedError(
            f"{claim.name} is settled in the shared ledger ({entry.key}), and its claim is free",
            why="it was paid for, and the claim was removed since" if entry.charged else "it was given up",
            fix="start a new run; see who removed the ref of the claim",
        )
    if entry.reserved is None or bill.reserved is None or bill.reserved <= entry.reserved:
        return
    what = f"this run may cost {usd(bill.reserved)}, and {usd(entry.reserved)} are reserved for it ({entry.key})"
    if claim.attempt > 1:
        amount = usd(bill.reserved).removeprefix("$")
        raise RefusedError(
            what,
            why="the rerun was authorised with less",
            fix=f"`runner-e2e dispatch authorise-rerun {claim.run} --cost {amount}`, then run all jobs again",
        )
    raise RefusedError(
        what,
        why="its target has another catalog than the one the campaign was planned with",
        fix="plan the campaign from the catalog of the target",
    )
