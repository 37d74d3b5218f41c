"""Jobs that report or publish run no code of the target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.execution import runs_workspace
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.grants import granted
from runner_e2e.lint.paid.sources import Kind, sources
from runner_e2e.lint.values import Confidence
from runner_e2e.lint.workflow import Block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding, FlowPlace
    from runner_e2e.lint.paid.model import PaidJob, PaidStep, PaidWorkflow
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "paid-report-trust"
EXPLANATION = """\
A job that reports or publishes runs code of the target, or of what a paid job left behind.

It has what the paid jobs must not have: a token that writes, the keys of the report, the say about which cell passed.
The target is the code that is evaluated, at a branch that somebody asked for; an artifact of a paid job holds what an
agent wrote. Code from there would decide about its own result, and could use the token.

Such a job is one that waits for a paid job, has a token that writes, or takes another secret. It may check out the
commit of the run (no `ref:`, or `github.sha`) and run that: the gate has seen to it that this is the default branch.
It must not run a script, a tool (`npm`, `make`, `pytest`) or a local action after a checkout at any other place, nor
out of a downloaded artifact. Read artifacts as data."""

_CHECKOUT = re.compile(r"actions/checkout(?:@|$)", re.IGNORECASE)
_DOWNLOAD = re.compile(r"actions/download-artifact(?:@|$)", re.IGNORECASE)


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for jobs that report and run code of the target."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    for job in paid.jobs if paid is not None else ():
        assert paid is not None
        if job.job.uses is None and not paid.is_paying(job):
            reason = _reports(paid, job)
            if reason:
                _judge(report, paid, job, reason)
    return report.findings.values()


def _reports(paid: PaidWorkflow, job: PaidJob) -> str:
    """Why a job is one that must not run code of the target; empty when it is none."""
    grants = granted(job)
    if grants is not None and grants.writes:
        return f"the job may write {grants.writes[0][0]}"
    current: PaidJob | None = job
    while current is not None:
        for ancestor in current.ancestors:
            if paid.is_paying(ancestor) or any(paid.is_paying(each) for each in ancestor.inside):
                return f"the job works on the results of `{ancestor.id}`"
        current = current.caller
    return "the job has other secrets" if job.secrets else ""


def _judge(report: Report, paid: PaidWorkflow, job: PaidJob, reason: str) -> None:
    origin: tuple[FlowPlace, str] | None = None
    for leaf in job.leaves:
        uses = leaf.step.uses.value if leaf.step.uses is not None else ""
        if _CHECKOUT.match(uses):
            origin = _target(leaf) or (None if origin is None or "artifact" not in origin[1] else origin)
        elif _DOWNLOAD.match(uses) and origin is None:
            origin = (leaf.frame.place(leaf.anchor, "the artifact is downloaded"), "a downloaded artifact")
        elif origin is not None:
            _step(report, paid, leaf, reason, origin)


def _target(leaf: PaidStep) -> tuple[FlowPlace, str] | None:
    """Where other code than that of the run is checked out."""
    given = Block(leaf.step.arguments)
    repository, ref = given.scalar("repository"), given.scalar("ref")
    foreign = [source for source in sources(repository, leaf.scope) if source.name != "github.repository"]
    other = [source for source in sources(ref, leaf.scope) if source.kind is not Kind.COMMIT and source.name]
    if not foreign and not other:
        return None
    name = (foreign or other)[0].name
    return leaf.frame.place(leaf.anchor, f"`{name}` is checked out"), "the target"


def _step(report: Report, paid: PaidWorkflow, leaf: PaidStep, reason: str, origin: tuple[FlowPlace, str]) -> None:
    place, what = origin
    command = runs_workspace(leaf, paid.repository)
    if command is None or (what == "a downloaded artifact" and "/" not in "".join(command.texts)):
        return
    report.add(
        leaf.frame,
        command.span if not command.trail else leaf.anchor,
        f"`{command.shown}` runs code of {what}",
        why=f"{reason}: that code decides about its own result, and has the job's token",
        fix="run it in a job that has neither, or check out the commit of the run (no `ref:`) here",
        confidence=Confidence.MEDIUM,
        way=(place, *command.trail),
    )


RULE = Rule(
    id=ID,
    summary="a job that reports or publishes and runs code of the target",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=8.0,
)
