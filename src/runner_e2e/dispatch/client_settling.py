"""Settle: what the cells of an ended run cost, in the shared ledger first and in the local one after it.

Nothing is settled before the run is over and its results were looked for. What stays unknown keeps its reservation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from runner_e2e.cells.wording import count
from runner_e2e.dispatch.client_looking import is_gone, read_run
from runner_e2e.dispatch.money import usd
from runner_e2e.dispatch.outcomes import Joined, join
from runner_e2e.dispatch.run_results import outcomes_of_run
from runner_e2e.errors import DefectError, GitHubError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.dispatch.client_context import Context
    from runner_e2e.dispatch.ledger_records import CampaignState, ShardState

__all__ = ["RESULTS_GRACE", "give_up", "settle_ended"]

RESULTS_GRACE: Final = 120.0
"""Seconds after the end of a run during which a result that is missing may still appear: lists can be behind."""

_FETCH_PAUSE: Final = 30.0
_MOST_PROBLEMS: Final = 3


@dataclass(frozen=True, kw_only=True)
class _Result:
    """What is known of the cells of one shard."""

    shard: ShardState
    joined: Joined
    problems: tuple[str, ...] = ()


def settle_ended(context: Context, campaign: CampaignState) -> None:
    """Settles every shard whose run is over. Raises :class:`~runner_e2e.errors.GitHubError` where one cannot be."""
    failure: GitHubError | None = None
    results = []
    for shard in context.shards(campaign.id, "ended"):
        try:
            result = _joined(context, shard)
        except GitHubError as error:
            failure = error
            continue
        if result is not None:
            results.append(result)
    _settle(context, campaign, results)
    if failure is not None:
        raise failure


def give_up(context: Context, campaign: CampaignState, shard: ShardState) -> None:
    """Ends *shard*, which is stuck, on a person's word: nobody knows what its cells cost, so all stays reserved."""
    cells = tuple(context.ledger.cells(campaign.id, shard.index))
    problem = f"given up: {shard.note}"
    _settle(context, campaign, [_Result(shard=shard, joined=join(cells, (), None), problems=(problem,))])


def _joined(context: Context, shard: ShardState) -> _Result | None:
    """What became of the cells of *shard*; None where it is too early to say.

    Raises :class:`~runner_e2e.errors.GitHubError`.
    """
    if shard.run is None:
        raise DefectError(f"shard {shard.index} ended without a run")
    if 0 < context.fetch_from.get(shard.run, 0.0) - context.now() <= _FETCH_PAUSE:
        return None
    cells = tuple(context.ledger.cells(shard.campaign, shard.index))
    # A later attempt is new spending, with a reservation of its own.
    only = None if shard.attempt == 1 else 1
    results, joined = outcomes_of_run(context.api, shard.run, cells, only_attempt=only)
    problems = joined.problems
    # A list of jobs can be behind too, and lack the job of a cell that ran.
    waited = context.now() - context.since(f"end of {shard.run}", shard.changed_at)
    early = (joined.kept or joined.without_record) and waited < RESULTS_GRACE
    if joined.kept and results.state == "missing" and read_run(context, shard.run) is None:
        early = early or not is_gone(context, shard.run)
        problems = (f"run {shard.run} was deleted, and its results with it",)
    if early:
        context.fetch_from[shard.run] = context.now() + _FETCH_PAUSE
        return None
    return _Result(shard=shard, joined=joined, problems=problems)


def _agreed(joined: Joined, charged: int) -> Joined:
    """The outcomes, where the run itself has written what its cells cost together.

    What they are not known to have cost is the rest of that, and stays reserved for those whose cost is unknown.
    """
    rest = charged - joined.actual
    unknown = [number for number, cell in enumerate(joined.cells) if cell.kept]
    if rest < 0 or not unknown:
        return joined
    share, more = divmod(rest, len(unknown))
    cells = list(joined.cells)
    for place, number in enumerate(unknown):
        note = f"{cells[number].note}; the run itself says what such cells cost together: {usd(rest)}"
        cells[number] = replace(cells[number], kept=share + (place < more), note=note)
    return replace(joined, cells=tuple(cells))


def _settle(context: Context, campaign: CampaignState, results: Sequence[_Result]) -> None:
    if not results:
        return
    context.locate(campaign)
    if any(result.joined.kept for result in results):
        # The run's own last job saw more, where its artifact is gone by now.
        known = {entry.key: entry.charged for entry in context.shared.entries(campaign.id)}
        results = [
            replace(result, joined=_agreed(result.joined, charged))
            if (charged := known.get(result.shard.key)) is not None
            else result
            for result in results
        ]
    context.shared.settle([(each.shard.key, each.joined.actual + each.joined.kept, each.shard.run) for each in results])
    for result in results:
        note = "; ".join(result.problems[:_MOST_PROBLEMS])
        if len(result.problems) > _MOST_PROBLEMS:
            note += f"; and {len(result.problems) - _MOST_PROBLEMS} more"
        shard = context.ledger.settle(result.shard, result.joined.cells, note=note)
        for problem in result.problems:
            context.tell("warning", f"shard {shard.index}: {problem}", shard=shard.index)
        context.told(shard, "settled", _sentence(result.joined))


def _sentence(joined: Joined) -> str:
    passed = sum(cell.verdict == "passed" for cell in joined.cells)
    kept = f", and {usd(joined.kept)} stay reserved for what is unknown" if joined.kept else ""
    return f"{passed} of {count(len(joined.cells), 'cell')} passed; {usd(joined.actual)}{kept}"
