"""No confidential value in a step summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule, named, of_kind, seen
from runner_e2e.lint.sighting import Surface

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
A confidential value is written to the step summary (`$GITHUB_STEP_SUMMARY`), which the page of the run shows.

The runner hides registered values in a summary when the step ends: what this action's `setup` masked, GitHub's own
secrets, and what the step itself registered by then. What is changed, or was not registered, is shown.

Name the cell by its handle in a summary. `command: run` writes one itself."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for a value in a summary."""
    if sighting.surface is not Surface.SUMMARY:
        return None
    taints = of_kind(sighting, "confidential")
    if taints:
        return seen(
            sighting,
            taints,
            rule="confidential-summary",
            level="error",
            message=f"{named(taints)} is written to the step summary",
            why="the page of the run shows it, and nothing has masked the value when the step ends",
            fix="write the handle of the cell instead",
        )
    secrets = of_kind(sighting, "secret")
    if not secrets:
        return None
    return seen(
        sighting,
        secrets,
        rule="confidential-summary",
        level="warning",
        message=f"text made of the secret {named(secrets)} is written to the step summary",
        why="GitHub masks a secret as it is; text that was changed is shown",
        fix='leave it out, or register it before: `echo "::add-mask::$text"`',
    )


RULE = Rule(
    id="confidential-summary",
    summary="no confidential value in a step summary",
    explanation=EXPLANATION,
    check=check,
    security_severity=6.5,
)
