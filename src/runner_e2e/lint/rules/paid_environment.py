"""A provider's secret comes out of a protected environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.secrets import Level
from runner_e2e.lint.paid.sources import Kind, constants, decided_outside, sources
from runner_e2e.lint.values import Confidence
from runner_e2e.lint.workflow import Block
from runner_e2e.yaml_positions import Mapping, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob, PaidWorkflow
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run
    from runner_e2e.yaml_positions import Node

__all__ = ["RULE"]

ID = "paid-environment"
EXPLANATION = """\
A job holds a provider's secret that does not come through a protected environment.

An environment has rules that no workflow can change: who has to approve, and which branches may use it. A secret of
the repository has none: every workflow of every branch can read it. So the job names its environment (`environment:
paid-evals`), by a constant, and the secret is kept there and nowhere else.

A job that calls a workflow cannot have an environment: what it hands over by name (`secrets: { KEY: … }`) is a secret
of the repository. `secrets: inherit` to a local workflow is fine when the job there names the environment.

Whether the environment is protected cannot be seen in a file: look at Settings > Environments."""

_WHY = "a secret of the repository can be read by every workflow of every branch; an environment can be protected"


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for the jobs that hold a provider's secret without an environment of their own."""
    paid = paid_workflow(run, document)
    report = Report(ID, _WHY)
    if paid is None:
        return ()
    for job in paid.jobs:
        if job.job.uses is not None:
            _handed_over(report, paid, job)
        elif any(paid.pays(use) for use in job.secrets):
            _named(report, paid, job)
    return report.findings.values()


def _handed_over(report: Report, paid: PaidWorkflow, job: PaidJob) -> None:
    for use in job.own:
        if paid.pays(use) and use.level is Level.CALL and use.kind != "inherit":
            report.add(
                job.frame,
                use.span,
                f"{use.shown} is handed over by name, and so comes from no environment",
                fix="write `secrets: inherit`, and name the environment in the job that pays",
            )


def _named(report: Report, paid: PaidWorkflow, job: PaidJob) -> None:
    node = job.job.get("environment")
    name = Block(node).get("name") if isinstance(node, Mapping) else node
    if not isinstance(name, Scalar) or not name.value.strip():
        use = next(use for use in job.secrets if paid.pays(use))
        report.add(
            job.frame,
            job.key,
            f"the job `{job.id}` holds {use.shown} and has no environment",
            fix="add `environment: paid-evals`, protect it in the settings, and keep the secret there only",
            way=[use.frame.place(use.node, f"{use.shown} is used here")],
        )
        return
    if "" in (constants(name) or ()):
        _chosen(report, job, name, "may be empty: then there is none", Confidence.HIGH)
        return
    for source in sources(name, job.scope, note="the name of the environment"):
        if decided_outside(source, paid):
            how = f"is chosen by `{source.name}`"
            _chosen(report, job, name, how, Confidence.MEDIUM if source.through else Confidence.HIGH)
        elif source.kind in {Kind.UNKNOWN, Kind.SCRIPT, Kind.ACTION}:
            _chosen(report, job, name, f"comes from `{source.name}`, which is not known here", Confidence.MEDIUM)


def _chosen(report: Report, job: PaidJob, name: Node, how: str, confidence: Confidence) -> None:
    report.add(
        job.frame,
        name,
        f"the environment of the job `{job.id}` {how}",
        why="whoever chooses it may choose one without protection, or one that does not exist: GitHub makes it then",
        fix="write the name of the protected environment as a constant",
        confidence=confidence,
        level="error" if confidence is Confidence.HIGH else "warning",
    )


RULE = Rule(
    id=ID,
    summary="a provider's secret that comes through no protected environment",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=8.0,
)
