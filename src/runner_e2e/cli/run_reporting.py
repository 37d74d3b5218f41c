"""What a person sees of a run: calm progress lines on standard error, one table at the end on standard output."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.table import Column, print_table
from runner_e2e.engine.output import printable
from runner_e2e.report.billing import cost_text
from runner_e2e.report.results import RESULT_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.engine.campaign_plan import Campaign, PlannedCell
    from runner_e2e.engine.local import CampaignOutcome
    from runner_e2e.report.results import Result

__all__ = ["OUTCOME_SCHEMA", "LineReporter", "duration_text", "outcome_data", "print_outcome"]

OUTCOME_SCHEMA = "runner-e2e.run/v1"
VERDICT_STYLES = {"passed": "green", "failed": "red", "not run": "yellow"}


class LineReporter:
    """A line for each start and each end. Cells are shown by their handles; ids only when a person asked for them."""

    def __init__(self, *, quiet: bool, show_ids: bool) -> None:
        self.quiet = quiet
        self.show_ids = show_ids

    def _line(self, text: str) -> None:
        if not self.quiet:
            click.echo(text, err=True)

    def campaign_started(self, campaign: Campaign) -> None:
        """Names the campaign and where its records are."""
        cells = len(campaign.cells)
        self._line(
            f"campaign {campaign.name}: {cells} cell{'' if cells == 1 else 's'}, records in {campaign.directory}"
        )

    def attempt_started(self, cell: PlannedCell, attempt: int) -> None:
        """Says that a cell starts; a second attempt says so."""
        name = f"{cell.handle} {cell.cell.id}" if self.show_ids else cell.handle
        self._line(f"{name}  {'started' if attempt == 1 else f'started again (attempt {attempt} of {cell.attempts})'}")

    def output(self, cell: PlannedCell, line: str) -> None:
        """Relays a line of the harness."""
        self._line(f"{cell.handle} | {line}")

    def attempt_ended(self, cell: PlannedCell, result: Result) -> None:
        """Says how an attempt ended, with the reason when it failed."""
        text = f"{cell.handle}  {result.verdict.replace('_', ' ')}"
        if result.verdict != "not_run":
            text += f" in {duration_text(result.duration_s)}, cost {cost_text([result.usage])}"
        if result.failure:
            text += f": {result.failure.failure_class}: {one_line(result.failure.message)}"
        self._line(text)

    def warning(self, text: str) -> None:
        """A warning is shown even when progress is not."""
        click.echo(f"warning: {text}", err=True)


def print_outcome(outcome: CampaignOutcome, *, show_ids: bool) -> None:
    """Prints the table, then the reason and the place of the log of each cell that did not pass."""
    columns = (
        Column(title="cell"),
        Column(title="id"),
        Column(title="verdict", styles=VERDICT_STYLES),
        Column(title="time", right=True),
        Column(title="cost", right=True),
        Column(title="attempts", right=True),
        Column(title="failure"),
    )
    print_table(columns, [_row(records, show_ids=show_ids) for records in outcome.results])
    for records in outcome.results:
        last = records[-1]
        if last.failure and last.verdict == "failed":
            directory = outcome.campaign.directory / last.handle / f"attempt-{last.attempt}"
            log = shown_path(directory / "private" / "harness.log")
            click.echo(f"{last.handle}: {one_line(last.failure.message)}\n  log: {log}")
    click.echo(_summary(outcome))


def _row(records: Sequence[Result], *, show_ids: bool) -> list[str]:
    last = records[-1]
    ran = last.verdict != "not_run"
    return [
        last.handle,
        last.id if show_ids else "",
        last.verdict.replace("_", " "),
        duration_text(sum(record.duration_s for record in records)) if ran else "-",
        cost_text(record.usage for record in records) if ran else "-",
        str(len(records)) if ran else "-",
        last.failure.failure_class if last.failure and ran else "",
    ]


def _summary(outcome: CampaignOutcome) -> str:
    verdicts = [result.verdict for result in outcome.last]
    counts = [(name.replace("_", " "), verdicts.count(name)) for name in ("passed", "failed", "not_run")]
    parts = [f"{count} {name}" for name, count in counts if count]
    cost = cost_text(record.usage for records in outcome.results for record in records)
    stopped = f"stopped by {outcome.stopped.name}; " if outcome.stopped else ""
    return f"{stopped}{', '.join(parts)}; cost {cost}; records in {shown_path(outcome.campaign.directory)}"


def outcome_data(outcome: CampaignOutcome, *, show_ids: bool) -> dict[str, object]:
    """The outcome for programs. Ids stand in it only when asked for; the records hold them."""
    return {
        "schema": OUTCOME_SCHEMA,
        "campaign": outcome.campaign.name,
        "directory": str(outcome.campaign.directory),
        "stopped": outcome.stopped.name if outcome.stopped else None,
        "cells": [_cell_data(outcome, records, show_ids=show_ids) for records in outcome.results],
    }


def _cell_data(outcome: CampaignOutcome, records: Sequence[Result], *, show_ids: bool) -> dict[str, object]:
    last = records[-1]
    failure = {"class": last.failure.failure_class, "message": last.failure.message} if last.failure else None
    paths = [outcome.campaign.directory / one.handle / f"attempt-{one.attempt}" / RESULT_FILE for one in records]
    return {
        "handle": last.handle,
        **({"id": last.id} if show_ids else {}),
        "verdict": last.verdict,
        "failure": failure,
        "selection": last.selection,
        "duration_s": round(sum(record.duration_s for record in records), 3),
        "attempts": [asdict(record.usage) | {"record": str(path)} for record, path in zip(records, paths, strict=True)],
    }


def one_line(message: str) -> str:
    """What a harness wrote, without the line ends and control characters that terminals and CI runners obey."""
    return printable(" ".join(message.split()).encode(errors="replace"))


def duration_text(seconds: float) -> str:
    """Seconds as a person reads them: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 04 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def shown_path(path: Path) -> str:
    """*path*, relative to the working directory where it lies below it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
