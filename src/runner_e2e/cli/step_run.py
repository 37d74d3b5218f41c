"""What the action's ``command: run`` does: takes the selected id, runs that cell, and tells the runner about it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e import gha
from runner_e2e.cells.catalog import read_catalog
from runner_e2e.cells.durations import format_duration
from runner_e2e.cells.handles import DEFAULT_KEY_VARIABLE, campaign_keys
from runner_e2e.cells.model import DEFAULT_CATALOG_PATH
from runner_e2e.cells.selectors import cell_by_handle
from runner_e2e.engine.campaign_plan import RunOptions
from runner_e2e.engine.local import run_campaign, take_cell
from runner_e2e.engine.own_process import own_process
from runner_e2e.engine.refusals import record_refusal
from runner_e2e.errors import RunnerE2EError, UsageError
from runner_e2e.report.billing import cost_text, total
from runner_e2e.report.results import RESULT_FILE
from runner_e2e.report.summary import cell_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.engine.campaign_plan import Campaign, PlannedCell
    from runner_e2e.engine.local import CampaignOutcome
    from runner_e2e.report.results import Result

__all__ = ["run_selected_cell"]

DEFAULT_OUTPUT = ".runner-e2e"
TITLE = "runner-e2e run"
MAXIMUM_MESSAGE = 2000


def run_selected_cell() -> int:
    """Runs the one cell whose id is in the environment; outputs, annotations and summary say what became of it.

    Raises what the catalog's reader, :func:`~runner_e2e.engine.local.take_cell`,
    :func:`~runner_e2e.engine.own_process.own_process` and :func:`~runner_e2e.engine.local.run_campaign` raise, before
    anything is started. Once the cell is known, a record then says so.
    """
    _check_claim()
    catalog = read_catalog(Path(gha.read_input("configuration", default=DEFAULT_CATALOG_PATH)))
    cell, key = _chosen(catalog)
    _check_claim(cell)
    reporter = StepReporter()
    output = Path(gha.read_input("output", default=DEFAULT_OUTPUT)).resolve()
    try:
        with own_process(catalog) as process:
            key = key or process.handle_key
            options = RunOptions(
                target=Path.cwd(),
                output=output,
                environ=process.environ,
                handle_key=key,
                runner_files=gha.runner_files(),
                relay=True,
                probe="insist",
            )
            outcome = run_campaign(catalog, (cell,), options, reporter, process.cancellation)
    except RunnerE2EError as error:
        if not reporter.started:
            _keep_refusal(catalog, cell, error.problem.what, output=output, key=key)
        raise
    finally:
        reporter.close()
    tell(outcome)
    return outcome.exit_code


def _check_claim(cell: Cell | None = None) -> None:
    """Refuses a claim that is not that of this attempt, and none where *cell* is paid for.

    GitHub drops a job's output in which it finds something that is masked, and an output that was dropped reads as
    empty. Without a claim a rerun of this job alone would pay once more.
    """
    claim = gha.read_input("claim")
    if claim or (cell is not None and (cell.credentials or cell.expected_cost)):
        from runner_e2e.dispatch.claim import check_claim

        contexts = gha.run_contexts()
        check_claim(claim, run=contexts.run_id, attempt=contexts.run_attempt)


def _keep_refusal(catalog: Catalog, cell: Cell, reason: str, *, output: Path, key: bytes | None) -> None:
    """Lets the record of a cell that was not started be kept like any other: it says that nothing was paid."""
    try:
        result, record = record_refusal(catalog, cell, reason, output=output, key=key)
    except OSError as error:
        print(f"run: nothing was paid, and that cannot be recorded: {error.strerror} ({error.filename})")
        return
    _tell([result], [record])
    print(f"run: {result.handle} was not started, so nothing was paid")


def _chosen(catalog: Catalog) -> tuple[Cell, bytes | None]:
    """The cell that the input `handle` names and the key it was made with, else the one whose id is in the environment.

    Two keys are valid while the campaign key is changed.
    """
    handle = gha.read_input("handle")
    if not handle:
        return take_cell(catalog), None
    if os.environ.get(catalog.selected_id.variable):
        raise UsageError(
            f"the input `handle` and the variable {catalog.selected_id.variable} exclude each other",
            fix="give the handle of the matrix, or the id of one cell",
        )
    keys = campaign_keys(os.environ)
    if not keys:
        raise UsageError(
            "a handle needs the campaign key",
            why=f"{DEFAULT_KEY_VARIABLE} is empty in this step, and only the key leads from a handle to its cell",
            fix=f"give {DEFAULT_KEY_VARIABLE} in the `env:` of this step",
        )
    for key in keys[:-1]:
        with contextlib.suppress(UsageError):
            return cell_by_handle(catalog, key, handle), key
    return cell_by_handle(catalog, keys[-1], handle), keys[-1]


class StepReporter:
    """Writes the log of the step: a foldable part for each attempt, in which the runner obeys no command."""

    def __init__(self) -> None:
        self.started = False
        self._resume = ""

    def campaign_started(self, campaign: Campaign) -> None:
        """Says what starts."""
        (planned,) = campaign.cells
        attempts = "1 attempt" if planned.attempts == 1 else f"up to {planned.attempts} attempts"
        limit = format_duration(planned.cell.timeout)
        print(f"run: {planned.handle}, {attempts} of at most {limit} each; campaign {campaign.name}")

    def attempt_started(self, cell: PlannedCell, attempt: int) -> None:
        """Opens a part of the log and stops commands, so that relayed text cannot give any."""
        self.started = True
        stop, self._resume = gha.commands_stopped()
        print(gha.group(f"{cell.handle}: attempt {attempt} of {cell.attempts}"))
        print(stop)

    def output(self, cell: PlannedCell, line: str) -> None:
        """Relays a line of the harness, which the engine has redacted."""
        del cell
        print(f"  {line}")

    def attempt_ended(self, cell: PlannedCell, result: Result) -> None:
        """Closes the part and says how the attempt ended."""
        self.close()
        failure = f" ({result.failure.failure_class})" if result.failure else ""
        took = format_duration(round(result.duration_s, 1))
        verdict = result.verdict.replace("_", " ")
        print(f"run: {cell.handle}: attempt {result.attempt} {verdict}{failure}, {took}, {cost_text([result.usage])}")

    def warning(self, text: str) -> None:
        """Shows a warning on the run's page, also from within an attempt."""
        stopped = bool(self._resume)
        if stopped:
            print(self._resume)
        print(gha.annotation("warning", text, title=TITLE))
        if stopped:
            stop, self._resume = gha.commands_stopped()
            print(stop)

    def close(self) -> None:
        """Lets the runner obey commands again and closes the open part; does nothing where none is open."""
        if self._resume:
            print(self._resume)
            print(gha.end_group())
            self._resume = ""


