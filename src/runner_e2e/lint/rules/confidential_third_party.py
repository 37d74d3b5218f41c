"""No confidential value for code, services and agents that nobody vouches for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.action_models import AGENT, UNKNOWN_ACTION
from runner_e2e.lint.finding import Rule, named, of_kind, seen
from runner_e2e.lint.sighting import Surface
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.sighting import Sighting

__all__ = ["RULE"]

EXPLANATION = """\
A confidential value is given to somebody else: to an action or a reusable workflow of another repository that the lint
does not know, to a service that an action writes to, or to an agent that an action starts.

Code that is not known may print the value, put it on a command line, or send it away. The processes of an action
inherit every variable of the step, of the job and of the workflow as well. What an agent has in its prompt or in its
environment tells it which case it is in.

Give a confidential value to the one step that needs it, in its own `env:`. Where an action is safe, say so in the
catalog, under `lint: actions:`. Secrets are not reported: actions are given tokens for a purpose."""


def check(sighting: Sighting) -> Finding | None:
    """A finding for a confidential value that an action, a service or an agent is given."""
    taints = of_kind(sighting, "confidential")
    if sighting.surface is not Surface.THIRD_PARTY or not taints:
        return None
    unknown = sighting.advice == UNKNOWN_ACTION
    variable = sighting.detail.startswith("$")
    place = f"the variable `{sighting.detail[1:]}`" if variable else f"the input `{sighting.detail}`"
    found = seen(
        sighting,
        taints,
        rule="confidential-third-party",
        level="warning" if unknown else "error",
        message=_message(named(taints), sighting, place, variable=variable),
        why=_WHY.get(sighting.advice, "who can read there learns it"),
        fix=_fix(sighting, variable=variable),
    )
    return replace(found, confidence=min(found.confidence, Confidence.MEDIUM)) if unknown else found


_WHY = {
    UNKNOWN_ACTION: "what is done with it there is not known to the lint",
    AGENT: "the agent can read it, and then knows which case it is in",
}


def _message(value: str, sighting: Sighting, place: str, *, variable: bool) -> str:
    action = f"`{sighting.subject}`"
    if sighting.advice == UNKNOWN_ACTION:
        return f"{action} inherits {value} in {place}" if variable else f"{value} is given to {action} in {place}"
    receiver = "the agent" if sighting.advice == AGENT else sighting.advice
    return f"{value} reaches {receiver} by {place} of {action}"


def _fix(sighting: Sighting, *, variable: bool) -> str:
    if variable:
        return "set the variable in the `env:` of the one step that needs it, not of the job or of this step"
    if sighting.advice == UNKNOWN_ACTION and sighting.subject.endswith((".yml", ".yaml")):
        return "give a handle, or keep the workflow in this repository"
    if sighting.advice == UNKNOWN_ACTION:
        return "give a handle, or describe the action in the catalog under `lint: actions:`"
    return "give a handle that says nothing of the case"


RULE = Rule(
    id="confidential-third-party",
    summary="no confidential value for unknown actions, services and agents",
    explanation=EXPLANATION,
    check=check,
    security_severity=6.0,
)
