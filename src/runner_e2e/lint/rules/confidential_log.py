"""No confidential value, and no changed secret, in a log or an annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule, named, of_kind, seen
from runner_e2e.lint.run import HEADER
from runner_e2e.lint.sighting import Surface
from runner_e2e.lint.step_surfaces import MASK

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.sighting import Sighting
    from runner_e2e.lint.values import Taint

__all__ = ["RULE"]

EXPLANATION = """\
The log of the job, or an annotation, shows a confidential value.

A step can print it, `set -x` traces it, and the runner shows more than the step does: before each step it lists the
expanded script, the inputs under `with:` and every variable of `env:`. Inputs of a workflow are never masked by
themselves. A mask holds from the moment it is registered, for exactly the text that was registered: a masked id
does not hide its case part. `echo "::add-mask::${{ inputs.id }}"` comes too late, for the header shows the script.

This action's `command: setup` reads the confidential inputs from the event file and masks each, and the case part of
an id, before any step names them. Put it first, and give the value to the one step that needs it.

Secrets are masked by GitHub. A secret that was changed (cut, encoded, escaped) is not, and is reported with low
confidence."""

_SHOWN = {
    "log": "is printed to the log",
    "annotation": "is shown in an annotation",
    "xtrace": "is shown by `set -x`",
    MASK: "is shown in the log before it is masked",
}
_WHY = {
    "xtrace": "the trace shows each command with its variables expanded",
    MASK: "the header of the step shows the expanded script before the script runs",
}
_FIX = {
    "xtrace": "leave out `set -x`, or switch it off (`set +x`) where the value is used",
    MASK: 'read it from the event file in the script: `jq -r \'.inputs["selected-id"]\' "$GITHUB_EVENT_PATH"`',
}


def check(sighting: Sighting) -> Finding | None:
    """A finding for a value that the log shows."""
    if sighting.surface is not Surface.LOG:
        return None
    taints = of_kind(sighting, "confidential")
    if taints:
        return seen(
            sighting,
            taints,
            rule="confidential-log",
            level="error",
            message=f"{named(taints)} {_shown(sighting)}",
            why=_WHY.get(sighting.subject, _not_masked(sighting)),
            fix=_FIX.get(
                sighting.subject,
                _header_fix(taints) if sighting.subject == HEADER else "do not print it: print the handle of the cell",
            ),
        )
    secrets = of_kind(sighting, "secret")
    if not secrets or sighting.subject == HEADER:
        return None
    return seen(
        sighting,
        secrets,
        rule="confidential-log",
        level="warning",
        message=f"text made of the secret {named(secrets)} {_shown(sighting)}",
        why="GitHub masks a secret as it is; text that was changed is shown",
        fix='do not print it, or register it before: `echo "::add-mask::$text"`',
    )


def _shown(sighting: Sighting) -> str:
    if sighting.subject == HEADER:
        return f"is shown in the log: its header lists {sighting.detail}"
    return _SHOWN.get(sighting.subject, f"is printed to the log by {sighting.subject}")


def _header_fix(taints: list[Taint]) -> str:
    if all(taint.label.name.startswith("inputs.") for taint in taints):
        return "let this action's `command: setup` mask the input in the first step, and give it to later steps only"
    return "use a handle here, and let the step that needs the value read it from where it is kept"


def _not_masked(sighting: Sighting) -> str:
    if sighting.subject == HEADER:
        return "the runner lists `with:` and `env:` before each step, and nothing has masked the value until then"
    return "everybody who can see the run can read its log, and nothing has masked the value until then"


RULE = Rule(
    id="confidential-log",
    summary="no confidential value in a log",
    explanation=EXPLANATION,
    check=check,
    security_severity=6.5,
)
