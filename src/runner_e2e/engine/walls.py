"""Proves that the sandbox holds on this host before the first cell is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner_e2e.errors import RefusedError, RunnerE2EError
from runner_e2e.sandbox.layouts import read_layout
from runner_e2e.sandbox.policy import Policy
from runner_e2e.sandbox.probe import StoppedError, append_to_log, run_probe

if TYPE_CHECKING:
    from runner_e2e.engine.campaign_plan import Campaign, Reporter
    from runner_e2e.engine.cancellation import Cancellation

__all__ = ["SERVER_LOG", "prove_walls"]

SERVER_LOG: Final = "server.log"
LAYOUT: Final = "generic"


def prove_walls(
    campaign: Campaign, reporter: Reporter, cancellation: Cancellation, *, insist: bool
) -> dict[str, object]:
    """Probes this host when a cell of *campaign* costs money, and appends the result to the campaign's server log.

    Returns the summary for the records of its attempts.

    A check that failed is a warning, or with *insist* a :class:`RefusedError`: nothing was started or paid for then.
    So is a host on which the sandbox cannot be set up at all. Asked to stop, it proves nothing: no cell starts then.
    """
    if not any(planned.cell.billable for planned in campaign.cells):
        return {"why_not": "no cell of the campaign costs money"}
    log = campaign.directory / SERVER_LOG
    try:
        policy = Policy(network=campaign.catalog.network)
        result = run_probe(read_layout(LAYOUT), policy=policy, stop=cancellation.fileno())
        append_to_log(result, log)
    except StoppedError:
        return {"why_not": "the run was stopped"}
    except RunnerE2EError as error:
        what, why = "the sandbox cannot be proven on this host", str(error)
        proof: dict[str, object] = {"why_not": f"{what}: {error.problem.what}"}
    else:
        proof = result.summary()
        if not result.failures:
            return proof
        what, why = "the sandbox does not hold on this host", f"these checks failed: {', '.join(result.failures)}"
    if insist:
        fix = "see `runner-e2e sandbox probe --explain` on this host, and docs/sandbox.md for what it needs"
        raise RefusedError(what, why=f"{why}; the log is {log}", fix=fix)
    reporter.warning(f"{what}: {why}; the log is {log}")
    return proof
