"""What is said of a campaign when a verb is done with it, for people and for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

import click

from runner_e2e import gha
from runner_e2e.cli.dispatch_plan_report import dollars, listed, print_facts
from runner_e2e.cli.dispatch_progress import Snapshots
from runner_e2e.cli.dispatch_session import UNFINISHED, outcome_status
from runner_e2e.cli.dispatch_view import amount, cells_text, money_text, render, runs_text
from runner_e2e.cli.table import Column, print_table

if TYPE_CHECKING:
    from runner_e2e.cli.dispatch_view import ShardLine, Snapshot
    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState, CellState, ShardState

__all__ = ["CAMPAIGN_SCHEMA", "campaign_data", "campaign_summary", "conclude", "print_campaign", "print_json"]

CAMPAIGN_SCHEMA: Final = "runner-e2e.dispatch-campaign/v1"
_MOST_SHOWN: Final = 50


def conclude(ledger: Ledger, campaign: str, *, as_json: bool) -> int:
    """Prints how *campaign* stands and what to do next; returns the status that says it."""
    state = ledger.campaign(campaign)
    status = outcome_status(ledger, state)
    # Does nothing outside a job.
    gha.append_summary(campaign_summary(ledger, state))
    if as_json:
        print_json(campaign_data(ledger, state))
        return status
    view = Snapshots(ledger).take(state.id)
    print_facts([("campaign", state.id), *_facts(view), *listed("next", _next(view, state, status))])
    return status


def _facts(view: Snapshot) -> list[tuple[str, str]]:
    return [("shards", runs_text(view)), ("cells", cells_text(view)), ("money", money_text(view))]


def _next(view: Snapshot, state: CampaignState, status: int) -> list[str]:
    """What a person can do now."""
    lines = []
    if under_way := len(view.shards) - view.states("settled", "cancelled", "unpaid", "stuck"):
        verb = "watch" if view.states("planned", "reserved") < under_way else "resume"
        lines.append(f"runner-e2e dispatch {verb} {state.id}")
    told = [each for each in view.shards if each.state in {"stuck", "unpaid"}]
    lines += [f"shard {each.index} is {each.state}{f': {each.note}' if each.note else ''}" for each in told]
    if view.states("stuck"):
        lines.append(f"runner-e2e dispatch resolve {state.id}")
    again = " ".join(f"--send-again {each.index}" for each in view.shards if each.state == "unpaid")
    if again and state.cancel_asked_at is None:
        lines.append(f"runner-e2e dispatch resolve {state.id} {again}")
    if status not in {0, UNFINISHED}:
        lines.append(f"runner-e2e dispatch results {state.id} --failed")
    return lines


def campaign_summary(ledger: Ledger, state: CampaignState) -> str:
    """A campaign for the page of a job, in Markdown. Cells are named by their handles."""
    view = Snapshots(ledger).take(state.id)
    lines = [f"### Campaign `{state.id}`", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {text} |" for name, text in _facts(view)]
    lines += ["", "| Shard | State | Cells | Passed | Cost | Run |", "| ---: | --- | ---: | ---: | ---: | --- |"]
    for each in view.shards:
        run = f"[{each.run}]({each.address})" if each.address else str(each.run or "")
        cost = "" if each.charged is None else f"{amount(each.charged)}{' + unknown' if each.kept else ''}"
        lines.append(f"| {each.index} | {each.state} | {each.cells} | {each.passed} | {cost} | {run} |")
    failed = [cell for cell in ledger.cells(state.id) if cell.verdict not in {None, "passed"}]
    lines += ["", *(f"- `{cell.handle}` {_failure(cell)}" for cell in failed[:_MOST_SHOWN])]
    if len(failed) > _MOST_SHOWN:
        lines.append(f"- and {len(failed) - _MOST_SHOWN} more")
    return "\n".join(lines) + "\n"


def _failure(cell: CellState) -> str:
    verdict = (cell.verdict or "").replace("_", " ")
    return f"{verdict}: {gha.code_span(cell.note)}" if cell.note else verdict


def print_campaign(ledger: Ledger, state: CampaignState) -> None:
    """Prints *state* as it is: drawn on a terminal, elsewhere in columns that are never cut."""
    view = Snapshots(ledger).take(state.id)
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        unicode = console.encoding.lower().startswith("utf")
        console.print(render(view, width=console.width, height=10_000, unicode=unicode, live=False))
        return
    print_facts(
        [
            ("campaign", state.id),
            ("repository", f"{state.repository}, {state.workflow}, {state.target or 'the default branch'}"),
            ("planned", state.created_at),
            *_facts(view),
        ]
    )
    click.echo()
    columns = (
        Column(title="shard", right=True),
        Column(title="state"),
        *(Column(title=title, right=True) for title in ("cells", "passed", "failed", "cost", "reserved", "run")),
        Column(title="note"),
    )
    print_table(columns, [_row(each) for each in view.shards])


def _row(shard: ShardLine) -> list[str]:
    known = shard.state == "settled"
    return [
        str(shard.index),
        shard.state,
        str(shard.cells),
        str(shard.passed) if known else "-",
        str(shard.failed + shard.other) if known else "-",
        "-" if shard.charged is None else f"{amount(shard.charged)}{'+?' if shard.kept else ''}",
        amount(shard.held) if shard.held else "-",
        "-" if shard.run is None else str(shard.run),
        shard.note,
    ]


def campaign_data(ledger: Ledger, state: CampaignState) -> dict[str, object]:
    """A campaign for programs. Amounts are US dollars, times seconds since the epoch."""
    view = Snapshots(ledger).take(state.id)
    totals = state.totals
    return {
        "schema": CAMPAIGN_SCHEMA,
        "campaign": state.id,
        "repository": state.repository,
        "workflow": state.workflow,
        "target": state.target,
        "created_at": state.created_at,
        "started_at": state.started_at,
        "cancel_asked_at": state.cancel_asked_at,
        "finished": totals.number("settled", "cancelled") == totals.shards,
        "status": outcome_status(ledger, state),
        "cells": {
            "all": view.cells,
            "passed": view.total("passed"),
            "failed": view.total("failed"),
            "without_result": view.total("other"),
        },
        "expected_usd": dollars(totals.expected),
        "max_cost_usd": dollars(state.max_cost),
        "spent_usd": dollars(totals.actual),
        "reserved_usd": dollars(totals.committed - totals.actual),
        "shards": [_shard_data(shard, line) for shard, line in zip(ledger.shards(state.id), view.shards, strict=True)],
    }


def _shard_data(shard: ShardState, line: ShardLine) -> dict[str, object]:
    return {
        "index": shard.index,
        "state": shard.state,
        "round": shard.round,
        "nonce": shard.nonce,
        "cells": shard.cells,
        "passed": line.passed,
        "failed": line.failed,
        "without_result": line.other,
        "spent_usd": dollars(shard.actual),
        "reserved_usd": dollars(line.held),
        "run": shard.run,
        "attempt": shard.attempt,
        "url": line.address or None,
        "changed_at": shard.changed_at,
        "note": shard.note,
    }


def print_json(data: object) -> None:
    """One line, as programs want it."""
    click.echo(json.dumps(data, separators=(",", ":")))
