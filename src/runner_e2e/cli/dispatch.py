"""``runner-e2e dispatch``: pays for cells on GitHub Actions, each once. The verbs are loaded when they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runner_e2e.cli.group import LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["VERBS", "dispatch"]

# In the order in which a person needs them.
VERBS: Mapping[str, tuple[str, str, str]] = {
    "keygen": ("runner_e2e.cli.dispatch_keys", "keygen", "Make a campaign key."),
    "plan": ("runner_e2e.cli.dispatch_plan", "plan", "Say what a campaign would cost, and write its file."),
    "start": ("runner_e2e.cli.dispatch_run", "start", "Pay for a campaign: reserve, send, and follow it."),
    "watch": ("runner_e2e.cli.dispatch_run", "watch", "Follow a campaign to its end."),
    "status": ("runner_e2e.cli.dispatch_state", "status", "Say how campaigns stand, by the ledger alone."),
    "results": ("runner_e2e.cli.dispatch_state", "results", "List cells with verdict and cost."),
    "resume": ("runner_e2e.cli.dispatch_run", "resume", "Go on after a crash: send what was not sent."),
    "resolve": ("runner_e2e.cli.dispatch_resolve", "resolve", "Decide what is unknown or waits for a person."),
    "cancel": ("runner_e2e.cli.dispatch_resolve", "cancel", "Send nothing more, and stop the runs."),
    "export": ("runner_e2e.cli.dispatch_state", "export", "Print the whole ledger as lines of JSON."),
    "adopt": ("runner_e2e.cli.dispatch_state", "adopt", "Let this machine act with a copied ledger."),
    "caps": ("runner_e2e.cli.dispatch_caps", "caps", "Show or set the most that may be spent."),
    "seal": ("runner_e2e.cli.dispatch_keys", "seal", "Seal a selection for the inputs of a dispatch."),
    "authorise-rerun": ("runner_e2e.cli.dispatch_claims", "authorise_rerun", "Let a run's next attempt pay once more."),
    "cleanup": ("runner_e2e.cli.dispatch_claims", "cleanup", "Remove claims that no run can use any more."),
}  # fmt: skip


@click.group(cls=LazyGroup, lazy=VERBS)
def dispatch() -> None:
    """Pay for cells on GitHub Actions, each once."""
