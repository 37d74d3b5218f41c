"""Chooses the event that triggers the workflow and builds its payload, with the canaries in it."""

from __future__ import annotations

import copy
import json
import secrets
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError, Place, UsageError, why_unread
from runner_e2e.sandbox.canary import Canary
from runner_e2e.workflow_audit.workflow_file import Input, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.workflow_audit.model import WorkflowOptions
    from runner_e2e.workflow_audit.workflow_file import WorkflowFile

__all__ = ["Event", "build_event"]

_FIX_OF_EVENT = "write the payload of the event as a JSON object in UTF-8"

CANARY_LENGTH = 26


@dataclass(frozen=True, kw_only=True)
class Event:
    """A trigger: its name, its payload, and the canaries that the payload carries.

    ``random`` says that all of them are made up, so that no piece of one stands anywhere by chance.
    """

    name: str
    payload: dict[str, object]
    canaries: tuple[Canary, ...]
    random: bool


def random_canary() -> str:
    """Lower-case letters and digits, a letter first: valid wherever an identifier is, and never there by chance."""
    alphabet = string.ascii_lowercase + string.digits
    return secrets.choice(string.ascii_lowercase) + "".join(secrets.choice(alphabet) for _ in range(CANARY_LENGTH - 1))


def choose_event(workflow: WorkflowFile, options: WorkflowOptions, shown: str) -> str:
    """The event that is asked for, or the only one that fits."""
    names = list(workflow.events)
    if options.event_name:
        if options.event_name not in names:
            raise ConfigurationError.of((unknown("event", options.event_name, names, Place(path=shown)),))
        return options.event_name
    for name in ("workflow_dispatch", "workflow_call"):
        if name in names and not options.fields:
            return name
    if len(names) == 1:
        return names[0]
    if "workflow_dispatch" in names:
        return "workflow_dispatch"
    raise UsageError(
        f"{shown} is triggered by {', '.join(names)}", why="an audit runs it for one event", fix="add --event-name NAME"
    )


def build_event(workflow: WorkflowFile, options: WorkflowOptions, shown: str) -> Event:
    """The trigger of one run. Raises for inputs that do not exist or cannot carry text."""
    name = choose_event(workflow, options, shown)
    payload = read_payload(options.event) if options.event else {}
    declared = workflow.inputs.get(name, {})
    canaries: list[Canary] = []
    if options.inputs and name not in {"workflow_dispatch", "workflow_call"}:
        raise UsageError(
            f"the event {name} has no inputs", fix="name a field of the payload: --field client_payload.case"
        )
    values = inputs_of(payload)
    problems = [
        unknown("input", each, list(declared), workflow.events[name]) for each in options.inputs if each not in declared
    ]
    if problems:
        raise ConfigurationError.of(tuple(problems))
    for each, value in options.inputs.items():
        canary = Canary(name=f"input {each}", value=canary_value(declared[each], value))
        values[each] = canary.value
        canaries.append(canary)
    for known in declared.values():
        if known.name not in values:
            values[known.name] = fallback(known, workflow.events[name])
    if declared:
        payload["inputs"] = {key: value for key, value in values.items() if value is not None}
    for path, value in options.fields.items():
        canary = Canary(name=f"field {path}", value=value or random_canary())
        place_at(payload, path, canary.value)
        canaries.append(canary)
    if not canaries:
        raise UsageError(
            "there is no canary to follow",
            fix="name the confidential input: --input NAME (or a field of the event: --field PATH)",
        )
    random = all(value is None for value in (*options.inputs.values(), *options.fields.values()))
    return Event(name=name, payload=payload, canaries=tuple(canaries), random=random)


def canary_value(declared: Input, value: str | None) -> str:
    """A value that GitHub would accept for this input. Raises when it cannot carry a canary."""
    if declared.kind in {"boolean", "choice"} and (value is None or value not in declared.options):
        raise UsageError(
            f"input {declared.name} is a {declared.kind}: it carries no free text, so no canary",
            fix="audit an input of type string, or name one of its options: --input NAME=OPTION",
        )
    if value is not None:
        return value
    if declared.kind == "number":
        return str(secrets.randbelow(9 * 10**15) + 10**15)
    return random_canary()


def fallback(declared: Input, place: Place) -> str | None:
    """What GitHub passes when nothing is given."""
    if declared.default is not None:
        return declared.default
    if declared.kind == "boolean":
        return "false"
    if declared.kind == "choice" and declared.options:
        return declared.options[0]
    if declared.required:
        raise ConfigurationError(
            f"input {declared.name} is required and has no default",
            fix=f"--input {declared.name} if it is confidential, else put it into the inputs of --event FILE",
            place=place,
        )
    return None


def inputs_of(payload: Mapping[str, object]) -> dict[str, str | None]:
    given = payload.get("inputs")
    return {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def read_payload(path: Path) -> dict[str, object]:
    """The JSON object in *path*."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            "the event cannot be read",
            why=why_unread(error),
            fix="name a readable file with --event",
            place=Place(path=str(path)),
        ) from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            "the event is not JSON",
            why=error.msg,
            fix=_FIX_OF_EVENT,
            place=Place(path=str(path), line=error.lineno, column=error.colno),
        ) from None
    if not isinstance(data, dict):
        raise ConfigurationError(
            "the event is not a JSON object", fix=_FIX_OF_EVENT, place=Place(path=str(path), line=1, column=1)
        )
    return copy.deepcopy(data)


def place_at(payload: dict[str, object], path: str, value: str) -> None:
    """Puts *value* at a dotted path, making the objects on the way."""
    *parents, last = path.split(".")
    step = payload
    for name in parents:
        below = step.setdefault(name, {})
        if not isinstance(below, dict):
            raise UsageError(
                f"field {path}: {name} is no object in this event", fix="name a path through objects, as in a.b.c"
            )
        step = below
    if not last:
        raise UsageError(f"field {path!r} names nothing", fix="name a path, as in client_payload.case")
    step[last] = value
