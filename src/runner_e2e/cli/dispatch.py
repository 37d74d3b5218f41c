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
    "seal": ("runner_e2e.cli.dispatch_keys", "seal", "Seal a selection for the inputs of a dispatch."),
    "authorise-rerun": (
        "runner_e2e.cli.dispatch_claims", "authorise_rerun", "Let the next attempt of a run pay once more."
    ),
    "cleanup": ("runner_e2e.cli.dispatch_claims", "cleanup", "Remove claims that no run can use any more."),
}  # fmt: skip


@click.group(cls=LazyGroup, lazy=VERBS)
def dispatch() -> None:
    """Pay for cells on GitHub Actions, each once."""
