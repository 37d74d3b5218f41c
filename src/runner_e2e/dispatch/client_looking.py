"""Look: which run holds the claim of each shard, which of them are over, and what is decided by that.

One list of the workflow's runs and one list of claims serve all shards. Both may be behind the truth: a list that
lacks something delays a decision and never makes one, since what decides is the claim's ref itself.
"""

from __future__ import annotations

import os.path
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from runner_e2e.dispatch.attachment import (
    CLOCK_SKEW,
    Ask,
    Attach,
    Burn,
    Look,
    Seen,
    Sought,
    Unpaid,
    Wait,
    decide,
    foreign_because,
    twins,
)
from runner_e2e.dispatch.call_budget import LimitedError
from runner_e2e.dispatch.claim import CLAIMS, burn, read_holder
from runner_e2e.dispatch.conditional import Shape
from runner_e2e.dispatch.github_api import UnknownOutcomeError, segment
from runner_e2e.dispatch.ledger_moves import Move
from runner_e2e.dispatch.records import run_of, value_of
from runner_e2e.dispatch.run_results import job_states
from runner_e2e.dispatch.shard_states import IN_DOUBT
from runner_e2e.errors import DefectError, GitHubError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner_e2e.dispatch.attachment import Decision, Origin
    from runner_e2e.dispatch.client_context import Context
    from runner_e2e.dispatch.ledger_records import CampaignState, ShardState
    from runner_e2e.dispatch.records import RunRecord

__all__ = ["GONE_AFTER", "Patience", "cancel_runs", "is_gone", "look", "read_run"]

Patience: TypeAlias = Literal["grace", "none", "cancel"]
"""How long a shard may stay in doubt: through the grace window, not at all where no run of it is there, not at all."""

GONE_AFTER: Final = 600.0
"""Seconds for which GitHub must say that a run does not exist before it is believed: a replica can be behind."""

_MOST_PAGES: Final = 10  # GitHub gives at most 1,000 results of a filtered search
_MOST_STEPS: Final = 8
_MOST_CANCELS: Final = 3


def look(context: Context, campaign: CampaignState, patience: Patience) -> None:
    """Finds the runs of the shards in doubt, and sees which of those that run are over.

    Raises :class:`~runner_e2e.errors.GitHubError` where GitHub does not answer; what could be decided stands then.
    """
    doubtful = context.shards(campaign.id, *IN_DOUBT)
    running = context.shards(campaign.id, "running")
    if not doubtful and not running:
        return
    runs = _list_runs(context, campaign, (*doubtful, *running))
    origin = context.origin(campaign) if doubtful or _has_twins(running, runs) else None
    failure: GitHubError | None = None
    for shard in running:
        try:
            _follow(context, shard, runs)
        except GitHubError as error:
            failure = failure or error
        if origin is not None:
            _stop_twins(context, shard, runs, origin)
    if doubtful and origin is not None:
        _read_claims(context, doubtful)
        unpaid = []
        for shard in doubtful:
            try:
                if _is_unpaid(context, shard, runs, origin, patience):
                    unpaid.append(shard)
            except GitHubError as error:
                failure = failure or error
        _release(context, unpaid)
    if failure is not None:
        raise failure


def cancel_runs(context: Context, runs: Iterable[int]) -> None:
    """Asks GitHub to stop *runs*. Nothing depends on it: one that goes on ends at the claim, or is settled."""
    for run in runs:
        times = context.cancelled.get(run, 0)
        if times >= _MOST_CANCELS:
            continue
        context.cancelled[run] = times + 1
        try:
            context.api.send("POST", f"actions/runs/{run}/cancel", accept={202, 404, 409})
        except UnknownOutcomeError:
            continue
        except GitHubError as error:
            context.tell("warning", f"run {run} could not be cancelled: {error.problem.what}")


def _list_runs(context: Context, campaign: CampaignState, shards: Sequence[ShardState]) -> dict[int, RunRecord]:
    """The runs that can belong to *shards*, of those that were created since the oldest was sent, by id."""
    oldest = min(shard.intended_at or context.now() for shard in shards) - CLOCK_SKEW
    since = datetime.fromtimestamp(oldest, UTC)
    found = {"event": "workflow_dispatch", "created": f">={since:%Y-%m-%dT%H:%M:%SZ}"}
    try:
        path = f"actions/workflows/{segment(campaign.workflow)}/runs"
        listing = context.reader.pages(path, "workflow_runs", found, most=_MOST_PAGES, item=_RUN)
    except LimitedError:
        raise
    except GitHubError:
        # A workflow whose file was deleted or renamed has no list any more; its runs are still there.
        listing = context.reader.pages("actions/runs", "workflow_runs", found, most=_MOST_PAGES, item=_RUN)
    nonces = {shard.nonce for shard in shards}
    numbers = {number for shard in shards for number in (shard.run, shard.hinted_run) if number is not None}
    runs = {}
    for item in listing.items:
        title = item.get("display_title")
        # Others are none of ours, whatever they are. An old server tells no titles.
        if title is None or str(title).rpartition(" ")[2] in nonces or item.get("id") in numbers:
            run = run_of(item)
            runs[run.id] = run
            context.missed.pop(run.id, None)
    return runs


