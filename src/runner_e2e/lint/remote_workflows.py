"""Reusable workflows that cannot be followed: those of other repositories, and those that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.action_models import UNKNOWN_ACTION
from runner_e2e.lint.action_programs import report_unfollowed
from runner_e2e.lint.expression_data import Dictionary, Textual
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.values import UNKNOWN, Confidence, Value
from runner_e2e.lint.workflow import entries
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.expression_data import Data
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.values import Taint
    from runner_e2e.lint.workflow import Job

__all__ = ["use_unknown_workflow"]


def use_unknown_workflow(run: Run, reader: Reader, job: Job, uses: Scalar, contexts: Mapping[str, Data]) -> Dictionary:
    """The outputs of the workflow that *job* calls: any text, which may hold what is confidential of the inputs.

    What it is given is told: the code of another repository may do anything with it.
    """
    found: list[Taint] = []
    for key, node in entries(job.get("with")):
        if not isinstance(node, Scalar):
            continue
        script = reader.script(node, contexts, f"into the input `{key.value}` of `{uses.value}`")
        for hole in script.interpolations:
            taints = frozenset(taint for taint in hole.value.taints if taint.label.kind == "confidential")
            found += taints
            if taints and not uses.value.startswith("./"):
                run.report(
                    Sighting(
                        surface=Surface.THIRD_PARTY,
                        origin=script.origin,
                        start=hole.start,
                        end=hole.end,
                        taints=taints,
                        subject=uses.value.partition("@")[0],
                        detail=key.value,
                        advice=UNKNOWN_ACTION,
                    )
                )
    if uses.value.startswith("./"):
        reason = f"the workflow `{uses.value}` cannot be read, or is nested too deeply"
        report_unfollowed(run, reader.origin(uses), frozenset(found), reason)
    carried = Value.of(found).weakened(Confidence.LOW) if found else UNKNOWN
    return Dictionary.of({}, others=Textual(carried | UNKNOWN))