def tell(outcome: CampaignOutcome) -> None:
    """Writes outputs, an annotation for a failure, and the summary."""
    (results,), (planned,) = outcome.results, outcome.campaign.cells
    last = results[-1]
    _tell(results, [planned.directory / f"attempt-{each.attempt}" / RESULT_FILE for each in results])
    scrub = outcome.campaign.redactor.text
    if last.failure:
        message = scrub(last.failure.message)[:MAXIMUM_MESSAGE]
        print(gha.annotation("error", message, title=f"{last.handle}: {last.failure.failure_class}"))
    gha.append_summary(cell_summary(results), scrub=scrub)


def _tell(results: Sequence[Result], records: Sequence[Path]) -> None:
    """Writes the outputs about the attempts of a cell, whose records lie in *records*."""
    last, costs = results[-1], total(result.usage for result in results)
    kept = [str(record) for record in records if record.is_file()]
    gha.write_outputs(
        {
            "verdict": last.verdict,
            "handle": last.handle,
            "failure-class": last.failure.failure_class if last.failure else "",
            "attempts": str(sum(result.verdict != "not_run" for result in results)),
            "cost-usd": "" if costs.unknown else f"{costs.known_usd:.6f}",
            "result": str(records[-1]) if records[-1].is_file() else "",
            "results": "\n".join(kept),
        }
    )
