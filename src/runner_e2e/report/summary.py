"""A cell's results for the page of a run, in Markdown. It names the cell by its handle, never by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.cells.durations import format_duration
from runner_e2e.gha import code_span
from runner_e2e.report.billing import cost_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.report.results import Result

__all__ = ["cell_summary"]

ARGV_NOTE = "The id stood on the harness's command line (`argv-fallback`): an agent could read it there."


def cell_summary(results: Sequence[Result]) -> str:
    """Shows the attempts of one cell, first to last (at least one), as a heading and a table.

    What a harness wrote (messages, notes) is shown as text without effect. The caller scrubs ids and secrets.
    """
    last = results[-1]
    mark = "✅" if last.verdict == "passed" else "❌"
    lines = [f"### {mark} {last.handle}: {last.verdict.replace('_', ' ')}", ""]
    lines += ["| Attempt | Verdict | Time | Cost | Failure |", "| ---: | --- | ---: | ---: | --- |"]
    lines += [_row(result) for result in results]
    if len(results) > 1:
        duration = format_duration(round(sum(result.duration_s for result in results), 1))
        lines.append(f"| all | | {duration} | {cost_text(result.usage for result in results)} | |")
    # Not the definition hash: it has no key, so whoever has the catalog could tell from it which cell this is.
    lines += ["", f"Campaign `{last.campaign}`."]
    if last.selection == "argv":
        lines += ["", f"⚠️ {ARGV_NOTE}"]
    notes = [f"- Attempt {result.attempt}: {code_span(note)}" for result in results for note in result.notes]
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def _row(result: Result) -> str:
    failure = f"**{result.failure.failure_class}**: {code_span(result.failure.message)}" if result.failure else ""
    cells = (
        f"{result.attempt} of {result.attempts}",
        result.verdict.replace("_", " "),
        format_duration(round(result.duration_s, 1)),
        cost_text([result.usage]),
        failure,
    )
    return f"| {' | '.join(cells)} |"
