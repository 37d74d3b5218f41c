"""What the action's ``dispatch`` does: a planned campaign is paid for, and its runs are followed to their end."""

from __future__ import annotations

import os
from pathlib import Path

from runner_e2e import gha
from runner_e2e.errors import UsageError

__all__ = ["dispatch"]


def dispatch() -> int:
    """Starts the campaign of the input ``campaign``, or goes on with it; returns the status of ``dispatch start``.

    Raises what that raises, and :class:`~runner_e2e.errors.UsageError` without the input or the campaign key.
    """
    from runner_e2e.cells.handles import DEFAULT_KEY_VARIABLE, campaign_keys
    from runner_e2e.cli.dispatch_client import Settings, act
    from runner_e2e.cli.dispatch_session import opened
    from runner_e2e.dispatch.campaign import read_campaign
    from runner_e2e.dispatch.ledger import default_path

    file = gha.read_input("campaign")
    if not file:
        raise UsageError(
            "the input `campaign` is missing", fix="give the file that `runner-e2e dispatch plan … -o FILE` wrote"
        )
    keys = campaign_keys(os.environ)
    if not keys:
        raise UsageError(
            f"{DEFAULT_KEY_VARIABLE} is not set", fix="give the campaign key to this step, in its `env:` alone"
        )
    campaign = read_campaign(Path(file), keys)
    settings = Settings(token_variable=gha.input_variable("github-token"), keys=keys)
    with opened(default_path(os.environ)) as ledger:
        state = ledger.add(campaign)
        return act(ledger, state, settings, lambda client: client.watch(state.id))
