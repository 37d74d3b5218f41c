"""What the gate holds back: jobs and steps that run although it did not succeed, and gates that hold nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.expression_data import ANYTHING, NULL, Choice, Data, Dictionary, Known
from runner_e2e.lint.paid.conditions import AFTER_FAILURE, condition_of, may_be_false, may_hold
from runner_e2e.lint.paid.references import references
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.workflow import entries, scalars
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.paid.frames import Frame
    from runner_e2e.lint.paid.model import PaidJob, PaidStep
    from runner_e2e.yaml_positions import Node

__all__ = [
    "Weakness",
    "gate_job_of",
    "gate_step",
    "gate_weaknesses",
    "gates_before",
    "runs_after_failure",
    "step_runs_after_failure",
]

_NOT_SUCCEEDED = Choice((Known("failure"), Known("cancelled"), Known("skipped")))
_FAILED = Dictionary.of({"outcome": Known("failure"), "conclusion": Known("failure"), "outputs": Dictionary.of({})})


@dataclass(frozen=True, kw_only=True)
class Weakness:
    """Why a gate does not hold: the *node* of *frame* that makes it so, and how, in words that follow "the gate"."""

    frame: Frame
    node: Node
    how: str


def gate_step(job: PaidJob) -> PaidStep | None:
    """The first step of *job* that is the gate."""
    return next((leaf for leaf in job.leaves if leaf.command == "gate"), None)


def gate_weaknesses(job: PaidJob, gate: PaidStep) -> Iterator[Weakness]:
    """Every way in which *job* goes on although its step *gate* did not succeed."""
    for step in gate.chain:
        allowed = step.step.get("continue-on-error")
        if _may_be_true(allowed):
            assert allowed is not None
            yield Weakness(frame=step.frame, node=allowed, how="may fail and the job goes on")
        condition = step.step.condition
        if condition is not None and may_be_false(condition_of(condition), {}):
            yield Weakness(frame=step.frame, node=condition, how="is left out when this is false, and the job goes on")
    allowed = job.job.get("continue-on-error")
    if _may_be_true(allowed):
        assert allowed is not None
        yield Weakness(frame=job.frame, node=allowed, how="may fail and the job counts as a success")


def _may_be_true(node: Node | None) -> bool:
    return isinstance(node, Scalar) and node.data is not False and node.data is not None


def gate_job_of(job: PaidJob) -> bool:
    """Whether *job* succeeds only after a gate did: one of its own steps, or a job of the workflow that it calls."""
    if job.job.uses is None:
        gate = gate_step(job)
        return gate is not None and not any(True for _ in gate_weaknesses(job, gate))
    return any(
        each.caller is job and gate_job_of(each) and not may_be_false(condition_of(each.job.condition), {})
        for each in job.inside
    )


def gates_before(job: PaidJob) -> Iterator[tuple[PaidJob, PaidJob]]:
    """Gate jobs that *job*, or a job that calls it, waits for: the waiting job and its gate job."""
    current: PaidJob | None = job
    while current is not None:
        for ancestor in current.ancestors:
            if gate_job_of(ancestor):
                yield current, ancestor
        current = current.caller


def runs_after_failure(job: PaidJob, gate: PaidJob) -> bool:
    """Whether *job*, which waits for the job *gate*, may run although that did not succeed.

    ``success()``, which is implied, looks at all jobs before, also over others: it is false after a skipped one too.
    """
    condition = condition_of(job.job.condition)
    if not condition.names_status:
        return False
    needs: dict[str, Data] = {}
    for each in job.needs:
        if each is gate:
            needs[each.id] = Dictionary.of({"result": _NOT_SUCCEEDED, "outputs": _outputs_after_failure(gate)})
        elif gate in each.ancestors and not runs_after_failure(each, gate):
            skipped = Choice((Known("skipped"), Known("cancelled")))
            needs[each.id] = Dictionary.of({"result": skipped, "outputs": Dictionary.of({})})
        else:
            needs[each.id] = ANYTHING
    return may_hold(condition, AFTER_FAILURE, {"needs": Dictionary.of(needs)})


def _outputs_after_failure(gate: PaidJob) -> Data:
    """What the outputs of a gate job may be after its gate failed: those made by steps from there on are empty."""
    step = gate_step(gate)
    if step is None or step.outer is not None:
        return ANYTHING
    after = {each.id.lower() for each in gate.job.steps if each.number >= step.step.number and each.id}
    found: dict[str, Data] = {}
    for key, value in entries(gate.job.get("outputs")):
        seen = [each for scalar in scalars(value) for each in references(scalar)]
        made_later = bool(seen) and all(
            each.context == "steps" and each.names and (each.names[0] or "").lower() in after for each in seen
        )
        found[key.value] = NULL if made_later else ANYTHING
    return Dictionary.of(found)


def step_runs_after_failure(step: PaidStep, gate: PaidStep) -> Scalar | None:
    """The ``if`` that lets *step* run although the step *gate* before it failed, None when there is none."""
    steps = {name.step.id: _FAILED for name in gate.chain if name.step.id}
    contexts = {"steps": Dictionary.of(steps, others=ANYTHING)}
    guilty: Scalar | None = None
    for each in step.chain:
        if each in gate.chain:
            return None  # inside of the same action as the gate, and behind it there
        if not may_hold(condition_of(each.step.condition), AFTER_FAILURE, contexts):
            return None
        guilty = each.step.condition
    return guilty
