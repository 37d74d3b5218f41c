"""The local engine: runs cells on this machine, some at once, and returns when nothing of them runs any more."""

from __future__ import annotations

import shlex
import sys
import threading
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner_e2e import __version__, selected_id
from runner_e2e.cells.handles import PUBLIC_KEY, handle, random_key
from runner_e2e.cells.selectors import cell_by_id
from runner_e2e.engine.attempt import Attempt, not_run
from runner_e2e.engine.campaign_plan import Campaign, PlannedCell, campaign_name, this_host
from runner_e2e.engine.cancellation import Cancellation
from runner_e2e.engine.harness_environment import check_credentials, credentials_of
from runner_e2e.engine.holders import holder_warnings
from runner_e2e.engine.old_targets import ARGV_WARNING, selection_of
from runner_e2e.engine.policy import hidden_set
from runner_e2e.engine.processes import SOURCE
from runner_e2e.errors import RunnerE2EError, UsageError
from runner_e2e.existence import exists
from runner_e2e.redact import Redactor
from runner_e2e.report.campaign import CAMPAIGN_FILE, ExpectedCell, Manifest, write_manifest
from runner_e2e.report.results import RESULT_FILE, time_text, write_result

if TYPE_CHECKING:
    import signal

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.engine.campaign_plan import Reporter, RunOptions
    from runner_e2e.report.results import Result

__all__ = ["CampaignOutcome", "run_campaign", "run_single", "take_cell"]

# The command as a harness finds it, whatever the harness's own Python is.
COMMAND: Final = "import sys; sys.path.insert(0, {source!r}); from runner_e2e.cli import main; sys.exit(main())"


@dataclass(frozen=True, kw_only=True)
class CampaignOutcome:
    """What became of a campaign: ``results`` holds the records of each planned cell, attempts in order.

    ``stopped`` is the signal that ended it early. ``exit_code`` is 0 when every cell passed, 1 when one did not, and
    128+n when signal n stopped it.
    """

    campaign: Campaign
    results: tuple[tuple[Result, ...], ...]
    stopped: signal.Signals | None = None

    @property
    def last(self) -> tuple[Result, ...]:
        """The deciding record of each cell."""
        return tuple(records[-1] for records in self.results)

    @property
    def exit_code(self) -> int:
        """The status that a command ends with."""
        if self.stopped is not None:
            return 128 + self.stopped
        return 0 if all(result.verdict == "passed" for result in self.last) else 1


def run_single(
    catalog: Catalog, options: RunOptions, reporter: Reporter, cancellation: Cancellation | None = None
) -> CampaignOutcome:
    """Takes the selected id out of this process's environment and runs that one cell.

    Raises what :func:`take_cell` and :func:`run_campaign` raise.
    """
    return run_campaign(catalog, (take_cell(catalog),), options, reporter, cancellation)


def take_cell(catalog: Catalog) -> Cell:
    """Takes the selected id out of this process's environment and returns its cell.

    Raises what :func:`runner_e2e.selected_id.take` raises, and :class:`UsageError` when the catalog has no such cell
    or excludes it; no message shows the id.
    """
    taken = selected_id.take(catalog.selected_id.variable)
    try:
        return cell_by_id(catalog, taken)
    except RunnerE2EError:
        raise UsageError(
            f"the id in {catalog.selected_id.variable} names no cell that may run (it is not shown here)",
            why=f"{catalog.path} has no such cell, or excludes it",
            fix="see `runner-e2e cells list` for the ids of this catalog",
        ) from None


