"""Every job of a paid workflow ends by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.fixes.hygiene import add_timeout
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.sources import decided_outside, sources
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "paid-timeout"
EXPLANATION = """\
A job of a paid workflow has no limit of time, or an input sets it.

Without `timeout-minutes` GitHub stops a job after 6 hours. An agent that hangs or goes in circles may spend money all
that time. Set `timeout-minutes` a little above what the catalog allows for all attempts of a cell, as a constant, or
from the plan (`matrix`, `needs`). An input or a variable could set it to hours."""

LONGEST = 360


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for jobs without a limit."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    for job in paid.jobs:
        if job.job.uses is not None:
            continue  # the jobs of the workflow that it calls have limits of their own
        pays = paid.is_paying(job)
        node = job.job.get("timeout-minutes")
        if not isinstance(node, Scalar) or node.data is None:
            _missing(report, job, pays=pays)
            continue
        for source in sources(node, job.scope, note="the limit of the job"):
            if decided_outside(source, paid):
                report.add(
                    job.frame,
                    node,
                    f"`{source.name}` sets the limit of the job `{job.id}`",
                    why="whoever sets it decides how long the job may spend",
                    fix="write a constant, or take the limit from the plan",
                    level="warning",
                    way=source.trail,
                )
        if isinstance(node.data, int | float) and node.data > LONGEST and pays:
            report.add(
                job.frame,
                node,
                f"the job `{job.id}` may run for {node.data:g} minutes",
                why=f"a machine of GitHub stops it after {LONGEST}; one of your own does not",
                fix="set it a little above what the catalog allows for a cell",
                level="warning",
            )
    return report.findings.values()


def _missing(report: Report, job: PaidJob, *, pays: bool) -> None:
    report.add(
        job.frame,
        job.key,
        f"the job `{job.id}` has no `timeout-minutes`",
        why="GitHub lets it run for 6 hours"
        + (", and an agent that hangs may spend money all the time" if pays else ""),
        fix="add `timeout-minutes:`, a little above what the job needs",
        level="error" if pays else "warning",
    )


RULE = Rule(
    id=ID,
    summary="a job of a paid workflow without a limit of time",
    explanation=EXPLANATION,
    inspect=inspect,
    repair=add_timeout,
    profile="paid",
    security_severity=5.0,
)
