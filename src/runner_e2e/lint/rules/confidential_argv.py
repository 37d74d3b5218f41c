"""No confidential value in the argument vector of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.advice import advise, placed
from runner_e2e.lint.finding import Finding, Rule, flow_of, named
from runner_e2e.lint.fixes.arguments import repair
from runner_e2e.lint.sighting import Surface
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
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
    taints = [taint for taint in sighting.taints if taint.label.kind == "confidential"]
    if sighting.surface is not Surface.ARGV or not taints:
        return None
    confidence = max(taint.confidence for taint in taints)
    where = placed(sighting.advice, command=sighting.subject, sure=confidence > Confidence.LOW)
    return Finding(
        rule="confidential-argv",
        level="error",
        confidence=confidence,
        span=sighting.origin.span(sighting.start, sighting.end),
        message=f"{named(taints)} {where}",
        why="every process on the machine can read this command line, the agent too",
        fix=advise(sighting.advice, command=sighting.subject, argument=sighting.detail, before=sighting.line_before),
        flow=flow_of(taints),
        labels=tuple(sorted({taint.label.name for taint in taints})),
    )


RULE = Rule(
    id="confidential-argv",
    summary="no confidential value in the arguments of a program",
    explanation=EXPLANATION,
    check=check,
    repair=repair,
)
