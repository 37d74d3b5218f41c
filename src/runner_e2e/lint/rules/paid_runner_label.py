"""Which machine gets the secrets is written in the workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.sources import Kind, decided_outside, sources
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob, PaidWorkflow
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "paid-runner-label"
EXPLANATION = """\
An input, a variable of the repository or the event decides on which machine a job runs that pays, or that a paid job
waits for.

Whoever sets it can send the job, with its secrets and its gate, to a machine of their own: a label of a self-hosted
runner is enough, and a variable can be changed by everybody who may write to the repository. `fromJSON(vars.RUNNER)`,
a matrix, an output or an input of a called workflow that comes from one is the same.

Write the label as a constant (`runs-on: ubuntu-24.04`), or take it from a matrix of constants."""


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for labels that are not decided in the repository."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    for job in dict.fromkeys(each for paying in paid.paying for each in (paying, *paying.before)):
        _label(report, paid, job)
    return report.findings.values()


def _label(report: Report, paid: PaidWorkflow, job: PaidJob) -> None:
    node = job.job.get("runs-on")
    for source in sources(node, job.scope, note="decides where the job runs"):
        outside = decided_outside(source, paid)
        if node is None or not (outside or source.kind in {Kind.UNKNOWN, Kind.SCRIPT, Kind.ACTION}):
            continue
        sure = outside and not source.through
        report.add(
            job.frame,
            node,
            f"`{source.name}` decides on which machine the job `{job.id}` runs",
            why="whoever sets it can send the job and its secrets to a machine of their own",
            fix="write the label as a constant, such as `ubuntu-24.04`",
            level="error" if sure else "warning",
            confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
            way=source.trail,
        )


RULE = Rule(
    id=ID,
    summary="a paid job on a machine that an input or a variable chooses",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=8.0,
)
