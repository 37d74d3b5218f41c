"""``runner-e2e dispatch start``, ``resume`` and ``watch``: sends a campaign once, and follows its runs to their end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner_e2e.cells.wording import count
from runner_e2e.cli.dispatch_options import client_options, json_option, quiet_option, yes_option
from runner_e2e.cli.dispatch_session import (
    ask,
    campaign_argument,
    campaign_keys_in,
    ledger_option,
    opened,
)
from runner_e2e.cli.github_options import token_option
from runner_e2e.cli.ranges import Number
from runner_e2e.cli.selection_options import key_option
from runner_e2e.dispatch.money import usd

if TYPE_CHECKING:
    from runner_e2e.cli.dispatch_client import Settings
    from runner_e2e.dispatch.campaign import Campaign
    from runner_e2e.dispatch.ledger import Ledger

__all__ = ["resume", "start", "watch"]

poll_option = click.option(
    "--poll",
    type=Number(min=1, max=3600),
    default=None,
    metavar="SECONDS",
    help="Look so often. Default: every 5 seconds while something happens, then more seldom.",
)


@click.command(short_help="Pay for a campaign: reserve, send, and follow it.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@yes_option
@click.option("--detach", is_flag=True, help="Return when everything is sent.")
@poll_option
@token_option
@key_option
@ledger_option
@quiet_option
@json_option
def start(
    *,
    file: Path,
    yes: bool,
    detach: bool,
    poll: float | None,
    token_variable: str | None,
    key_variable: str,
    ledger_path: Path,
    quiet: bool,
    as_json: bool,
) -> int:
    """Pay for the campaign in FILE, which `dispatch plan -o FILE` wrote: reserve its cost, send its shards, each once,
    and follow them to their end.

    It may be called again at any time, also by mistake: what was sent is not sent again. Ctrl-C leaves; the runs go on,
    and `dispatch watch` follows them again.

    Status: 0 every cell passed, 1 some did not, 2 bad usage, 3 refused, 5 not at its end, 128+n left by signal n.
    """
    from runner_e2e.cli.dispatch_client import Settings, act
    from runner_e2e.cli.dispatch_plan import required_key
    from runner_e2e.dispatch.campaign import read_campaign
    from runner_e2e.dispatch.client import Client

    keys = campaign_keys_in(key_variable) or (required_key(key_variable),)
    campaign = read_campaign(file, keys)
    settings = Settings(token_variable=token_variable, keys=keys, poll=poll, quiet=quiet, as_json=as_json)
    with opened(ledger_path) as ledger:
        _confirm(campaign, ledger, yes=yes)
        state = ledger.add(campaign)
        action = Client.resume if detach else Client.watch
        return act(
            ledger, state, settings, lambda client: action(client, state.id), verb="resume" if detach else "watch"
        )


def _confirm(campaign: Campaign, ledger: Ledger, *, yes: bool) -> None:
    """Asks before anything new is paid for."""
    known = next((each for each in ledger.campaigns() if each.id == campaign.id), None)
    if yes or (known is not None and not known.totals.number("planned", "reserved")):
        return
    target = f", branch {campaign.target}" if campaign.target else ""
    facts = (
        f"{count(campaign.cells, 'cell')} in {count(len(campaign.shards), 'run')} on {campaign.repository}{target}: "
        f"expected {usd(campaign.expected)}, with all retries at most {usd(campaign.reserved)}"
    )
    ask(facts, "Pay for it?", refusal="nothing was reserved or sent")


@click.command(short_help="Follow a campaign to its end.")
@campaign_argument
@poll_option
@client_options
def watch(
    *,
    campaign: str,
    poll: float | None,
    ledger_path: Path,
    settings: Settings,
) -> int:
    """Follow CAMPAIGN (its id, or the beginning or end of it) until all of its runs are over and settled.

    What was never sent is sent first, as `dispatch start` would have.

    Status: 0 every cell passed, 1 some did not, 2 bad usage, 3 refused, 5 not at its end, 128+n left by signal n.
    """
    from runner_e2e.cli.dispatch_client import act

    with opened(ledger_path) as ledger:
        state = ledger.find(campaign)
        return act(ledger, state, replace(settings, poll=poll), lambda client: client.watch(state.id), verb="watch")


@click.command(short_help="Go on after a crash: send what was not sent.")
@campaign_argument
@client_options
def resume(*, campaign: str, ledger_path: Path, settings: Settings) -> int:
    """Send what of CAMPAIGN was certainly not sent yet, and return. What may have been sent is never sent again:
    `dispatch watch` finds out what became of it.

    Status: 0 every cell passed, 1 some did not, 2 bad usage, 3 refused, 5 not at its end.
    """
    from runner_e2e.cli.dispatch_client import act

    with opened(ledger_path) as ledger:
        state = ledger.find(campaign)
        return act(ledger, state, settings, lambda client: client.resume(state.id), verb="resume")
