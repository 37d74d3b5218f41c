"""A paid workflow starts by a schedule or by hand, and by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.events import jobs_on, written_triggers
from runner_e2e.lint.paid.findings import Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "paid-trigger"
EXPLANATION = """\
A workflow that pays has another trigger than `schedule` and `workflow_dispatch`.

A push, a pull request, an issue, a comment, a label or another workflow can then spend money, often by the hand of
somebody who has no right to. `pull_request_target` and `workflow_run` are the worst: they have the secrets, and what
starts them comes from outside. The gate refuses such a run, but it should not start at all.

`workflow_call` is fine: the workflows that call it are judged as if its jobs were theirs. A trigger that every paid
job excludes by its `if:` is a warning: one edit of that line, and it pays."""

_ALLOWED = frozenset(("schedule", "workflow_dispatch", "workflow_call"))
_WHY = {
    "pull_request_target": "it has the secrets of the repository, and anybody can open a pull request",
    "workflow_run": "it has the secrets of the repository, and the run before it may be one of a fork",
    "pull_request": "anybody who can push a branch can then spend money",
    "push": "everybody who can push can then spend money, with a workflow of their own branch",
    "repository_dispatch": "whatever holds a token for the repository can then spend money, and no person is named",
    "issue_comment": "anybody who can write a comment can then spend money",
}


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """A finding for each trigger that may not start a paid workflow."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    for name, node in written_triggers(paid.workflow):
        if name in _ALLOWED:
            continue
        started = jobs_on(paid, name)
        report.add(
            paid.frame,
            node,
            f"`{name}` starts a workflow that pays",
            why=_WHY.get(name, "an event can then spend money, whoever caused it"),
            fix="leave `schedule` and `workflow_dispatch` only; jobs for other events go into another workflow",
            level="error" if started else "warning",
            way=[job.frame.place(job.key, f"the job `{job.id}` pays") for job in (started or paid.paying)[:1]],
        )
    return report.findings.values()


RULE = Rule(
    id=ID,
    summary="a paid workflow with a trigger other than a schedule or a person",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=8.5,
)
