"""``runner-e2e dispatch caps``: the most that a repository may spend, and what it has."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.github_options import repository_options
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.dispatch.caps import Room
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.shared_ledger_file import Entry

__all__ = ["SCHEMA", "caps"]

SCHEMA = "runner-e2e.shared-spending/v1"
PERIODS = ("campaign", "day", "month")
_MOST_SHOWN = 20


@click.command(short_help="Show or set the most that may be spent.")
@click.option("--campaign", metavar="USD", help="The most that one campaign may cost.")
@click.option("--day", metavar="USD", help="The most that may be spent in a day (UTC).")
@click.option("--month", metavar="USD", help="The most that may be spent in a month (UTC).")
@click.option("--none", "without", type=click.Choice(PERIODS), multiple=True, help="Take a cap away; repeatable.")
@click.option(
    "--settle",
    "costs",
    type=(str, str),
    multiple=True,
    metavar="KEY USD",
    help="Write what a reservation has cost that no run settled; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@repository_options
def caps(
    *,
    api: GitHubApi,
    campaign: str | None,
    day: str | None,
    month: str | None,
    without: Sequence[str],
    costs: Sequence[tuple[str, str]],
    as_json: bool,
) -> None:
    """Show what is spent and reserved in a repository and under which caps, or change them.

    Caps hold for everybody who pays in the repository: campaigns of all operators, scheduled runs, and reruns. What
    they have reserved and spent lies on the branch runner-e2e-ledger, which the first cap or campaign makes. It needs
    a token with `contents: write` to change them. A cap refuses what is reserved from now on; what runs goes on.

    A reservation that no run settled, because its machine was lost, counts as if it had been spent. When you know what
    it has cost, write it with --settle; the keys are shown.
    """
    from runner_e2e.dispatch.money import micros
    from runner_e2e.dispatch.shared_ledger import SharedLedger

    given = {"campaign": campaign, "day": day, "month": month}
    changes = {name: micros(value) for name, value in given.items() if value is not None}
    for name in without:
        if name in changes:
            raise UsageError(f"--{name} and --none {name} exclude each other", fix="give one of them")
    settled = [(key, micros(value), None) for key, value in costs]
    ledger = SharedLedger(api)
    if settled:
        ledger.settle(settled)
    if changes or without:
        ledger.set_caps(**changes, **dict.fromkeys(without))
    _show(ledger.rooms(), ledger.caps().campaign, ledger.open_entries(), as_json=as_json)


def _show(rooms: Sequence[Room], campaign: int | None, entries: Sequence[Entry], *, as_json: bool) -> None:
    from runner_e2e.dispatch.money import usd

    if as_json:
        document = {
            "schema": SCHEMA,
            "campaign_cap": campaign,
            "rooms": [{**asdict(room), "left": room.left} for room in rooms],
            "reserved": [asdict(each) for each in entries],
        }
        click.echo(json.dumps(document, separators=(",", ":")))
        return
    click.echo(f"a campaign: {'no cap' if campaign is None else f'at most {usd(campaign)}'}")
    for room in rooms:
        cap = "no cap"
        if room.cap is not None and room.left is not None:
            cap = f"{usd(abs(room.left))} {'left of' if room.left >= 0 else 'over'} {usd(room.cap)}"
        unknown = f", {room.unknown} of unknown cost" if room.unknown else ""
        taken = f"{usd(room.settled)} spent, {usd(room.reserved)} reserved{unknown}"
        click.echo(f"{room.name.removeprefix('of ')}: {taken}; {cap}")
    if entries:
        click.echo("reserved:")
    for each in entries[:_MOST_SHOWN]:
        amount = "unknown" if each.reserved is None else usd(each.reserved)
        run = f", run {each.run}" if each.run else ""
        click.echo(f"  {each.key}: {amount} on {each.day} by {each.owner}{run}")
    if len(entries) > _MOST_SHOWN:
        click.echo(f"  and {len(entries) - _MOST_SHOWN} more (`--json` shows all)")
