"""A script that could not be followed while confidential values or secrets were in its reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding, Rule
from runner_e2e.lint.sighting import Surface
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
The lint could not follow this script, or this part of it, and a confidential value or a secret was in its reach.

What it does with the value is not known. The place and the reason are given: a syntax error, a program text that
is made at run time, an action that is not there, or too much work for the time limit of one file (`--time-limit`).

Write the part more simply, or take the value out of its reach: give the variable only to the step that needs it."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for a part that was not followed."""
    if sighting.surface is not Surface.UNANALYSABLE:
        return None
    return Finding(
        rule="unanalysable-script",
        level="warning",
        confidence=max((taint.confidence for taint in sighting.taints), default=Confidence.MEDIUM),
        span=sighting.origin.span(sighting.start, sighting.end),
        message=f"this could not be followed: {sighting.subject}",
        why="what it does with confidential values and secrets is not known",
        fix="write it more simply, or give the variables only to the step that needs them",
    )


RULE = Rule(
    id="unanalysable-script",
    summary="a script that could not be followed",
    explanation=EXPLANATION,
    check=check,
    level="warning",
)
