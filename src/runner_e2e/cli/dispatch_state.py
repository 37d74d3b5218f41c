"""``runner-e2e dispatch status``, ``results``, ``export`` and ``adopt``: what the ledger holds. No request is made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from runner_e2e.cli.dispatch_session import (
    campaign_argument,
    campaign_keys_in,
    ledger_option,
    opened,
    outcome_status,
)
from runner_e2e.cli.selection_options import key_option
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState, CellState
    from runner_e2e.dispatch.shard_states import State

__all__ = ["CAMPAIGNS_SCHEMA", "EVENT_SCHEMA", "RESULTS_SCHEMA", "adopt", "export", "results", "status"]

CAMPAIGNS_SCHEMA: Final = "runner-e2e.dispatch-campaigns/v1"
EVENT_SCHEMA: Final = "runner-e2e.dispatch-event/v1"
RESULTS_SCHEMA: Final = "runner-e2e.dispatch-results/v1"

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on one line.")


@click.command(short_help="Say how campaigns stand, by the ledger alone.")
@click.argument("campaign", required=False, metavar="[CAMPAIGN]")
@click.option("--events", is_flag=True, help="Print everything that happened in CAMPAIGN.")
@ledger_option
@json_option
def status(*, campaign: str | None, events: bool, ledger_path: Path, as_json: bool) -> int:
    """Say how CAMPAIGN stands, or list all campaigns of this ledger. Nothing is asked of GitHub.

    Status for one campaign: 0 every cell passed, 1 some did not, 5 not at its end. For the list: 0.
    """
    with opened(ledger_path) as ledger:
        if campaign is None:
            if events:
                raise UsageError(
                    "--events is about one campaign", fix="name it: `runner-e2e dispatch status` lists them"
                )
            _print_campaigns(ledger, as_json=as_json)
            return 0
        return _print_status(ledger, ledger.find(campaign), events=events, as_json=as_json)


def _print_status(ledger: Ledger, state: CampaignState, *, events: bool, as_json: bool) -> int:
    from dataclasses import asdict

    from runner_e2e.cli.dispatch_outcome import campaign_data, print_campaign, print_json

    if events and as_json:
        for event in ledger.events(state.id):
            print_json({"schema": EVENT_SCHEMA, **asdict(event)})
    elif events:
        _print_events(ledger, state)
    elif as_json:
        print_json(campaign_data(ledger, state))
    else:
        print_campaign(ledger, state)
    return outcome_status(ledger, state)


def _print_events(ledger: Ledger, state: CampaignState) -> None:
    from runner_e2e.cli.dispatch_progress import clock
    from runner_e2e.cli.table import Column, print_table

    columns = tuple(
        Column(title=title, whole=title != "note") for title in ("time", "shard", "from", "to", "run", "note")
    )
    rows = [
        (
            clock(event.at, day=True),
            "" if event.shard is None else str(event.shard),
            event.before,
            event.after,
            "" if event.run is None else str(event.run),
            event.note,
        )
        for event in ledger.events(state.id)
    ]
    print_table(columns, rows)


def _print_campaigns(ledger: Ledger, *, as_json: bool) -> None:
    from runner_e2e.cli.dispatch_outcome import campaign_data, print_json
    from runner_e2e.cli.dispatch_view import amount
    from runner_e2e.cli.table import Column, print_table

    campaigns = ledger.campaigns()
    if as_json:
        data = [campaign_data(ledger, each) for each in campaigns]
        print_json({"schema": CAMPAIGNS_SCHEMA, "ledger": str(ledger.path), "campaigns": data})
        return
    if not campaigns:
        click.echo(f"no campaign in {ledger.path}")
        return
    columns = (
        Column(title="campaign", whole=True),
        Column(title="repository"),
        Column(title="cells", right=True, whole=True),
        Column(title="shards", styles={"": ""}),
        Column(title="spent", right=True, whole=True),
        Column(title="reserved", right=True, whole=True),
    )
    rows = [
        (
            each.id,
            each.repository,
            str(each.totals.cells),
            ", ".join(f"{number} {state}" for state, number in each.totals.states),
            amount(each.totals.actual),
            amount(each.totals.committed - each.totals.actual),
        )
        for each in campaigns
    ]
    print_table(columns, rows)


@click.command(short_help="List the cells of a campaign with verdict and cost.")
@campaign_argument
@click.option("--failed", is_flag=True, help="Only cells that did not pass.")
@click.option("--ids", is_flag=True, help="Show ids beside handles; needs the campaign key.")
@key_option
@ledger_option
@json_option
def results(*, campaign: str, failed: bool, ids: bool, key_variable: str, ledger_path: Path, as_json: bool) -> int:
    """List the cells of CAMPAIGN with what became of them and what they cost, by the ledger.

    With --ids it prints ids: not in a job whose log is public.

    Status: 0 every cell passed, 1 some did not, 5 not at its end.
    """
    with opened(ledger_path) as ledger:
        state = ledger.find(campaign)
        names = _ids(ledger, state, key_variable) if ids else {}
        cells = [cell for cell in ledger.cells(state.id) if not failed or cell.verdict != "passed"]
        states = {shard.index: shard.state for shard in ledger.shards(state.id)}
        if as_json:
            _print_results_json(state, cells, names, states)
        else:
            _print_results(state, cells, names, states)
            _print_missing(ledger, state, states)
        return outcome_status(ledger, state)


def _ids(ledger: Ledger, state: CampaignState, key_variable: str) -> Mapping[str, str]:
    """Handle -> id, from what the shards have sealed. Raises what opening raises."""
    from runner_e2e.cells.handles import handle
    from runner_e2e.cells.sealed import open_selection
    from runner_e2e.cli.dispatch_plan import required_key

    keys = campaign_keys_in(key_variable) or (required_key(key_variable),)
    found: dict[str, str] = {}
    for shard in ledger.shards(state.id):
        opening = open_selection(
            shard.sealed, keys=keys, nonce=f"{state.id}/{shard.index}", repository=state.repository
        )
        found |= {handle(opening.key, each): each for each in opening.ids}
    return found


def _print_results(
    state: CampaignState, cells: Sequence[CellState], names: Mapping[str, str], states: Mapping[int, State]
) -> None:
    from runner_e2e.cells.wording import count
    from runner_e2e.cli.dispatch_view import amount
    from runner_e2e.cli.table import Column, print_table

    columns = (
        Column(title="cell", whole=True),
        Column(title="id", whole=True),
        Column(title="verdict", styles={"passed": "green", "failed": "red", "": "yellow"}),
        Column(title="cost", right=True, whole=True),
        Column(title="attempts", right=True),
        Column(title="note"),
    )
    rows = [
        (
            cell.handle,
            names.get(cell.handle, ""),
            _verdict(cell, states[cell.shard]),
            _cost(cell),
            str(cell.attempts) if cell.verdict else "-",
            cell.note,
        )
        for cell in cells
    ]
    if rows:
        print_table(columns, rows)
    spent, reserved = sum(cell.actual or 0 for cell in cells), sum(cell.kept for cell in cells)
    unknown = f", {amount(reserved)} stay reserved for what is unknown" if reserved else ""
    click.echo(f"{count(len(cells), 'cell')} of {state.totals.cells}: {amount(spent)}{unknown}")


def _print_missing(ledger: Ledger, state: CampaignState, states: Mapping[int, State]) -> None:
    """Why some cells have no verdict, and what can be done about that."""
    from runner_e2e.cli.dispatch_outcome import next_steps
    from runner_e2e.cli.dispatch_plan_report import print_facts
    from runner_e2e.cli.dispatch_progress import Snapshots

    if set(states.values()) - {"settled"}:
        click.echo()
        print_facts(next_steps(Snapshots(ledger).take(state.id), state, verb="results"))


def _verdict(cell: CellState, shard: str) -> str:
    """Its verdict; where it has none, the state of its shard."""
    return (cell.verdict or shard).replace("_", " ")


def _cost(cell: CellState) -> str:
    from runner_e2e.cli.dispatch_view import amount

    if cell.verdict is None:
        return "-"
    if cell.actual is None:
        return "unknown"
    return f"{amount(cell.actual)}{' + unknown' if cell.kept else ''}"


def _print_results_json(
    state: CampaignState, cells: Sequence[CellState], names: Mapping[str, str], states: Mapping[int, State]
) -> None:
    from runner_e2e.cli.dispatch_outcome import print_json
    from runner_e2e.cli.dispatch_plan_report import dollars

    data = [
        {
            "handle": cell.handle,
            **({"id": names[cell.handle]} if cell.handle in names else {}),
            "shard": cell.shard,
            "state": states[cell.shard],
            "verdict": cell.verdict,
            "attempts": cell.attempts,
            "expected_usd": dollars(cell.expected),
            "cost_usd": dollars(cell.actual),
            "kept_usd": dollars(cell.kept),
            "note": cell.note,
        }
        for cell in cells
    ]
    print_json({"schema": RESULTS_SCHEMA, "campaign": state.id, "cells": data})


@click.command(short_help="Print the whole ledger as lines of JSON.")
@ledger_option
def export(*, ledger_path: Path) -> None:
    """Print the whole ledger, one JSON object a line: the ledger, campaigns, shards, cells, and everything that
    happened. It names cells by handles, and holds no key and no token.
    """
    with opened(ledger_path) as ledger:
        for document in ledger.export():
            click.echo(json.dumps(document, separators=(",", ":")))


@click.command(short_help="Let this machine act with a ledger that was copied to it.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal.")
@ledger_option
def adopt(*, yes: bool, ledger_path: Path) -> None:
    """Let this machine act with a ledger that comes from another one.

    The other copy must never be used again: two machines that act with copies of one ledger do not know of one another.
    """
    from runner_e2e.cli.dispatch_session import ask

    with opened(ledger_path) as ledger:
        if not ledger.is_copy:
            click.echo(f"{ledger.path} is this machine's already")
            return
        if not yes:
            facts = f"{ledger.path} was copied from another machine, or this machine's id has changed"
            ask(facts, "Will the other copy never be used again?", refusal="nothing was changed")
        ledger.adopt()
        click.echo(f"{ledger.path} is this machine's now")
