"""No confidential value in a name that GitHub shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule, named, of_kind, seen
from runner_e2e.lint.sighting import PUBLICATION, Surface

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
A confidential value is part of a name: of the run, a job, a step, a concurrency group, an environment or its URL, a
label of a runner, an artifact, or the key of a cache; or of what is sent to GitHub to be shown: an issue, a comment, a
release, a check.

Names stand on the page of the run, in lists and in the API, for everybody who can see the repository. They are made
before the first step, so no mask hides them. Some come by themselves: a job without a `name:` has the values of its
matrix in its name, and a `run` step without one is called by the first line of its script, expanded.

Name things by a handle (`runner-e2e` makes one from each id), by the number of the run, or by nothing of the value."""

_NAMED = "everybody who can see the run can read this name, and no mask hides it"
_PUBLISHED = "everybody who can see the repository can read it there, and no mask hides it"
_MACHINE = "name the kind of machine, not the cell"
_EXPRESSION = "EXPRESSION"
_FIXES = {
    "the default name of the job": "give the job a `name:` with a handle of the cell, as in `${{ matrix.handle }}`",
    "the default name of the step": (
        f"give the step a `name:`, put `VALUE: {_EXPRESSION}` under its `env:`, and write `$VALUE` here"
    ),
    "the name of the job": "name the job by a handle of the cell, as in `${{ matrix.handle }}`",
    "the concurrency group": "use a handle of the cell, or `${{ github.run_id }}` for a group of its own",
    "the name of the environment": "use one environment for all cells",
    "a label of the runner": _MACHINE,
    "the group of the runner": _MACHINE,
}


def check(sighting: Sighting) -> Finding | None:
    """A finding for a confidential value in a name."""
    taints = of_kind(sighting, "confidential")
    if sighting.surface is not Surface.NAME or not taints:
        return None
    return seen(
        sighting,
        taints,
        rule="confidential-name",
        level="error",
        message=f"{named(taints)} is part of {sighting.subject}",
        why=_PUBLISHED if sighting.advice == PUBLICATION else _NAMED,
        fix=_FIXES.get(sighting.subject, "use a handle of the cell, or the number of the run").replace(
            _EXPRESSION, sighting.detail
        ),
    )


RULE = Rule(
    id="confidential-name",
    summary="no confidential value in a name that GitHub shows",
    explanation=EXPLANATION,
    check=check,
    security_severity=7.5,
)
