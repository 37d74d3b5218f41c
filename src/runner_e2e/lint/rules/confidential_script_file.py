"""No confidential value in the text of a script that the runner writes to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding, Rule, flow_of, named
from runner_e2e.lint.fixes.interpolation import repair
from runner_e2e.lint.sighting import Surface

if TYPE_CHECKING:
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
A confidential value stands in `${{ }}` inside of `run:`.

The runner puts the value into the text and writes the text to `_temp/<guid>.sh`, which stays there until the job
ends. Every later process of the job can read it, an agent too, even when only a builtin of the shell used the value.
The log shows the text as well.

Give the value to the step as a variable under `env:`, and use the variable in the script."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for a confidential value in the text of a script."""
    taints = [taint for taint in sighting.taints if taint.label.kind == "confidential"]
    if sighting.surface is not Surface.SCRIPT or not taints:
        return None
    return Finding(
        rule="confidential-script-file",
        level="error",
        confidence=max(taint.confidence for taint in taints),
        span=sighting.origin.span(sighting.start, sighting.end),
        message=f"{named(taints)} becomes text of the script",
        why="the runner writes the script to a file that every later process of the job can read",
        fix=f"put `VALUE: {sighting.subject}` under `env:` of the step, and write `$VALUE` here",
        flow=flow_of(taints),
        labels=tuple(sorted({taint.label.name for taint in taints})),
    )


RULE = Rule(
    id="confidential-script-file",
    summary="no confidential value in the text of a script",
    explanation=EXPLANATION,
    check=check,
    repair=repair,
)
