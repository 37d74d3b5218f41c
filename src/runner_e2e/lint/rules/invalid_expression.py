"""An expression that GitHub refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding, Rule
from runner_e2e.lint.sighting import Surface
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
GitHub refuses this expression, so the workflow does not run: a syntax error, a context or function that does not
exist, a wrong number of arguments, or `${{` without `}}`.

Strings in expressions stand in single quotes; a quote in a string is doubled: `'it''s'`."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for an expression that is refused."""
    if sighting.surface is not Surface.EXPRESSION:
        return None
    return Finding(
        rule="invalid-expression",
        level="error",
        confidence=Confidence.HIGH,
        span=sighting.origin.span(sighting.start, sighting.end),
        message=f"not a valid expression: {sighting.subject}",
        why="GitHub refuses the workflow",
        fix="correct the expression",
    )


RULE = Rule(
    id="invalid-expression",
    summary="an expression that GitHub refuses",
    explanation=EXPLANATION,
    check=check,
)
