"""``export``, ``declare``, ``local``, ``readonly``, ``typeset``, ``unset``, and printing variables."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.expansion import expand_value
from runner_e2e.lint.shell.filesystem import write_channel
from runner_e2e.lint.shell.parameters import assign_scalar, name_of_reference
from runner_e2e.lint.shell.state import Items, Variable
from runner_e2e.lint.values import EMPTY, Value, normal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner_e2e.lint.shell.ir import Assignment
    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.state import Field, State

__all__ = ["HANDLERS", "print_variables"]

_UNSET = Variable(unset=True)


def print_variables(machine: Machine, state: State, span: tuple[int, int], names: Iterable[str] | None = None) -> None:
    """``set``, ``declare -p``, ``export -p``: variables (all, or *names*) as text."""
    total = EMPTY
    visible = state.visible()
    for name in visible if names is None else names:
        variable = visible.get(name)
        if variable is not None and not name.startswith("\0"):
            value = variable.items.everything() if variable.items is not None else variable.plain()
            total = total + Value.literal(f"{name}='") + value + Value.literal("'\n")
    write_channel(machine, state, 1, total, span)


@dataclass(frozen=True, slots=True)
class _Flags:
    """The builtin and its option letters, given with ``-`` and with ``+``."""

    kind: str
    on: set[str]
    off: set[str]


def _declare(machine: Machine, call: Invocation) -> None:
    kind = call.fields[0].value.constant or "declare"
    flags = _Flags(kind=kind, on=set(), off=set())
    assignments, machine.declarations = list(machine.declarations), []
    operands: list[str] = []
    for one in call.fields[1:]:
        text = one.value.constant
        if one.kind == "assignment":
            assignment = assignments.pop(0)
            operands.append(assignment.name)
            _declare_one(machine, call.state, assignment.name, flags, assignment)
        elif text is not None and re.match(r"[-+]\w", text) and not operands:
            (flags.on if text[0] == "-" else flags.off).update(text[1:])
        elif text != "--":
            operands.append(text or "")
            _declare_dynamic(machine, call.state, one, flags)
    call.state.status = 0
    if kind == "export" and "f" in flags.on:
        names = frozenset(operands)
        before = call.state.exported_functions
        call.state.exported_functions = before - names if "n" in flags.on else before | names
    elif not operands or "p" in flags.on:
        print_variables(machine, call.state, call.span, operands or None)


def _declare_dynamic(machine: Machine, state: State, field: Field, flags: _Flags) -> None:
    """An operand that is known only when it is expanded: ``export "$name=$value"``."""
    for text in field.value.texts:
        first = text[0] if text and isinstance(text[0], str) else ""
        match = re.match(r"([A-Za-z_]\w*)(\+?=)?", first)
        if match is None:
            continue
        name = match[1]
        if match[2]:
            _declare_one(machine, state, name, flags, None)
            value = Value((normal((first[match.end() :], *text[1:])),))
            value = machine.step(value, field.start, field.end, f"assigned to {name}")
            assign_scalar(state, name, value, append=match[2] == "+=")
        elif match.end() == len(first) and len(text) == 1:
            _declare_one(machine, state, name, flags, None)


def _declare_one(machine: Machine, state: State, name: str, flags: _Flags, assignment: Assignment | None) -> None:
    if {"f", "F"} & flags.on:
        return
    local = len(state.frames) > 1 and flags.kind in ("local", "declare", "typeset") and "g" not in flags.on
    if local and name not in state.frames[-1]:
        # The value is expanded before the name becomes local: ``local x=$x``.
        plain = assignment is not None and assignment.elements is None and assignment.subscript is None
        value = expand_value(machine, state, assignment.value) if assignment is not None and plain else None
        before = state.lookup(name)
        inherits = before is not None and ("I" in flags.on or not machine.bash)
        state.frames[-1][name] = before if before is not None and inherits else _UNSET
        _set_attributes(state, name, flags)
        if assignment is not None and value is not None:
            value = machine.step(value, assignment.start, assignment.end, f"assigned to {name}")
            assign_scalar(state, name, value)
            return
    else:
        _set_attributes(state, name, flags)
    if assignment is not None:
        machine.assign(assignment, state)
    if "r" in flags.on or flags.kind == "readonly":
        variable = state.lookup(name) or _UNSET
        state.assign(name, replace(variable, attributes=variable.attributes | {"r"}))


def _set_attributes(state: State, name: str, flags: _Flags) -> None:
    kind, on, off = flags.kind, flags.on, flags.off
    if "n" in on and kind != "export":
        variable = state.lookup(name) or _UNSET
        state.assign(name, Variable(variable.value, attributes=frozenset({"n"})))
        return
    target = name if "n" in off else name_of_reference(state, name)
    variable = state.lookup(target) or _UNSET
    attributes = (variable.attributes | ({"i", "u", "l", "A"} & on)) - off
    exported = variable.exported
    if kind == "export":
        exported = "n" not in on
    elif "x" in on or "x" in off:
        exported = "x" in on
    items = variable.items
    if ("a" in on or "A" in on) and items is None:
        items = Items() if variable.unset else variable.as_items()
    state.assign(target, replace(variable, attributes=frozenset(attributes), exported=exported, items=items))


def _unset(_m: Machine, call: Invocation) -> None:
    functions = by_name = False
    call.state.status = 0
    for text in (one.value.constant for one in call.fields[1:]):
        if text in ("-f", "-v", "-n"):
            functions, by_name = text == "-f", text == "-n"
        elif text is not None and functions:
            call.state.functions.pop(text, None)
        elif text is not None and (match := re.fullmatch(r"([A-Za-z_]\w*)(?:\[(.*)\])?", text)):
            _unset_variable(call.state, match[1], match[2], by_name=by_name)


def _unset_variable(state: State, name: str, key: str | None, *, by_name: bool) -> None:
    target = name if by_name else name_of_reference(state, name)
    variable = state.lookup(target)
    if variable is not None and "r" in variable.attributes:
        return
    if key is not None and key not in ("@", "*"):
        if variable is not None:
            state.assign(target, replace(variable, items=variable.as_items().without(key.strip("'\""))))
    elif variable is None and name in state.functions:
        state.functions.pop(name, None)
    else:
        state.remove(target)


HANDLERS: dict[str, Callable[[Machine, Invocation], None]] = {
    "export": _declare,
    "declare": _declare,
    "typeset": _declare,
    "local": _declare,
    "readonly": _declare,
    "unset": _unset,
}
