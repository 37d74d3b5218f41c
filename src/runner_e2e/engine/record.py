"""Puts the record of an attempt together from its facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from runner_e2e import __version__
from runner_e2e.engine.campaign_plan import this_host
from runner_e2e.engine.processes import Ended
from runner_e2e.report.billing import Usage
from runner_e2e.report.results import Exit, Failure, Output, Result, Retry, Verdict, time_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.engine.campaign_plan import Campaign, PlannedCell

__all__ = ["NOTHING_SPENT", "Facts", "assemble"]

# Where no harness was executed nothing can have been paid for: this zero is known, not assumed.
NOTHING_SPENT: Final = Usage(cost_usd=0.0, cost_status="reported")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of an attempt when its record is made. ``started`` is seconds since the epoch."""

    verdict: Verdict
    failure: Failure | None
    retry: Retry
    started: float
    ended: Ended = field(default_factory=lambda: Ended(seconds=0.0))
    usage: Usage = NOTHING_SPENT
    output: Output = field(default_factory=Output)
    sandbox: tuple[Mapping[str, object], ...] = ()
    artifacts: tuple[Mapping[str, object], ...] = ()
    notes: tuple[str, ...] = ()
    audit: Mapping[str, object] | None = None


def assemble(campaign: Campaign, planned: PlannedCell, number: int, facts: Facts) -> Result:
    """Returns the record of attempt *number* of a planned cell."""
    ended = facts.ended
    return Result(
        id=planned.cell.id,
        handle=planned.handle,
        campaign=campaign.name,
        attempt=number,
        attempts=planned.attempts,
        selection=planned.selection,
        verdict=facts.verdict,
        failure=facts.failure,
        started=time_text(facts.started),
        ended=time_text(facts.started + ended.seconds),
        duration_s=round(ended.seconds, 3),
        exit=Exit(code=ended.code, signal=ended.signal, timed_out=ended.timed_out),
        usage=facts.usage,
        retry=facts.retry,
        output=facts.output,
        left_processes=ended.left,
        sandbox=facts.sandbox,
        artifacts=facts.artifacts,
        notes=facts.notes,
        probe=campaign.probe,
        audit=facts.audit,
        definition_hash=planned.cell.definition_hash,
        engine=__version__,
        host=this_host(),
    )
