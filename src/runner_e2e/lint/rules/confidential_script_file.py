"""No confidential value in the text of a script that the runner writes to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule, named, of_kind, seen
from runner_e2e.lint.fixes.interpolation import repair
from runner_e2e.lint.sighting import Surface

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
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
    taints = of_kind(sighting, "confidential")
    if sighting.surface is not Surface.SCRIPT or not taints:
        return None
    return seen(
        sighting,
        taints,
        rule="confidential-script-file",
        level="error",
        message=f"{named(taints)} becomes text of the script",
        why="the runner writes the script to a file that every later process of the job can read",
        fix=f"put `VALUE: {sighting.subject}` under `env:` of the step, and write `$VALUE` here",
    )


RULE = Rule(
    id="confidential-script-file",
    summary="no confidential value in the text of a script",
    explanation=EXPLANATION,
    check=check,
    repair=repair,
)
