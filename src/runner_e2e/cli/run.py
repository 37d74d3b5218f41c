"""``runner-e2e run``: runs one cell whose id comes in the environment, or cells selected by a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from runner_e2e.cli.ranges import Whole
from runner_e2e.cli.selection_options import catalog_option, key_option, selection_options
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.cells.selectors import Selection
    from runner_e2e.cli.handover import RunRequest
    from runner_e2e.engine.local import CampaignOutcome

__all__ = ["run"]

DEFAULT_OUTPUT = ".runner-e2e"
MAXIMUM_JOBS = 64


@click.command()
@click.option("--local", is_flag=True, help="Run the selected cells on this machine.")
@selection_options
@catalog_option
@click.option(
    "--target", type=click.Path(), default=".", show_default=True, metavar="DIR", help="Root of the code to be tested."
)
@click.option(
    "--output",
    type=click.Path(),
    default=DEFAULT_OUTPUT,
    show_default=True,
    metavar="DIR",
    help="Where instances, logs and result records go.",
)
@click.option(
    "--jobs",
    type=Whole(1, MAXIMUM_JOBS),
    default=1,
    show_default=True,
    metavar="N",
    help="Attempts that run at once.",
)
@key_option
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON on standard output.")
@click.option("--quiet", is_flag=True, help="No progress lines.")
@click.option("--show-ids", is_flag=True, help="Show ids beside handles, also while agents run.")
@click.option(
    "--relay/--no-relay", default=None, help="Show what harnesses print; the default for the cell of the variable."
)
@click.option(
    "--probe/--no-probe",
    default=True,
    show_default=True,
    help="Try the sandbox before the first cell that costs money.",
)
@click.option(
    "--audit",
    is_flag=True,
    help="Keep the kernel's record of every program that an attempt starts, searched for the id. Needs strace.",
)
@click.option("--handed-over", type=int, default=None, hidden=True)
def run(
    *,
    selection: Selection,
    catalog_path: Path,
    key_variable: str,
    local: bool,
    target: str,
    output: str,
    jobs: int,
    as_json: bool,
    quiet: bool,
    show_ids: bool,
    relay: bool | None,
    probe: bool,
    audit: bool,
    handed_over: int | None,
) -> int:
    """Run one cell, or with --local the selected cells of the catalog, and record every attempt.

    Without --local the id of the cell is taken from the catalog's variable (PAPERCLIP_RUNNER_E2E_SELECTED_ID), never
    from the command line. Status: 0 all passed, 1 a cell did not, 2 bad usage, 3 refused, 128+n ended by signal n.
    """
    from runner_e2e.cli.handover import RunRequest, execute_again, receive, stands_on_command_line

    if handed_over is not None:
        return _run(receive(handed_over))
    request = RunRequest(
        selection=selection,
        catalog=str(catalog_path),
        key_variable=key_variable,
        local=local,
        target=target,
        output=output,
        jobs=jobs,
        as_json=as_json,
        quiet=quiet,
        show_ids=show_ids,
        relay=relay,
        probe=probe,
        audit=audit,
    )
    if selection.used and not local:
        raise UsageError(
            f"{' and '.join(selection.used)} cannot be used without --local",
            why="the id of a single cell comes in the environment, never on a command line",
            fix="add --local to run on this machine, or set the variable in the env of the step",
        )
    if stands_on_command_line(selection):
        execute_again(request)
    return _run(request)


def _run(request: RunRequest) -> int:
    from runner_e2e import gha
    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cli.run_reporting import LineReporter
    from runner_e2e.engine.campaign_plan import RunOptions
    from runner_e2e.engine.local import run_campaign
    from runner_e2e.engine.own_process import own_process

    catalog = read_catalog(Path(request.catalog))
    cells = _cells(catalog, request)
    reporter = LineReporter(quiet=request.quiet, show_ids=request.show_ids)
    with own_process(catalog, key_variable=request.key_variable) as process:
        options = RunOptions(
            target=Path(request.target),
            output=Path(request.output),
            environ=process.environ,
            jobs=request.jobs,
            handle_key=process.handle_key,
            runner_files=gha.runner_files(),
            probe=_probe(request),
            audit=request.audit,
            relay=not request.local and not request.quiet if request.relay is None else request.relay,
        )
        outcome = run_campaign(catalog, cells, options, reporter, process.cancellation)
    _conclude(outcome, request)
    return outcome.exit_code


def _probe(request: RunRequest) -> Literal["insist", "warn", "off"]:
    """In a job nothing is paid for behind a sandbox that was not tried; on a machine of one's own that is a choice."""
    from runner_e2e import gha

    if not gha.in_actions():
        return "warn" if request.probe else "off"
    if not request.probe:
        raise UsageError(
            "--no-probe cannot be used in a job", fix="leave it out: the sandbox is tried in a few seconds"
        )
    return "insist"


def _cells(catalog: Catalog, request: RunRequest) -> tuple[Cell, ...]:
    from runner_e2e.cells.selectors import select
    from runner_e2e.engine.local import take_cell

    return select(catalog, request.selection) if request.local else (take_cell(catalog),)


def _conclude(outcome: CampaignOutcome, request: RunRequest) -> None:
    """Prints the outcome. Nothing that was started runs any more, so a terminal may show ids now; a file may not."""
    import json
    import sys

    from runner_e2e.cli.run_reporting import outcome_data, print_outcome

    show_ids = request.show_ids or (request.local and not request.as_json and sys.stdout.isatty())
    if request.as_json:
        click.echo(json.dumps(outcome_data(outcome, show_ids=show_ids)))
    else:
        print_outcome(outcome, show_ids=show_ids)
