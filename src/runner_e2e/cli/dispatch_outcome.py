"""What is said of a campaign when a verb is done with it, for people and for programs."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Final

import click

from runner_e2e import gha
from runner_e2e.cli.dispatch_plan_report import dollars, listed, print_facts
from runner_e2e.cli.dispatch_progress import Snapshots
from runner_e2e.cli.dispatch_session import outcome_status, run_address
from runner_e2e.cli.dispatch_view import amount, cells_text, money_text, render, runs_text
from runner_e2e.cli.table import Column, print_table
from runner_e2e.dispatch.shard_advice import advice_for
from runner_e2e.dispatch.shard_states import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.cli.dispatch_view import ShardLine, Snapshot
    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState, CellState, ShardState
    from runner_e2e.dispatch.shard_states import State

__all__ = [
    "CAMPAIGN_SCHEMA",
    "campaign_data",
    "campaign_summary",
    "conclude",
    "next_steps",
    "print_campaign",
    "print_json",
]

CAMPAIGN_SCHEMA: Final = "runner-e2e.dispatch-campaign/v1"
_MOST_SHOWN: Final = 50
_MOST_NAMED, _MOST_TOLD = 5, 3
# States that something is said of, those first that need a person most.
_URGENCY: Final[tuple[State, ...]] = (
    "stuck", "unpaid", "unknown", "sending", "sent", "running", "ended", "reserved", "planned", "cancelled"
)  # fmt: skip
_WAITS: Final = re.compile(r"\brun ([0-9]+) is waiting\b")


def conclude(ledger: Ledger, campaign: str, *, as_json: bool, verb: str = "") -> int:
    """Prints how *campaign* stands after *verb*, and what to do next; returns the status that says it."""
    state = ledger.campaign(campaign)
    status = outcome_status(ledger, state)
    # Does nothing outside a job.
    gha.append_summary(campaign_summary(ledger, state))
    if as_json:
        print_json(campaign_data(ledger, state))
        return status
    view = Snapshots(ledger).take(state.id)
    print_facts([("campaign", state.id), *_facts(view), *next_steps(view, state, verb=verb)])
    return status


def _facts(view: Snapshot) -> list[tuple[str, str]]:
    return [("shards", runs_text(view)), ("cells", cells_text(view)), ("money", money_text(view))]


def next_steps(view: Snapshot, state: CampaignState, *, verb: str = "") -> list[tuple[str, str]]:
    """What is not at its end and why, and what a person can do now, after *verb*; as names and texts to print."""
    lines: list[str] = []
    indices: dict[str, list[int]] = {}
    for name in _URGENCY:
        shards = [each for each in view.shards if each.state == name]
        if not shards:
            continue
        advice = advice_for(name, verb=verb, cancelling=state.cancel_asked_at is not None)
        lines += [*_said(view, shards), advice.text]
        for each in advice.verbs:
            indices.setdefault(each, []).extend(shard.index for shard in shards)
    if "watch" in indices:
        # It sends what waits, too.
        indices.pop("resume", None)
    for each, numbers in indices.items():
        command, _, option = each.partition(" ")
        chosen = "".join(f" {option} {number}" for number in sorted(numbers)) if option else ""
        lines.append(f"runner-e2e dispatch {command} {state.id}{chosen}")
    if verb != "results" and any(each.state == "settled" and each.passed < each.cells for each in view.shards):
        lines.append(f"runner-e2e dispatch results {state.id} --failed")
    return listed("next", lines)


def _said(view: Snapshot, shards: Sequence[ShardLine]) -> list[str]:
    """What is so of *shards*, which are in one state: a line for all of which the same is noted, and few lines."""
    groups: dict[str, list[ShardLine]] = {}
    for each in shards:
        groups.setdefault(each.note or MEANINGS[each.state], []).append(each)
    lines = []
    for note, group in list(groups.items())[:_MOST_TOLD]:
        lines += [f"{_named(group)}: {note}", *_approvals(view, note)]
    if rest := [each for group in list(groups.values())[_MOST_TOLD:] for each in group]:
        lines.append(f"{_named(rest)}, each for a reason of its own: `runner-e2e dispatch status {view.campaign}`")
    return lines


def _named(shards: Sequence[ShardLine]) -> str:
    first = shards[0]
    if len(shards) == 1:
        return f"shard {first.index} is {first.state}{f' (run {first.run})' if first.run else ''}"
    if len(shards) > _MOST_NAMED:
        return f"{len(shards)} shards are {first.state}"
    return f"shards {', '.join(str(each.index) for each in shards)} are {first.state}"


def _approvals(view: Snapshot, note: str) -> list[str]:
    """Where somebody can approve the run of which *note* says that it waits for that."""
    found = _WAITS.search(note)
    address = run_address(view.repository, int(found[1])) if found else ""
    return [f"somebody must approve it: {address or 'on its page, at Review deployments'}"] if found else []


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
        _print_next(view, state)
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
    _print_next(view, state)


def _print_next(view: Snapshot, state: CampaignState) -> None:
    if steps := next_steps(view, state):
        click.echo()
        print_facts(steps)


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