def _slim(run: object) -> object:
    """What :func:`run_of` reads of a run. All of it is twenty times as much, and is kept for each page of a list."""
    if not isinstance(run, dict):
        return run
    kept = {name: run.get(name) for name in _OF_A_RUN}
    for name, parts in (("repository", ("id", "full_name")), ("head_repository", ("id",)), *_ACCOUNTS):
        whole = run.get(name)
        kept[name] = {part: whole.get(part) for part in parts} if isinstance(whole, dict) else None
    return kept


_OF_A_RUN: Final = (
    "id", "run_attempt", "event", "status", "path", "head_branch", "head_sha", "display_title", "created_at"
)  # fmt: skip
_ACCOUNTS: Final = tuple((name, ("id", "login", "type")) for name in ("actor", "triggering_actor"))
_RUN: Final = Shape(name="run/1", of=_slim)


def read_run(context: Context, number: int) -> RunRecord | None:
    """The run *number*; None where GitHub says that there is none, which :func:`is_gone` may not believe yet."""
    reading = context.reader.get(f"actions/runs/{number}", accept={404}, shape=_RUN)
    if reading.status == 404:
        context.missed.setdefault(number, context.now())
        return None
    context.missed.pop(number, None)
    return run_of(reading.data)


def is_gone(context: Context, number: int) -> bool:
    """Whether GitHub has said for long enough that there is no run *number*."""
    if number not in context.missed:
        return False
    # By a clock that was set back it is counted anew.
    context.missed[number] = since = min(context.missed[number], context.now())
    return context.now() - since >= GONE_AFTER


def _follow(context: Context, shard: ShardState, runs: dict[int, RunRecord]) -> None:
    """Notes that the run of *shard* is over."""
    if shard.run is None:
        raise DefectError(f"shard {shard.index} runs without a run")
    record = runs.get(shard.run) or read_run(context, shard.run)
    if record is None and not is_gone(context, shard.run):
        return
    # What is started again has ended; its new attempt is new spending, and may wait for an approval for weeks.
    if record is not None and record.status != "completed" and record.attempt <= (shard.attempt or 1):
        note = "" if record.status == "in_progress" else f"run {record.id} is {record.status}"
        _note(context, shard, record, note)
        return
    note = "" if record else f"run {shard.run} was deleted"
    shard = context.ledger.move(shard, "ended", attempt=record.attempt if record else None, note=note)
    context.told(shard, "ended", note or f"run {shard.run} is over")


def _note(context: Context, shard: ShardState, run: RunRecord, note: str) -> None:
    """Keeps what *shard* waits for, and says it where a person can help."""
    if note == shard.note:
        return
    context.ledger.move(shard, shard.state, note=note)
    if run.status == "waiting":
        text = f"shard {shard.index}: run {run.id} waits for somebody to approve it"
        context.tell("warning", text, shard=shard.index)


def _has_twins(shards: Sequence[ShardState], runs: dict[int, RunRecord]) -> bool:
    """Whether more runs carry the nonces of *shards* than hold their claims."""
    held = {shard.run for shard in shards}
    return any(run.id not in held and run.status != "completed" for run in runs.values())


def _stop_twins(context: Context, shard: ShardState, runs: dict[int, RunRecord], origin: Origin) -> None:
    """Stops runs that carry the nonce of *shard*, whose claim another holds: they would only end at the claim."""
    found = [run.id for run in twins(runs.values(), _sought(shard), origin, holder=shard.run or 0)]
    for number in found:
        if number not in context.cancelled:
            context.tell("twin", f"shard {shard.index}: run {number} is a twin of run {shard.run}, and is cancelled")
    cancel_runs(context, found)


def _read_claims(context: Context, shards: Sequence[ShardState]) -> None:
    """Who holds the claims of *shards*, as far as that can be seen: one list, and each tag once."""
    wanted = {f"refs/{CLAIMS}/{shard.nonce}": shard.nonce for shard in shards if shard.nonce not in context.holders}
    if not wanted:
        return
    # All claims of the last month are many more than ours, which were made at about the same time.
    prefix = os.path.commonprefix(list(wanted)).removeprefix("refs/")  # noqa: RUF071 - of letters, as matching-refs has it
    for ref in context.reader.pages(f"git/matching-refs/{segment(prefix)}", "", most=_MOST_PAGES).items:
        nonce = wanted.get(value_of(ref, str, "ref"))
        if nonce is not None:
            context.holders[nonce] = read_holder(context.api, ref)


