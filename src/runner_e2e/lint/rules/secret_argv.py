"""No secret in the argument vector of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.advice import advise, placed
from runner_e2e.lint.finding import Rule, named, of_kind, seen
from runner_e2e.lint.fixes.arguments import repair
from runner_e2e.lint.sighting import Surface
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
A secret (`secrets.*`, `github.token`, or text made of one) is an argument of a program that the step starts.

Every process of the runner can read the command line of every other one, and many programs put their arguments into
logs and error reports. The mask of the log does not help there.

Most programs take a secret from the environment, from standard input or from a file."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for a secret in an argument."""
    taints = of_kind(sighting, "secret")
    if sighting.surface is not Surface.ARGV or not taints:
        return None
    sure = any(taint.confidence > Confidence.LOW for taint in taints)
    where = placed(sighting.advice, command=sighting.subject, sure=sure)
    return seen(
        sighting,
        taints,
        rule="secret-argv",
        level="warning",
        message=f"the secret {named(taints)} {where}",
        why="every process on the machine can read this command line",
        fix=advise(sighting.advice, command=sighting.subject, argument=sighting.detail, before=sighting.line_before),
    )


RULE = Rule(
    id="secret-argv",
    summary="no secret in the arguments of a program",
    explanation=EXPLANATION,
    check=check,
    repair=repair,
    level="warning",
)
