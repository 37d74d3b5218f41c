"""No confidential value in the argument vector of a process."""

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
A confidential value (a cell id, or its case part) is an argument of a program that the step starts.

Every process of the runner can read the command line of every other one (`ps`, `/proc/<pid>/cmdline`), the agent
too. The value then tells it which case it is in. A variable of the environment, standard input or a file can be
read by far fewer.

Builtins of the shell start no process: `echo`, `printf`, `[ ]`, `[[ ]]` and `case` may have the value. `X="$ID" tool`
sets a variable and is fine; `env X="$ID" tool` is not, for `env` is a program."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for a confidential value in an argument."""
    taints = of_kind(sighting, "confidential")
    if sighting.surface is not Surface.ARGV or not taints:
        return None
    sure = any(taint.confidence > Confidence.LOW for taint in taints)
    where = placed(sighting.advice, command=sighting.subject, sure=sure)
    return seen(
        sighting,
        taints,
        rule="confidential-argv",
        level="error",
        message=f"{named(taints)} {where}",
        why="every process on the machine can read this command line, the agent too",
        fix=advise(sighting.advice, command=sighting.subject, argument=sighting.detail, before=sighting.line_before),
    )


RULE = Rule(
    id="confidential-argv",
    summary="no confidential value in the arguments of a program",
    explanation=EXPLANATION,
    check=check,
    repair=repair,
)