def _is_unpaid(
    context: Context, shard: ShardState, runs: dict[int, RunRecord], origin: Origin, patience: Patience
) -> bool:
    """Does what follows for *shard* in doubt. Whether nothing was paid for it and nothing can be."""
    sought = _sought(shard)
    sought = replace(sought, intended_at=context.since(f"intent of {sought.nonce}", sought.intended_at))
    decision: Decision
    for _ in range(_MOST_STEPS):
        decision = decide(sought, _seen(context, sought, runs), origin)
        if isinstance(decision, Look):
            record = read_run(context, decision.run)
            if record is not None:
                runs[record.id] = record
                continue
            if not is_gone(context, decision.run):
                decision = Wait(why=f"run {decision.run} is not there yet")
        if isinstance(decision, Wait) and sought.nonce not in context.holders:
            decision = _hurried(context, decision, patience)
        # Asked when the claim is burned, not before: a list that is behind may lack the claim of the run that paid.
        if isinstance(decision, Unpaid) and (paid := _paid_unclaimed(context, shard, runs, origin)) is not None:
            decision = Ask(why=f"run {paid} came to the step that pays, and holds no claim: its workflow takes none")
        if isinstance(decision, Burn):
            # First the reason: a client that is killed between the two finds it.
            shard = context.ledger.move(shard, shard.state, note=decision.why)
            context.holders[sought.nonce] = burn(context.api, sought.nonce, commit=context.commit())
        elif not isinstance(decision, Look):
            return _concluded(context, shard, decision, runs, origin)
    raise DefectError(f"shard {shard.index} cannot be decided")


def _paid_unclaimed(context: Context, shard: ShardState, runs: dict[int, RunRecord], origin: Origin) -> int | None:
    """A run of *shard* that has ended and came to the paid step, though nobody holds the claim; None where none did.

    The template's cannot. A workflow that was changed may have lost its claim, or asks a version that takes none.
    """
    sought = _sought(shard)
    for run in runs.values():
        carries = run.id == sought.hinted or sought.nonce in run.title
        if carries and run.status == "completed" and not foreign_because(run, sought, origin):
            states = job_states(context.api, run.id) or ()
            if any(state.handle and state.paid != "no" for state in states):
                return run.id
    return None


def _hurried(context: Context, decision: Wait, patience: Patience) -> Decision:
    """What a person wants who does not want to wait: a run that is there gets its time, unless it is cancelled."""
    if patience == "grace" or (patience == "none" and decision.runs):
        return decision
    if decision.runs:
        cancel_runs(context, [run.id for run in decision.runs])
        return Burn(why=f"cancelled before run {decision.runs[0].id} had claimed")
    return Burn(why=f"given up: {decision.why}")


def _sought(shard: ShardState) -> Sought:
    return Sought(
        nonce=shard.nonce or "",
        intended_at=shard.intended_at or 0.0,
        answered=shard.state == "sent",
        hinted=shard.hinted_run,
    )


def _seen(context: Context, sought: Sought, runs: dict[int, RunRecord]) -> Seen:
    """What is known of one nonce: runs that carry it in their name, and those that were named by a reply or a claim."""
    holder = context.holders.get(sought.nonce)
    named = {sought.hinted, holder.claim.run if holder is not None and holder.claim is not None else None}
    found = tuple(run for run in runs.values() if run.id in named or sought.nonce in run.title)
    gone = frozenset(number for number in named if number is not None and is_gone(context, number))
    return Seen(runs=found, holder=holder, now=context.now(), gone=gone)


def _concluded(
    context: Context, shard: ShardState, decision: Decision, runs: dict[int, RunRecord], origin: Origin
) -> bool:
    """Writes down what *decision* says; whether it says that nothing can be paid."""
    if isinstance(decision, Attach):
        note = "" if decision.record else f"run {decision.run} was deleted"
        shard = context.ledger.move(shard, "running", run=decision.run, attempt=decision.attempt, note=note)
        context.told(shard, "running", f"run {decision.run} holds the claim")
        _stop_twins(context, shard, runs, origin)
        _follow(context, shard, runs)
    elif isinstance(decision, Wait) and decision.runs:
        _note(context, shard, decision.runs[0], decision.why)
    elif isinstance(decision, Ask):
        shard = context.ledger.move(shard, "stuck", note=decision.why)
        context.told(shard, "stuck", decision.why)
    return isinstance(decision, Unpaid)


def _release(context: Context, unpaid: Sequence[ShardState]) -> None:
    """Gives back what was reserved for shards that nothing can be paid for any more: there first, here afterwards."""
    if not unpaid:
        return
    made = context.ledger.nonces(unpaid[0].campaign)
    context.shared.release([shard.key for shard in unpaid], made=made)
    numbers = {shard.index for shard in unpaid}
    found = [shard for shard in context.ledger.shards(unpaid[0].campaign) if shard.index in numbers]
    moves = [Move(shard=shard, to="unpaid", note=f"nothing was paid: {shard.note}") for shard in found]
    for shard in context.ledger.move_all(moves):
        context.told(shard, "unpaid", shard.note)
