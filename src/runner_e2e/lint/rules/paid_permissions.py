"""A paid workflow gives its jobs what each needs, and a paid job nothing that writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.fixes.hygiene import lessen_permissions
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.grants import Grants, granted
from runner_e2e.yaml_positions import Mapping

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob, PaidWorkflow
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "paid-permissions"
EXPLANATION = """\
A job of a paid workflow has a token that can do more than it needs.

- Without `permissions` a job gets what the settings of the repository say, which may be to write everything.
- A paid job runs an agent, which may find the token: it gets `contents: read` for its checkout, and nothing that
  writes, `id-token: write` included.
- Only the jobs that claim and that settle write (`contents: write`, with `command: claim` or `command: settle`).

Write `permissions: {}` at the top of the workflow, and give each job its own. A job of a called workflow has what it
says itself, else what the calling job has."""

_SETTLES = frozenset(("claim", "settle", "dispatch"))


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for tokens that can do too much."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    for job in paid.jobs:
        grants = granted(job)
        if grants is None:
            if not (paid.called and paid.has_callers) and job.job.uses is None:
                _missing(report, paid, job)
        elif grants.writes and not job.inside:
            _writes(report, paid, job, grants)
    return report.findings.values()


def _missing(report: Report, paid: PaidWorkflow, job: PaidJob) -> None:
    pays = paid.is_paying(job)
    report.add(
        job.frame,
        job.key,
        f"nothing says what the token of the job `{job.id}` may do",
        why="it gets what the settings of the repository say, which may be to write everything",
        fix="add `permissions: { contents: read }` to the job, and `permissions: {}` at the top",
        level="error" if pays else "warning",
    )


def _writes(report: Report, paid: PaidWorkflow, job: PaidJob, grants: Grants) -> None:
    pays = paid.is_paying(job)
    settles = any(leaf.command in _SETTLES for leaf in job.leaves)
    here = grants.node is job.job.get("permissions")
    for name, node in grants.writes:
        if pays:
            report.add(
                grants.frame,
                node,
                f"the paid job `{job.id}` may write: {name}",
                why="an agent that finds the token can do it too",
                fix="leave `contents: read`, and let another job write" if here else _OWN,
                way=() if here else [job.frame.place(job.key, f"the job `{job.id}` has no `permissions` of its own")],
            )
        elif not here or not isinstance(grants.node, Mapping):
            report.add(
                grants.frame,
                node,
                f"the job `{job.id}` may write: {name}",
                why="it did not ask for it",
                fix=_OWN,
                level="warning",
            )
        elif name == "contents" and not settles:
            report.add(
                grants.frame,
                node,
                f"the job `{job.id}` may write contents, and neither claims nor settles",
                why="who can write contents can change refs, and with them the claims of others",
                fix="move `command: claim` or `command: settle` into a job of its own, and write only there",
                level="warning",
            )


_OWN = "write `permissions: {}` at the top, and give the job its own: `permissions: { contents: read }`"

RULE = Rule(
    id=ID,
    summary="a job of a paid workflow whose token can do too much",
    explanation=EXPLANATION,
    inspect=inspect,
    repair=lessen_permissions,
    profile="paid",
    security_severity=6.0,
)
