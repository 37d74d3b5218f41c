"""``runner-e2e dispatch resolve`` and ``cancel``: decisions of a person about a campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runner_e2e.cells.wording import count
from runner_e2e.cli.dispatch_options import client_options, yes_option
from runner_e2e.cli.dispatch_session import ask, campaign_argument, opened
from runner_e2e.cli.ranges import Whole
from runner_e2e.dispatch.ledger_lock import HeldError
from runner_e2e.dispatch.money import usd
from runner_e2e.dispatch.shard_advice import chosen
from runner_e2e.dispatch.shard_states import IN_DOUBT

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.cli.dispatch_client import Settings
    from runner_e2e.dispatch.client import Client

__all__ = ["cancel", "resolve"]


@click.command(short_help="Decide what is unknown, and what waits for a person.")
@campaign_argument
@click.option(
    "--send-again", type=Whole(min=0), multiple=True, metavar="SHARD",
    help="Pay for this shard, which is unpaid, under a new nonce. Repeatable.",
)  # fmt: skip
@click.option(
    "--give-up", type=Whole(min=0), multiple=True, metavar="SHARD",
    help="End this shard, which is stuck; its reservation is kept, since its cost is unknown. Repeatable.",
)  # fmt: skip
@yes_option
@client_options
def resolve(
    *,
    campaign: str,
    send_again: tuple[int, ...],
    give_up: tuple[int, ...],
    yes: bool,
    ledger_path: Path,
    settings: Settings,
) -> int:
    """Decide now what of CAMPAIGN is unknown, without the wait that `dispatch watch` grants GitHub.

    A shard of which no run is seen gets its claim taken away, so that no run can ever pay for it; then it is unpaid.
    One whose run has the claim is followed. What only a person can decide needs --send-again or --give-up.

    Status: 0 every cell passed, 1 some did not, 2 bad usage, 3 refused, 5 not at its end.
    """
    from runner_e2e.cli.dispatch_client import act

    with opened(ledger_path) as ledger:
        state = ledger.find(campaign)
        shards = ledger.shards(state.id)
        # Before anybody is asked. What is in doubt so far may turn out to be unpaid, or stuck.
        chosen(state.id, shards, give_up, "give-up")
        wanted = chosen(state.id, shards, send_again, "send-again", yet={*IN_DOUBT, "stuck"})
        if wanted and not yes:
            most = usd(sum(shard.reserved for shard in wanted))
            facts = f"{state.id}: at most {most} for {count(len(wanted), 'unpaid shard')}"
            ask(facts, "Pay for it?", refusal="nothing was sent")
        return act(
            ledger,
            state,
            settings,
            lambda client: client.resolve(state.id, send_again=send_again, give_up_on=give_up),
            verb="" if send_again or give_up else "resolve",
        )


@click.command(short_help="Send nothing more of a campaign, and stop its runs.")
@campaign_argument
@yes_option
@client_options
def cancel(
    *,
    campaign: str,
    yes: bool,
    ledger_path: Path,
    settings: Settings,
) -> int:
    """Send nothing more of CAMPAIGN, take the claim of what has not begun, and stop its runs at GitHub.

    What was paid stays paid: `dispatch watch` follows the runs to their end and settles them. A client that runs the
    campaign at this moment, on this machine, does all of this in its next round.

    Status: 0 every cell passed, 1 some did not, 2 bad usage, 3 refused, 5 not at its end.
    """
    from runner_e2e.cli.dispatch_client import act

    with opened(ledger_path) as ledger:
        state = ledger.find(campaign)
        if not yes:
            ask(f"{state.id}: what was paid stays paid", "Stop its runs, and send nothing more?", refusal="it goes on")
        return act(ledger, state, settings, lambda client: _cancel(client, state.id), verb="cancel")


def _cancel(client: Client, campaign: str) -> None:
    try:
        client.cancel(campaign)
    except HeldError as error:
        click.echo(f"{error.problem.what}; it was asked to stop", err=True)
