"""No confidential value in an output, or an input of a reusable workflow, that nothing masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule, named, of_kind, seen
from runner_e2e.lint.sighting import Surface

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
A confidential value is handed on where no mask goes with it.

A mask belongs to the job that registered it. The output of a job arrives in other jobs as plain text, which their
logs show; an output that holds masked text does not arrive at all, for the runner drops it. The inputs of a reusable
workflow are listed in the log of each of its jobs before the first step (the group "Inputs"). An output of a step
stays in its job, but a log with debugging on shows it: that is told as a note.

Hand on a handle or a sealed selection, and let the job that needs the value open it."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for a value that is handed on unmasked."""
    taints = of_kind(sighting, "confidential")
    if sighting.surface is not Surface.OUTPUT or not taints:
        return None
    if sighting.advice == "inputs":
        why = "the jobs of a reusable workflow list their inputs in the log before any step can mask them"
        fix = "hand over a sealed selection or a handle"
    elif sighting.advice == "step":
        why = "nothing has masked it when the step ends: a log with debugging on shows it, and steps that take it may"
        fix = 'mask it before it is written: `echo "::add-mask::$value"`'
    else:
        why = "no mask goes with it to other jobs, whose logs show what they are given"
        fix = "hand on a handle, and let the job that needs the value read it itself"
    return seen(
        sighting,
        taints,
        rule="confidential-output-unmasked",
        level="note" if sighting.advice == "step" else "warning",
        message=f"{named(taints)} is handed on unmasked: {sighting.subject}",
        why=why,
        fix=fix,
    )


RULE = Rule(
    id="confidential-output-unmasked",
    summary="no confidential value in an output that nothing masks",
    explanation=EXPLANATION,
    check=check,
    level="warning",
    security_severity=5.5,
)
