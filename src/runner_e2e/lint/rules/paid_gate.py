"""Every job that pays waits for the gate, and asks it again before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.gates import (
    gate_job_of,
    gate_step,
    gate_weaknesses,
    gates_before,
    runs_after_failure,
    step_runs_after_failure,
)
from runner_e2e.lint.paid.sources import Kind, decided_outside, sources
from runner_e2e.lint.values import Confidence
from runner_e2e.lint.workflow import Block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob, PaidStep, PaidWorkflow
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "paid-gate"
EXPLANATION = """\
A job that holds a provider's secret, or runs a cell, is not held back by the gate.

The gate (`command: gate` of this action) refuses a run whose workflow is not the one of the default branch, whose
actors are not on the list, or whose trigger is another. It has to stand twice:

- in a job that the paid job needs, so that the secrets reach no runner before it has passed: GitHub sends a job all
  secrets that it names when it starts;
- as the first step of the paid job, since a rerun may leave out the jobs before. Only `setup` may stand before it, and
  `actions/setup-python` where the runner has no Python that fits; in the gate job a checkout, too.

What the gate is told must not come from whoever starts the run: `allowlist:` and `default-branch:` from an input let
everybody in.

A gate that may be passed by is none: `continue-on-error` on it or on its job, an `if:` that may leave it out, a job
that runs all the same (`if: always()`, `!cancelled()`, `failure()`), a step that does. `always()` together with
`needs.gate.result == 'success'` is fine. The gate may stand in a local composite action or in a local workflow that
is called; what is elsewhere cannot be seen, and does not count."""

_FIX_JOB = (
    "add a job with `setup` and `gate` (`uses: …/runner-e2e-action`, `with: { command: gate }`), and `needs:` it here"
)
_FIX_STEP = "make `gate` the first step after `setup`: `uses: …/runner-e2e-action` with `command: gate`"

_PREPARES = frozenset({"actions/setup-python"})
"""Actions that `setup` may need before it."""


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for the jobs that the gate does not hold back."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    for job in paid.paying:
        _needed(report, paid, job)
        if not job.opaque:
            _repeated(report, paid, job)
    return report.findings.values()


def _needed(report: Report, paid: PaidWorkflow, job: PaidJob) -> None:
    """The job waits for a gate job, and does not run when that did not succeed."""
    if paid.called and paid.has_callers:
        return  # its callers are judged
    passed_by = []
    for waiting, gate in gates_before(job):
        step = gate_step(gate)
        if step is not None:
            _told(report, paid, step)
            _before(report, gate, step, _PREPARES | {"actions/checkout"})
        if not runs_after_failure(waiting, gate):
            return
        passed_by.append((waiting, gate))
    for waiting, gate in passed_by[:1]:
        condition = waiting.job.condition
        assert condition is not None
        report.add(
            waiting.frame,
            condition,
            f"the job `{waiting.id}` runs although the gate did not pass",
            why="this condition may hold after a job before it failed",
            fix=f"leave out the status function, or add `&& needs.{gate.id}.result == 'success'`",
            way=[gate.frame.place(gate.key, f"the job `{gate.id}` is the gate")],
        )
    if passed_by or _weak(report, job):
        return
    elsewhere = next((each for each in job.siblings.values() if each is not job and gate_job_of(each)), None)
    report.add(
        job.frame,
        job.key,
        f"the job `{job.id}` pays and waits for no gate job",
        why="its secrets reach a runner before anybody has asked whether this run may pay",
        fix=_FIX_JOB if elsewhere is None else f"add `needs: {elsewhere.id}`",
        confidence=Confidence.MEDIUM if paid.called else Confidence.HIGH,
        way=[]
        if elsewhere is None
        else [elsewhere.frame.place(elsewhere.key, f"the job `{elsewhere.id}` is the gate")],
    )


def _weak(report: Report, job: PaidJob) -> bool:
    """Whether a job before has a gate that holds nothing, which is reported."""
    found = False
    for ancestor in job.before:
        gate = gate_step(ancestor)
        if gate is not None and not gate_job_of(ancestor):
            found = True
            _weaknesses(report, ancestor, gate)
    return found


def _weaknesses(report: Report, job: PaidJob, gate: PaidStep) -> None:
    for weakness in gate_weaknesses(job, gate):
        report.add(
            weakness.frame,
            weakness.node,
            f"the gate {weakness.how}",
            why="a gate that may be passed by keeps nobody out",
            fix="take this line away",
            way=[gate.frame.place(gate.anchor, "the gate")],
        )


def _before(report: Report, job: PaidJob, gate: PaidStep, allowed: frozenset[str]) -> None:
    """The first step before the gate that is more than its preparation."""
    before = job.leaves[: job.leaves.index(gate)]
    first = next((leaf for leaf in before if not _prepares(leaf, allowed)), None)
    if first is not None:
        report.add(
            first.frame,
            first.anchor,
            f"{first.shown} stands before the gate",
            why="what it does happens even when this run may not pay, and it can change what the gate runs",
            fix="move it behind the gate; only `setup` may stand before",
            way=[gate.frame.place(gate.anchor, "the gate")],
        )


def _prepares(leaf: PaidStep, allowed: frozenset[str]) -> bool:
    uses = leaf.step.uses
    return leaf.command == "setup" or (uses is not None and uses.value.partition("@")[0].lower() in allowed)


def _told(report: Report, paid: PaidWorkflow, gate: PaidStep) -> None:
    """The gate hears who may pay, and which branch is the default one, from nobody that it judges."""
    for name, meaning in (("allowlist", "who may pay"), ("default-branch", "which branch may pay")):
        node = Block(gate.step.arguments).get(name)
        for source in sources(node, gate.scope, note=f"becomes the `{name}` of the gate"):
            if node is not None and decided_outside(source, paid) and source.kind is not Kind.VARIABLE:
                report.add(
                    gate.frame,
                    node,
                    f"`{source.name}` tells the gate {meaning}",
                    why="whoever starts the run can then let themselves in",
                    fix=f"take it from a variable of the repository: `{name}: ${{{{ vars.… }}}}`",
                    confidence=Confidence.MEDIUM if source.through else Confidence.HIGH,
                    way=source.trail,
                )


def _repeated(report: Report, paid: PaidWorkflow, job: PaidJob) -> None:
    """The first step of the job is the gate, and no step that pays runs after it has failed."""
    gate = gate_step(job)
    if gate is None:
        first = next((leaf for leaf in job.leaves if not _prepares(leaf, _PREPARES)), None)
        where = first.frame if first is not None else job.frame
        report.add(
            where,
            first.anchor if first is not None else job.key,
            f"the job `{job.id}` pays and does not begin with the gate",
            why="a rerun may leave out the jobs before, and this job would ask nobody",
            fix=_FIX_STEP,
        )
        return
    _before(report, job, gate, _PREPARES)
    _weaknesses(report, job, gate)
    _told(report, paid, gate)
    behind = job.leaves[job.leaves.index(gate) + 1 :]
    for leaf in behind:
        if not paid.held(leaf) and leaf.command != "run":
            continue
        condition = step_runs_after_failure(leaf, gate)
        if condition is not None:
            report.add(
                leaf.frame,
                condition,
                f"{leaf.shown} runs although the gate failed",
                why="this condition holds after a step before it failed",
                fix="leave out the status function: without one a step runs only when all before it succeeded",
                way=[gate.frame.place(gate.anchor, "the gate")],
            )


RULE = Rule(
    id=ID,
    summary="a paid job that the gate does not hold back",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=9.0,
)
