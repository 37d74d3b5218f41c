"""Jobs that report or publish run no code of the target."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.execution import runs_workspace
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.grants import granted
from runner_e2e.lint.paid.scripts import commands_of
from runner_e2e.lint.paid.sources import Kind, sources
from runner_e2e.lint.records import dataclass
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
    if paid is None:
        return ()
    for job in paid.jobs:
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


@dataclass(frozen=True, kw_only=True)
class _Untrusted:
    """Files that are not those of the run: what brought them, what they are, and the *folder* they lie in."""

    place: FlowPlace
    what: str
    folder: str = ""


def _judge(report: Report, paid: PaidWorkflow, job: PaidJob, reason: str) -> None:
    brought: list[_Untrusted] = []
    for leaf in job.leaves:
        uses = leaf.step.uses.value if leaf.step.uses is not None else ""
        found = _target(leaf) if _CHECKOUT.match(uses) else _artifact(leaf) if _DOWNLOAD.match(uses) else None
        if found is not None:
            brought.append(found)
        elif brought:
            _step(report, paid, leaf, reason, brought)


def _target(leaf: PaidStep) -> _Untrusted | None:
    """Other code than that of the run, when the checkout takes such."""
    given = Block(leaf.step.arguments)
    repository, ref = given.scalar("repository"), given.scalar("ref")
    foreign = [source for source in sources(repository, leaf.scope) if source.name != "github.repository"]
    other = [source for source in sources(ref, leaf.scope) if source.kind is not Kind.COMMIT and source.name]
    if not foreign and not other:
        return None
    name = (foreign or other)[0].name
    place = leaf.frame.place(leaf.anchor, f"`{name}` is checked out")
    return _Untrusted(place=place, what="the target", folder=_folder(given))


def _artifact(leaf: PaidStep) -> _Untrusted:
    """What a paid job left; without a path it may lie over the files of a checkout."""
    place = leaf.frame.place(leaf.anchor, "the artifact is downloaded")
    return _Untrusted(place=place, what="a downloaded artifact", folder=_folder(Block(leaf.step.arguments)))


def _folder(given: Block) -> str:
    """Where files come to lie in the workspace; empty for all of it, or where it is not known."""
    path = given.text("path")
    folder = posixpath.normpath(path)
    return "" if folder == "." or "${{" in path else folder


def _step(report: Report, paid: PaidWorkflow, leaf: PaidStep, reason: str, brought: list[_Untrusted]) -> None:
    folder = leaf.step.text("working-directory")
    for command in commands_of(leaf, paid.repository):
        if command.name == "cd" and len(command.texts) > 1:
            folder = posixpath.join(folder, command.texts[1])
        if not runs_workspace(command):
            continue
        paths = [posixpath.normpath(posixpath.join(folder, text)) for text in ("", *command.texts)]
        source = next((each for each in brought if any(_below(path, each.folder) for path in paths)), None)
        if source is not None:
            report.add(
                leaf.frame,
                command.span,
                f"`{command.shown}` runs code of {source.what}",
                why=f"{reason}: that code decides about its own result, and has the job's token",
                fix="run it in a job that has neither, or check out the commit of the run (no `ref:`) here",
                confidence=Confidence.MEDIUM,
                way=(source.place, *command.trail),
            )
            return


def _below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


RULE = Rule(
    id=ID,
    summary="a job that reports or publishes and runs code of the target",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=8.0,
)
