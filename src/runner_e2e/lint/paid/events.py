"""Which events start a workflow, and which of its paid jobs then run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.expression_data import ANYTHING, Dictionary, Known
from runner_e2e.lint.paid.conditions import AFTER_SUCCESS, condition_of, may_hold
from runner_e2e.lint.workflow import entries, list_of
from runner_e2e.yaml_positions import Mapping, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.paid.model import PaidJob, PaidWorkflow
    from runner_e2e.lint.workflow import Workflow
    from runner_e2e.yaml_positions import Node

__all__ = ["jobs_on", "runs_on", "written_triggers"]


def written_triggers(workflow: Workflow) -> Iterator[tuple[str, Node]]:
    """Each trigger with the node that names it."""
    node = workflow.get("on")
    if isinstance(node, Mapping):
        yield from ((key.value, key) for key, _ in entries(node))
        return
    yield from ((item.value, item) for item in list_of(node) if isinstance(item, Scalar))


def jobs_on(paid: PaidWorkflow, event: str) -> tuple[PaidJob, ...]:
    """The paid jobs that may run on *event*."""
    return tuple(job for job in paid.paying if runs_on(job, event))


def runs_on(job: PaidJob, event: str) -> bool:
    """Whether *job* may run on *event*, by its own condition and those of the jobs it needs or is called by."""
    contexts = {"github": Dictionary.of({"event_name": Known(event)}, others=ANYTHING)}
    current: PaidJob | None = job
    while current is not None:
        condition = condition_of(current.job.condition)
        if not may_hold(condition, AFTER_SUCCESS, contexts):
            return False
        if not condition.names_status and not all(
            may_hold(condition_of(each.job.condition), AFTER_SUCCESS, contexts) for each in current.ancestors
        ):
            return False
        current = current.caller
    return True
