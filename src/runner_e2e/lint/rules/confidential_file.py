"""No confidential value in a file that a later untrusted step can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule, named, of_kind, seen
from runner_e2e.lint.sighting import Surface

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
A confidential value stands in a file when a later step runs code that is not the repository's own, or in a file that
is uploaded.

Files in the workspace, in `RUNNER_TEMP` and elsewhere stay until the job ends, and every process of the job can read
them. What is written to `$GITHUB_ENV` becomes a variable of every later step. Untrusted are: an action of somebody
else (not `actions/*`, `github/*` or this action), an image, a step that starts an agent (`codex`, `claude`, `opencode`
and others, or this action's `command: run`), and a step that runs code of another checkout, one with `repository:` or
`ref:`. A file that was removed or overwritten before that step is fine.

Not meant are the runner's own files: the event file, which always holds the inputs, and the scripts of steps, which
have a rule of their own (confidential-script-file). This action hides them from agents.

Hand the value over in the `env:` of the one step that needs it, or remove the file before the other step runs."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for a value in a file that others read."""
    taints = of_kind(sighting, "confidential")
    if sighting.surface is not Surface.FILE or not taints:
        return None
    if sighting.advice:
        message = f"{named(taints)} stands in {sighting.subject}, which `{sighting.advice}` uploads"
        why = "everybody who can see the run can download it"
        fix = "leave the file out, or write the handle of the cell into it"
    else:
        message = f"{named(taints)} stands in {sighting.subject} when {sighting.detail} runs"
        why = "every process of the job can read it until then"
        fix = "hand it over in the `env:` of the step that needs it, or remove the file before"
    return seen(sighting, taints, rule="confidential-file", level="warning", message=message, why=why, fix=fix)


RULE = Rule(
    id="confidential-file",
    summary="no confidential value in a file that untrusted code can read",
    explanation=EXPLANATION,
    check=check,
    level="warning",
    security_severity=6.0,
)