def run_campaign(
    catalog: Catalog,
    cells: tuple[Cell, ...],
    options: RunOptions,
    reporter: Reporter,
    cancellation: Cancellation | None = None,
) -> CampaignOutcome:
    """Runs *cells* and returns when all have ended, been retried where that may help, and been recorded.

    Raises :class:`UsageError` or another error of the tree before anything is started: no output directory, a missing
    credential, an id in a path that agents see, an old target without permission for ``--id``. Raises
    :class:`RefusedError` when the sandbox does not hold and ``options.probe`` insists.
    """
    campaign = _plan(catalog, cells, options, reporter)
    own = Cancellation() if cancellation is None else None
    asked = cancellation or own
    assert asked is not None
    try:
        if options.probe != "off":
            from runner_e2e.engine.walls import prove_walls

            proof = prove_walls(campaign, reporter, asked, insist=options.probe == "insist")
            campaign = replace(campaign, probe=proof)
        work = _Work(campaign, _OneAtATime(reporter), asked)
        results = work.do(jobs=options.jobs)
        _restore_records(campaign, results, reporter)
        return CampaignOutcome(campaign=campaign, results=results, stopped=asked.number)
    finally:
        if own:
            own.close()


class _Work:
    """The cells of a campaign, done by some threads. What goes wrong in one of them starts no further cell."""

    def __init__(self, campaign: Campaign, reporter: Reporter, cancellation: Cancellation) -> None:
        self._campaign = campaign
        self._reporter = reporter
        self._cancellation = cancellation
        self._waiting = deque(campaign.cells)
        self._results: dict[str, tuple[Result, ...]] = {}
        self._errors: list[BaseException] = []

    def do(self, *, jobs: int) -> tuple[tuple[Result, ...], ...]:
        """Runs all cells; returns their records in the order of the campaign, or raises the first error of a thread."""
        self._reporter.campaign_started(self._campaign)
        threads = [threading.Thread(target=self._work) for _ in range(max(1, min(jobs, len(self._waiting))))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return tuple(self._results[planned.cell.id] for planned in self._campaign.cells)

    def _work(self) -> None:
        while True:
            try:
                planned = self._waiting.popleft()
            except IndexError:
                return
            try:
                self._results[planned.cell.id] = self._run(planned)
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for this one
                self._errors.append(error)

    def _run(self, planned: PlannedCell) -> tuple[Result, ...]:
        results: list[Result] = []
        while not results or results[-1].retry.allowed:
            if reason := self._stopped():
                if not results:
                    results.append(not_run(self._campaign, planned, reason, self._reporter))
                    self._reporter.attempt_ended(planned, results[-1])
                break
            self._reporter.attempt_started(planned, len(results) + 1)
            attempt = Attempt(self._campaign, planned, len(results) + 1)
            results.append(attempt.run(self._reporter, self._cancellation))
            self._reporter.attempt_ended(planned, results[-1])
        return tuple(results)

    def _stopped(self) -> str:
        """Why no further attempt may start, or nothing."""
        if self._cancellation.number is not None:
            return f"stopped by {self._cancellation.number.name} before it started"
        return "a defect stopped the campaign before it started" if self._errors else ""


def _plan(catalog: Catalog, cells: tuple[Cell, ...], options: RunOptions, reporter: Reporter) -> Campaign:
    """Checks everything that can be checked before anything is started or paid for."""
    target, output = options.target.resolve(), options.output.resolve()
    if not target.is_dir():
        raise UsageError(f"the target {options.target} is no directory", fix="name the root of the code to be tested")
    check_credentials(cells, options.environ)
    if options.audit:
        from runner_e2e.engine.audited import check_audits

        check_audits(reporter)
    _check_paths(cells, target, output)
    selection = selection_of(catalog.selected_id, target, cells=len(cells))
    for warning in ((ARGV_WARNING,) if selection == "argv" else ()) + holder_warnings(cells):
        reporter.warning(warning)
    hidden = hidden_set(target=target, output=output, hide=catalog.harness.hide, runner_files=options.runner_files)
    for name in hidden.absent:
        reporter.warning(f"harness.hide names {name}, which this target does not have")
    key = PUBLIC_KEY if catalog.plain_ids else options.handle_key or random_key()
    name = campaign_name()
    directory = output / name
    planned = tuple(
        PlannedCell(
            cell=cell,
            handle=(public := handle(key, cell.id)),
            directory=directory / public,
            selection=selection,
            attempts=1 + min(1, catalog.retries),
        )
        for cell in cells
    )
    secrets = [value for cell in cells for value in credentials_of(cell, options.environ).values()]
    campaign = Campaign(
        name=name,
        directory=directory,
        catalog=catalog,
        cells=planned,
        target=target,
        environ=options.environ,
        hidden=hidden,
        programs=directory / "bin",
        redactor=Redactor([*secrets, *(cell.id for cell in cells)]),
        relay=options.relay,
        audit=options.audit,
    )
    _open(campaign, output)
    return campaign


def _check_paths(cells: tuple[Cell, ...], target: Path, output: Path) -> None:
    """Agents see the paths that they work in, so none may hold the id of a cell that runs."""
    for what, path in (("target", target), ("output", output), ("home", Path.home())):
        if any(cell.id in str(path) for cell in cells):
            raise UsageError(
                f"the path of the {what} directory holds the id of a selected cell",
                why="every agent can read the path that it works in",
                fix="use a directory whose path names no cell",
            )


def _open(campaign: Campaign, output: Path) -> None:
    """Makes the campaign's directory, what it expects to run, and the command for its harnesses."""
    try:
        output.mkdir(mode=0o700, parents=True, exist_ok=True)
        campaign.programs.mkdir(mode=0o700, parents=True)
        write_manifest(_manifest(campaign), campaign.directory)
        command = campaign.programs / "runner-e2e"
        words = [sys.executable, "-I", "-c", COMMAND.format(source=str(SOURCE))]
        command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        command.chmod(0o700)
    except OSError as error:
        raise UsageError(
            f"the output directory {output} cannot be written to",
            why=f"{error.strerror} ({error.filename}); nothing was started",
            fix="name another one with --output, or make room and permissions there",
        ) from error


def _manifest(campaign: Campaign) -> Manifest:
    """What *campaign* expects to run."""
    return Manifest(
        campaign=campaign.name,
        started=time_text(campaign.started),
        engine=__version__,
        host=this_host(),
        cells=tuple(
            ExpectedCell(
                id=planned.cell.id,
                handle=planned.handle,
                attempts=planned.attempts,
                selection=planned.selection,
                definition_hash=planned.cell.definition_hash,
            )
            for planned in campaign.cells
        ),
    )


def _restore_records(campaign: Campaign, results: tuple[tuple[Result, ...], ...], reporter: Reporter) -> None:
    """Writes again what a later harness removed: money was spent on each record, so none may be lost."""
    lost = 0
    try:
        if not exists(campaign.directory / CAMPAIGN_FILE):
            lost += 1
            campaign.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_manifest(_manifest(campaign), campaign.directory)
        for planned, records in zip(campaign.cells, results, strict=True):
            for result in records:
                path = planned.directory / f"attempt-{result.attempt}" / RESULT_FILE
                if not exists(path):
                    lost += 1
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    write_result(result, path)
    except OSError as error:
        reporter.warning(f"records were removed and cannot be written again: {error.strerror} ({error.filename})")
    else:
        if lost:
            reporter.warning(f"{lost} records that a harness removed were written again")


class _OneAtATime:
    """Passes on calls to a reporter, one at a time."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._lock = threading.RLock()

    def campaign_started(self, campaign: Campaign) -> None:
        with self._lock:
            self._reporter.campaign_started(campaign)

    def attempt_started(self, cell: PlannedCell, attempt: int) -> None:
        with self._lock:
            self._reporter.attempt_started(cell, attempt)

    def output(self, cell: PlannedCell, line: str) -> None:
        with self._lock:
            self._reporter.output(cell, line)

    def attempt_ended(self, cell: PlannedCell, result: Result) -> None:
        with self._lock:
            self._reporter.attempt_ended(cell, result)

    def warning(self, text: str) -> None:
        with self._lock:
            self._reporter.warning(text)
