"""One isolated try of a cell, from its directories to its record. Whatever happens, there is a record."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runner_e2e.artifacts.listing import LISTING_VARIABLE, REPORTS_VARIABLE
from runner_e2e.engine.audited import REPORT as AUDIT_REPORT
from runner_e2e.engine.audited import audited, ended_as_audited, off, read_audit
from runner_e2e.engine.failures import judge, retry_after
from runner_e2e.engine.harness_environment import credentials_of, harness_environment
from runner_e2e.engine.harness_result import HarnessReport, read_report
from runner_e2e.engine.listed_artifacts import launched_by_content, listing_of, refused_harness
from runner_e2e.engine.output import OutputSink
from runner_e2e.engine.policy import policy_document
from runner_e2e.engine.processes import SOURCE, run_harness
from runner_e2e.engine.record import NOTHING_SPENT, Facts, assemble
from runner_e2e.existence import is_directory, is_file, is_link
from runner_e2e.redact import Redactor
from runner_e2e.report.billing import Usage
from runner_e2e.report.fields import InvalidDocumentError, read_document
from runner_e2e.report.results import RESULT_FILE, Failure, FailureClass, Result, Retry, write_json, write_result
from runner_e2e.sandbox.proxy import PYTHON_VARIABLE as PROXY_PYTHON

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.engine.campaign_plan import Campaign, PlannedCell, Reporter
    from runner_e2e.engine.cancellation import Cancellation
    from runner_e2e.engine.supervisor import Specification

__all__ = ["AGENT_SANDBOX", "Attempt", "not_run"]

AGENT_SANDBOX: Final = SOURCE.parent / "scripts" / "agent_sandbox.py"
MAXIMUM_SANDBOX_REPORTS: Final = 100
MAXIMUM_SANDBOX_REPORT_BYTES: Final = 64 * 1024

# Names of what a harness is told. They begin like those of the CI runner only by accident of this product's name.
INSTANCE: Final = "RUNNER_E2E_INSTANCE"
ATTEMPT: Final = "RUNNER_E2E_ATTEMPT"
RESULT: Final = "RUNNER_E2E_RESULT"
SANDBOX_POLICY: Final = "RUNNER_E2E_SANDBOX_POLICY"
SANDBOX_REPORTS: Final = "RUNNER_E2E_SANDBOX_REPORTS"
AGENT_SANDBOX_ENTRY: Final = "RUNNER_E2E_AGENT_SANDBOX"


class Attempt:
    """One attempt of a planned cell. :meth:`run` may be called once."""

    def __init__(self, campaign: Campaign, planned: PlannedCell, number: int) -> None:
        self.campaign = campaign
        self.planned = planned
        self.number = number
        self.directory = planned.directory / f"attempt-{number}"
        self.instance = self.directory / "instance"
        self.private = self.directory / "private"
        self.reports = self.private / "sandbox"
        self.artifact_reports = self.private / "artifacts"
        self.listing = listing_of(campaign.catalog.artifacts, target=campaign.target)
        self.secrets = credentials_of(planned.cell, campaign.environ)
        self.started = time.time()

    def run(self, reporter: Reporter, cancellation: Cancellation) -> Result:
        """Runs the attempt and returns its record, which also stands in the attempt's directory."""
        try:
            self._prepare()
        except OSError as error:
            what = f"the attempt's directory cannot be prepared: {error.strerror} ({error.filename})"
            facts = self._failed_to_begin("permanent_infrastructure", what)
        else:
            facts = self._run_harness(reporter, cancellation)
        result = assemble(self.campaign, self.planned, self.number, facts)
        try:
            self._write(result)
        except OSError as error:
            reporter.warning(
                f"{self.planned.handle}: the result record cannot be written ({error.strerror}); "
                f"what stands in {self.directory} is not the last word"
            )
        return result

    def _run_harness(self, reporter: Reporter, cancellation: Cancellation) -> Facts:
        relay = (lambda line: reporter.output(self.planned, line)) if self.campaign.relay else None
        sink = OutputSink(self.private / "harness.log", self.campaign.redactor, relay)
        specification = self._specification()
        try:
            ended = run_harness(
                self._audited(launched_by_content(specification, self.listing)),
                environ=self.campaign.environ,
                output=sink.take,
                cancellation=cancellation,
            )
        finally:
            output = sink.close()
        self._restore_rights()
        audit = self._audit()
        ended = ended_as_audited(ended, audit)
        report = read_report(self.private / "harness-result.json", self.campaign.redactor)
        leaked = [name for name, value in self.secrets.items() if value in sink.found]
        artifacts = self._launch_reports(self.artifact_reports)
        refused = refused_harness(specification, self.listing, ended, artifacts)
        failure = refused or judge(ended, report, timeout=self.planned.cell.timeout, leaked=leaked)
        said = report if isinstance(report, HarnessReport) else None
        usage = NOTHING_SPENT if ended.not_started or refused else said.usage if said else Usage()
        return Facts(
            verdict="failed" if failure else "passed",
            failure=failure,
            retry=retry_after(
                failure,
                attempt=self.number,
                attempts=self.planned.attempts,
                cancelled=cancellation.number is not None,
            ),
            started=self.started,
            ended=ended,
            usage=usage,
            output=output,
            sandbox=self._launch_reports(self.reports),
            artifacts=artifacts,
            notes=(*filter(None, [sink.problem]), *(said.notes if said else ())),
            audit=audit,
        )

    def _audited(self, specification: Specification) -> Specification:
        if self._why_not_audited:
            return specification
        return audited(
            specification,
            command=self.campaign.programs / "runner-e2e",
            variable=self.campaign.catalog.selected_id.variable,
            report=self.private / AUDIT_REPORT,
        )

    @property
    def _why_not_audited(self) -> str:
        if not self.campaign.audit:
            return "not asked for"
        return "" if self.planned.selection == "env" else "this target is told its cell by an argument"

    def _audit(self) -> dict[str, object]:
        why = self._why_not_audited
        return off(why) if why else read_audit(self.private / AUDIT_REPORT)

    def _restore_rights(self) -> None:
        """Undoes what the harness may have done to the rights of the directories that are read and written now."""
        for directory in (self.directory, self.private, self.reports, self.artifact_reports):
            if is_directory(directory) and not is_link(directory):
                with contextlib.suppress(OSError):
                    directory.chmod(0o700)

    def _failed_to_begin(self, failure_class: FailureClass, message: str) -> Facts:
        return Facts(
            verdict="failed",
            failure=Failure(failure_class=failure_class, message=message),
            retry=Retry(allowed=False, reason="it did not begin"),
            started=self.started,
        )

    def _prepare(self) -> None:
        """Makes the directories, a record that counts if nothing after it does, and the policy. Raises OSError."""
        for directory in (self.directory, self.instance, self.private, self.reports, self.artifact_reports):
            directory.mkdir(mode=0o700, parents=directory == self.directory)
        what = "the engine ended before the attempt did"
        unfinished = replace(self._failed_to_begin("transient_infrastructure", what), usage=Usage())
        write_result(assemble(self.campaign, self.planned, self.number, unfinished), self.directory / RESULT_FILE)
        catalog = self.campaign.catalog
        confidential = (catalog.selected_id.variable, *catalog.confidential.environment)
        policy = policy_document(
            self.campaign.hidden, instance=self.instance, confidential=confidential, network=catalog.network
        )
        write_json(policy, self.private / "policy.json")
        if self.listing.files:
            write_json(self.listing.to_document(), self.private / "artifacts.json")

    def _specification(self) -> Specification:
        catalog, cell = self.campaign.catalog, self.planned.cell
        environment = harness_environment(
            catalog,
            cell,
            environ=self.campaign.environ,
            programs=str(self.campaign.programs),
            product=self._product_variables(),
        )
        directory = (self.campaign.target / catalog.harness.directory).resolve()
        name, *arguments = catalog.harness.command
        program = str(directory / name) if "/" in name else shutil.which(name, path=environment["PATH"]) or name
        by_argument = ["--id", cell.id] if self.planned.selection == "argv" else []
        return {
            "program": program,
            "command": [name, *arguments, *by_argument],
            "environment": environment,
            "directory": str(directory),
            "timeout": cell.timeout,
            "grace": catalog.grace,
        }

    def _product_variables(self) -> dict[str, str]:
        variables = {
            INSTANCE: str(self.instance),
            ATTEMPT: str(self.number),
            RESULT: str(self.private / "harness-result.json"),
            SANDBOX_POLICY: str(self.private / "policy.json"),
            SANDBOX_REPORTS: str(self.reports),
        }
        if self.listing.files:
            variables[LISTING_VARIABLE] = str(self.private / "artifacts.json")
            variables[REPORTS_VARIABLE] = str(self.artifact_reports)
        if self.campaign.catalog.network.reach == "hosts":
            variables[PROXY_PYTHON] = sys.executable
        if AGENT_SANDBOX.is_file():
            variables[AGENT_SANDBOX_ENTRY] = str(AGENT_SANDBOX)
        if self.planned.selection == "env":
            variables[self.campaign.catalog.selected_id.variable] = self.planned.cell.id
        return variables

    def _write(self, result: Result) -> None:
        """Writes the record, in a directory made anew if the harness removed it; the log makes room on a full disk."""
        path = self.directory / RESULT_FILE
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            write_result(result, path)
        except OSError:
            log = self.private / "harness.log"
            if not is_file(log):
                raise
            os.truncate(log, 0)
            write_result(result, path)

    def _launch_reports(self, directory: Path) -> tuple[Mapping[str, object], ...]:
        """What each launch said of its walls or artifact; an unreadable report is told from one that was not made."""
        found: list[Mapping[str, object]] = []
        secrets = Redactor(self.secrets.values())
        paths = sorted(directory.glob("*.json")) if is_directory(directory) else []
        for path in paths[:MAXIMUM_SANDBOX_REPORTS]:
            try:
                document = read_document(path, limit=MAXIMUM_SANDBOX_REPORT_BYTES).values
                found.append(json.loads(secrets.text(json.dumps(document))))
            except (InvalidDocumentError, FileNotFoundError) as error:
                found.append({"unreadable": path.name, "reason": str(error)})
        if len(paths) > MAXIMUM_SANDBOX_REPORTS:
            found.append({"left_out": len(paths) - MAXIMUM_SANDBOX_REPORTS})
        return tuple(found)


def not_run(campaign: Campaign, planned: PlannedCell, reason: str, reporter: Reporter) -> Result:
    """Records a cell that was not started, and why."""
    facts = Facts(
        verdict="not_run",
        failure=Failure(failure_class="transient_infrastructure", message=reason),
        retry=Retry(allowed=False, reason="the campaign was stopped"),
        started=time.time(),
    )
    result = assemble(campaign, planned, 1, facts)
    directory = planned.directory / "attempt-1"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_result(result, directory / RESULT_FILE)
    except OSError as error:
        reporter.warning(f"{planned.handle}: it was not run, and this cannot be recorded ({error.strerror})")
    return result
