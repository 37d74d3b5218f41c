"""A paid run is not ended by the next one, and none is lost while it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.evaluation import EvaluationError, evaluate
from runner_e2e.lint.expression import ExpressionError, embedded, parse
from runner_e2e.lint.expression_data import ANYTHING, Choice, Dictionary, Known, truth_of
from runner_e2e.lint.finding import Rule
from runner_e2e.lint.fixes.hygiene import add_group, keep_runs
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.references import references
from runner_e2e.lint.workflow import Block
from runner_e2e.yaml_positions import Mapping, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding, Fix
    from runner_e2e.lint.paid.frames import Frame
    from runner_e2e.lint.paid.model import PaidJob, PaidWorkflow
    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.workflow import Workflow
    from runner_e2e.yaml_positions import Node

__all__ = ["RULE"]

ID = "paid-concurrency"
EXPLANATION = """\
A run of a paid workflow may be ended by another one, or be lost while it waits.

- `cancel-in-progress` must not be true: a newer run then ends a job that has paid already, and its result is lost.
- The group must be the run's own (`paid-${{ github.run_id }}`, or the nonce of its dispatch): GitHub keeps one
  waiting run of a group and drops the others, also with `cancel-in-progress: false`.
- The group of a matrix job must hold the cell's handle or index: its cells would drop one another.
- Say it at the top of the workflow, so that nobody adds a shared group later without seeing this line.

`concurrency` of a workflow that is called counts for its callers too."""

_NONE = "the paid workflow has no `concurrency`"
_ENDED = "a newer run ends this one while it pays"


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for the groups of a paid workflow and its paid jobs."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    top = paid.workflow.get("concurrency")
    if top is not None:
        _group(report, paid, paid.frame, top, None)
    elif not paid.called and any(job.job.get("concurrency") is None for job in paid.paying if job.caller is None):
        _missing(report, paid)
    seen = {id(paid.frame)}
    for job in paid.jobs:
        if id(job.frame) not in seen:
            seen.add(id(job.frame))
            called = job.workflow.get("concurrency")
            if called is not None:
                _group(report, paid, job.frame, called, None)
        own = job.job.get("concurrency")
        if own is not None and (job.inside or paid.is_paying(job)):
            _group(report, paid, job.frame, own, job)
    return report.findings.values()


def _missing(report: Report, paid: PaidWorkflow) -> None:
    on = next(key for name, (key, _) in paid.workflow.fields.items() if name == "jobs")
    report.add(
        paid.frame,
        on,
        _NONE,
        why="nothing says that its runs are neither ended nor dropped by one another",
        fix="add `concurrency: { group: paid-${{ github.run_id }}, cancel-in-progress: false }` above",
        level="warning",
    )


def _group(report: Report, paid: PaidWorkflow, frame: Frame, node: Node, job: PaidJob | None) -> None:
    name = Block(node).get("group") if isinstance(node, Mapping) else node
    cancels = Block(node).get("cancel-in-progress")
    if isinstance(cancels, Scalar) and _may_be_true(cancels, paid.workflow):
        report.add(
            frame,
            cancels,
            _ENDED,
            why="what it has paid is lost, and is paid again",
            fix="write `cancel-in-progress: false`",
        )
    if not isinstance(name, Scalar):
        return
    seen = list(references(name))
    if (
        job is not None
        and job.job.matrix is not None
        and not any(each.context in {"matrix", "strategy"} for each in seen)
    ):
        report.add(
            frame,
            name,
            f"all cells of the job `{job.id}` share one group",
            why="GitHub keeps one waiting job of a group and drops the others: cells are lost",
            fix="add the handle of the cell: `${{ matrix.handle }}`",
        )
    elif job is None or job.job.matrix is None:
        own = any(each.context == "inputs" or _is_of_the_run(each.context, each.names) for each in seen)
        if not own:
            report.add(
                frame,
                name,
                "runs of this group drop one another while they wait",
                why="GitHub keeps one waiting run of a group, also with `cancel-in-progress: false`",
                fix="give each run a group of its own: `${{ github.run_id }}`",
                level="warning",
            )


def _is_of_the_run(context: str, names: tuple[str | None, ...]) -> bool:
    path = tuple((name or "").lower() for name in names)
    return context == "github" and (path[:1] in {("run_id",), ("run_number",)} or path[:2] == ("event", "inputs"))


def _may_be_true(node: Scalar, workflow: Workflow) -> bool:
    """Whether the value may be true for an event that starts the workflow."""
    if "${{" not in node.value:
        return node.data is True or node.value.lower() == "true"
    events = tuple(Known(name) for name in workflow.triggers if name != "workflow_call")
    github = Dictionary.of({"event_name": Choice.of(events) if events else ANYTHING}, others=ANYTHING)
    try:
        places = embedded(node.value)
        if len(places) != 1:
            return True
        expression = parse(node.value, start=places[0].inner_start, end=places[0].inner_end)
        return any(truth_of(each) is not False for each in evaluate(expression, {"github": github}))
    except (ExpressionError, EvaluationError):
        return True


def repair(finding: Finding, document: Document, repository: Repository) -> Fix | None:
    """A group that is missing, or the end of runs by others."""
    if finding.message == _NONE:
        return add_group(finding, document, repository)
    return keep_runs(finding, document, repository) if finding.message == _ENDED else None


RULE = Rule(
    id=ID,
    summary="a paid run that another run ends or drops",
    explanation=EXPLANATION,
    inspect=inspect,
    repair=repair,
    profile="paid",
    security_severity=5.0,
)
