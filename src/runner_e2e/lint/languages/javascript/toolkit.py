"""The Actions toolkit: inputs, outputs, variables, the log, the summary, the event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.builtins import function, module_of, object_of
from runner_e2e.lint.languages.javascript.data import parsed, stringified
from runner_e2e.lint.languages.javascript.octokit import client
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    BOOLEAN,
    UNDEFINED,
    Js,
    Native,
    Thing,
    literal,
    of_text,
    of_thing,
    taints_of,
    text_of,
)
from runner_e2e.lint.languages.pieces import stripped
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.languages.javascript.machine import Call, Machine

__all__ = ["MODULES", "context_of", "set_output"]

_DELIMITER = "ghadelimiter_00000000"


def _command_value(value: Js) -> Value:
    """A value as the toolkit writes it: text as it is, anything else as JSON."""
    if value.text is not None and not value.atoms:
        return value.text
    return stringified(value) if value.things else text_of(value)


def _variable_of(name: Value) -> str | None:
    text = name.constant
    return f"INPUT_{text.replace(' ', '_').upper()}" if text is not None else None


def _input(call: Call) -> Js:
    process = call.machine.process
    name = _variable_of(call.text(0))
    if name is None:
        found = [value for key, value in process.environment().items() if key.startswith("INPUT_")]
        return of_text(Value.of(taint for value in found for taint in value.taints))
    value = process.variable(name)
    if value is None:
        return literal("") if "INPUT_" in "".join(process.environment()) else of_text(UNKNOWN)
    return of_text(process.step(stripped(value), call.start, call.end, f"read as the input {call.text(0)}"))


def _lines(call: Call) -> Js:
    value = _input(call)
    return call.machine.call_method(value, Value.literal("split"), call.with_arguments(literal("\n")))


def _append(machine: Machine, variable: str, text: Value, call: Call) -> None:
    path = machine.process.variable(variable)
    if path is not None:
        machine.process.write_file(path, text, append=True, start=call.start, end=call.end)


def _entry(name: Value, value: Value) -> Value:
    return name + Value.literal(f"<<{_DELIMITER}\n") + value + Value.literal(f"\n{_DELIMITER}\n")


def set_output(call: Call, name: Value, value: Js) -> None:
    """Sets an output of the step."""
    _append(call.machine, "GITHUB_OUTPUT", _entry(name, _command_value(value)), call)


def _output(call: Call) -> Js:
    set_output(call, call.text(0), call.arg(1))
    return UNDEFINED


def _export(call: Call) -> Js:
    name, value = call.text(0), _command_value(call.arg(1))
    for one in name.constants or ():
        call.machine.process.set_variable(one, value)
    _append(call.machine, "GITHUB_ENV", _entry(name, value), call)
    return UNDEFINED


def _state(call: Call) -> Js:
    _append(call.machine, "GITHUB_STATE", _entry(call.text(0), _command_value(call.arg(1))), call)
    return UNDEFINED


def _saved_state(call: Call) -> Js:
    name = call.arg(0).constant
    value = call.machine.process.variable(f"STATE_{name}") if name is not None else None
    return of_text(value if value is not None else UNKNOWN)


def _path(call: Call) -> Js:
    process = call.machine.process
    before = process.variable("PATH")
    process.set_variable("PATH", call.text(0) + Value.literal(":") + (before if before is not None else UNKNOWN))
    _append(call.machine, "GITHUB_PATH", call.text(0) + Value.literal("\n"), call)
    return UNDEFINED


def _secret(call: Call) -> Js:
    value = call.text(0)
    call.machine.process.print(Value.literal("::add-mask::") + value + Value.literal("\n"), call.start, call.end)
    return UNDEFINED


def _log(call: Call) -> Js:
    call.machine.process.print(call.text(0) + Value.literal("\n"), call.start, call.end)
    return UNDEFINED


def _annotation(word: str) -> Native:
    def annotate(call: Call) -> Js:
        text = Value.literal(f"::{word}::") + text_of(call.arg(0)) + Value.literal("\n")
        call.machine.process.print(text, call.start, call.end)
        return UNDEFINED

    return annotate


def _group(call: Call) -> Js:
    _annotation("group")(call)
    return call.machine.call_value(call.arg(1), call.with_arguments()) if call.given(1) else UNDEFINED


def _summary() -> Js:
    """``core.summary``: what is added is written at the end, in the order of the calls."""
    made = Thing()

    def add(call: Call) -> Js:
        total = EMPTY
        for one in call.arguments:
            text = Value.of(taints_of(one.value)) if one.value.things else text_of(one.value)
            total = total + text + Value.literal("\n")
        _append(call.machine, "GITHUB_STEP_SUMMARY", total, call)
        return of_thing(made)

    for name in (
        *("addRaw", "addHeading", "addCodeBlock", "addList", "addTable", "addDetails", "addImage", "addLink"),
        *("addQuote", "addEOL", "addBreak", "addSeparator"),
    ):
        made.put(name, function(add))
    for name in ("write", "clear", "emptyBuffer"):
        made.put(name, function(lambda _call: of_thing(made)))
    made.put("stringify", function(lambda _call: of_text(UNKNOWN)))
    return of_thing(made)


def _core() -> Js:
    functions: dict[str, Native] = {
        "getInput": _input,
        "getMultilineInput": _lines,
        "getBooleanInput": lambda _call: BOOLEAN,
        "setOutput": _output,
        "exportVariable": _export,
        "saveState": _state,
        "getState": _saved_state,
        "addPath": _path,
        "setSecret": _secret,
        "info": _log,
        "debug": _annotation("debug"),
        "startGroup": _annotation("group"),
        "endGroup": lambda _call: UNDEFINED,
        "group": _group,
        "isDebug": lambda _call: BOOLEAN,
        "setCommandEcho": lambda _call: UNDEFINED,
        "getIDToken": lambda _call: of_text(UNKNOWN),
        **{word: _annotation(word) for word in ("notice", "warning", "error")},
        "setFailed": _annotation("error"),
    }
    return module_of(functions, {"summary": _summary(), "platform": ANY})


def context_of(machine: Machine) -> Js:
    """``context`` of a run: the payload is what the event's file holds."""
    process = machine.process
    path = process.variable("GITHUB_EVENT_PATH")
    payload = parsed(process.read_file(path)) if path is not None else ANY
    text = of_text(UNKNOWN)
    names = (
        "eventName",
        "sha",
        "ref",
        "workflow",
        "action",
        "actor",
        "job",
        "runId",
        "runNumber",
        "apiUrl",
        "serverUrl",
    )
    return object_of(
        {
            **dict.fromkeys(names, text),
            "payload": payload,
            "repo": object_of({"owner": text, "repo": text}),
            "issue": object_of({"owner": text, "repo": text, "number": text}),
        }
    )


def _github() -> Js:
    """``@actions/github``: a client of the API, and the context."""
    made = Thing()
    made.put("getOctokit", function(lambda _call: of_thing(client())))
    made.getters["context"] = Thing("function", native=lambda call: context_of(call.machine))
    return of_thing(made)


MODULES: dict[str, Callable[[], Js]] = {"@actions/core": _core, "@actions/github": _github}
"""Name of a module -> what it exports."""
