"""Parameters: variables of every kind, their elements, and the operators of ``${…}``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.arithmetic import Arithmetic, UndecidedError, unknown_number
from runner_e2e.lint.shell.state import UNSET, Field, Items, Variable, exact, nth
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Text, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.shell.machine import Machine
    from runner_e2e.lint.shell.state import State

__all__ = [
    "assign_element",
    "assign_scalar",
    "calculate",
    "get_variable",
    "join_list",
    "list_of",
    "name_of_reference",
    "scalar",
    "substring",
    "transform",
]

_ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9_]*|.*_proxy")
_NUMBERS = frozenset(
    (
        "RANDOM",
        "SRANDOM",
        "SECONDS",
        "LINENO",
        "BASHPID",
        "PPID",
        "EPOCHSECONDS",
        "EPOCHREALTIME",
        "UID",
        "EUID",
        "SHLVL",
    )
)


def name_of_reference(state: State, name: str, depth: int = 0) -> str:
    """The variable that *name* stands for after following namerefs."""
    variable = state.lookup(name)
    if variable is None or "n" not in variable.attributes or depth > 8:
        return name
    target = variable.value.constant
    return name_of_reference(state, target, depth + 1) if target and target != name else name


def get_variable(machine: Machine, state: State, name: str) -> Variable:
    """The variable *name*; what the runner's environment may hold is a text that is not known."""
    variable = state.lookup(name)
    if variable is not None:
        if "n" in variable.attributes:
            target = variable.value.constant
            if target is None:
                return Variable(anything(state, ""))
            match = re.fullmatch(r"(\w+)\[(.*)\]", target)
            if match is not None:
                return Variable(element(machine, state, match[1], Value.literal(match[2])))
            if target != name:
                return get_variable(machine, state, name_of_reference(state, name))
        return variable
    if name in _NUMBERS:
        return Variable(Value(((Hole(frozenset(), "", 20),),)))
    if name == "PWD":
        return Variable(state.directory)
    if name in ("BASH_SOURCE", "FUNCNAME", "BASH_LINENO", "DIRSTACK", "GROUPS", "BASH_VERSINFO", "PIPESTATUS"):
        return Variable(UNKNOWN, items=Items((), UNKNOWN))
    if name == "BASH_ARGV":
        return Variable(items=Items((), join(one.value for one in state.positional).weakened(Confidence.LOW)))
    if _ENVIRONMENT_NAME.fullmatch(name):
        return Variable(machine.symbol(f"${name}"), unset=True)
    return UNSET


def anything(state: State, prefix: str) -> Value:
    """Any variable whose name starts with *prefix*."""
    found = [
        variable.items.everything() if variable.items is not None else variable.plain()
        for name, variable in state.visible().items()
        if name.startswith(prefix)
    ]
    taints = [taint for value in found for taint in value.taints]
    return Value.of(taints).weakened(Confidence.MEDIUM) if taints else UNKNOWN


def scalar(machine: Machine, state: State, name: str) -> tuple[Value, bool, bool]:
    """Value of a parameter that gives one text, whether it may be unset, and whether it is unset for sure."""
    if name.isdigit():
        if name == "0":
            script = state.lookup("0")
            return (Value.literal(machine.options.script_name) if script is None else script.plain()), False, False
        value = nth(state.positional, int(name) - 1)
        if value is None:
            return EMPTY, True, True
        return value, not exact(state.positional), False
    if name == "?":
        return (UNKNOWN if state.status is None else Value.literal(str(state.status))), False, False
    if name == "#":
        count = len(state.positional)
        return (Value.literal(str(count)) if exact(state.positional) else UNKNOWN), False, False
    if name in ("$", "!"):
        return machine.symbol(f"${name}"), name == "!", False
    if name == "-":
        return UNKNOWN, False, False
    if name == "_":
        return state.last_argument, False, False
    variable = get_variable(machine, state, name)
    gone = variable.unset and variable.value == EMPTY and variable.items is None
    return variable.plain(), variable.unset, gone


def element(machine: Machine, state: State, name: str, key: Value) -> Value:
    """``${name[key]}``."""
    variable = get_variable(machine, state, name)
    items = variable.as_items()
    constants = subscript_keys(machine, state, variable, key)
    if constants is None:
        return items.everything() | EMPTY
    return join(items.get(constant) or EMPTY for constant in constants)


def subscript_keys(machine: Machine, state: State, variable: Variable, key: Value) -> tuple[str, ...] | None:
    """The keys that a subscript may mean; None when they are not known."""
    if "A" in variable.attributes:
        return key.constants
    number = calculate(machine, state, key)
    if number is None:
        return None
    if number < 0:
        following = variable.as_items().next_index()
        if following is None:
            return None
        number += following
    return (str(number),)


def calculate(machine: Machine, state: State, expression: Value) -> int | None:
    """The number an arithmetic expression gives, None when it is not known. Assignments in it take place."""
    text = expression.constant
    if text is not None:
        try:
            return Arithmetic(
                text,
                read=lambda name: read_number(machine, state, name),
                write=lambda name, value: assign_name(machine, state, name, value),
            ).result()
        except (UndecidedError, RecursionError):
            pass
    shown = "".join(piece if isinstance(piece, str) else " " for piece in expression.pieces())
    for match in re.finditer(r"([A-Za-z_]\w*)\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*(\w+)", shown):
        name = match[1] or match[2]
        value = number_value(state, expression)
        if re.fullmatch(r"[A-Za-z_]\w*", name):
            assign_scalar(state, name, value)
    return None


def number_value(state: State, expression: Value) -> Value:
    """What a calculation that is not known may give."""
    parts = [expression]
    for piece in expression.pieces():
        if isinstance(piece, str):
            for name in re.findall(r"[A-Za-z_]\w*", piece):
                variable = state.lookup(name)
                if variable is not None:
                    parts.append(variable.plain())
    return unknown_number(*parts)


def read_number(machine: Machine, state: State, name: str) -> Value | None:
    """A variable, or an element, in arithmetic; None when it is unset."""
    match = re.fullmatch(r"(\w+)\[(.*)\]", name, re.DOTALL)
    if match is not None:
        return element(machine, state, match[1], Value.literal(match[2]))
    variable = get_variable(machine, state, name)
    return None if variable == UNSET else variable.plain()


def assign_name(machine: Machine, state: State, name: str, value: Value) -> None:
    """Sets a variable or an element by its name in arithmetic."""
    match = re.fullmatch(r"(\w+)\[(.*)\]", name, re.DOTALL)
    if match is None:
        assign_scalar(state, name, value)
    else:
        assign_element(machine, state, (match[1], Value.literal(match[2])), value)


def assign_scalar(state: State, name: str, value: Value, *, append: bool = False) -> None:
    """``name=value``: attributes stay and take effect."""
    name = name_of_reference(state, name)
    before = state.lookup(name)
    if before is None:
        before = Variable(exported="a" in state.options)
    if "r" in before.attributes:
        return
    if append:
        value = before.plain() + value
    if "u" in before.attributes or "l" in before.attributes:
        value = transform(value, str.upper if "u" in before.attributes else str.lower)
    if "i" in before.attributes and value.constant is not None and not re.fullmatch(r"-?\d*", value.constant):
        value = unknown_number(value)
    exported = before.exported or "a" in state.options
    if before.items is not None:
        items = before.items.put("0", value)
        state.assign(name, replace(before, items=items, unset=False, exported=exported))
    else:
        state.assign(name, Variable(value, unset=False, exported=exported, attributes=before.attributes))
    if name == "PWD":
        state.directory = value


def assign_element(
    machine: Machine, state: State, place: tuple[str, Value], value: Value, *, append: bool = False
) -> None:
    """``name[key]=value``; *place* is the name and the key."""
    name, key = place
    name = name_of_reference(state, name)
    variable = state.lookup(name) or Variable()
    items = variable.as_items() if state.lookup(name) is not None else Items()
    keys = subscript_keys(machine, state, variable, key)
    if keys is None or len(keys) != 1:
        items = items.put_somewhere(value, key)
    else:
        before = (items.get(keys[0]) or EMPTY) if append else EMPTY
        items = items.put(keys[0], before + value)
    state.assign(name, replace(variable, items=items, unset=False))


def list_of(machine: Machine, state: State, name: str) -> tuple[Field, ...]:
    """The fields of ``$@`` or ``${name[@]}``."""
    if name in ("@", "*"):
        return state.positional
    variable = get_variable(machine, state, name)
    if variable == UNSET:
        return ()
    items = variable.as_items()
    known = list(items.known)
    if "A" not in variable.attributes:
        known.sort(key=lambda item: int(item[0]) if item[0].isdigit() else 0)
    fields = [Field(value) for _, value in known]
    if items.others is not None:
        fields.append(Field(items.others, "list"))
    if variable.unset:
        return tuple(Field(one.value, "list") for one in fields)
    return tuple(fields)


def join_list(state: State, fields: tuple[Field, ...], *, star: bool) -> Value:
    """The fields as one text: ``"$*"`` with the first character of IFS, ``$@`` with blanks."""
    separator = " "
    if star:
        ifs = state.lookup("IFS")
        text = ifs.plain().constant if ifs is not None else None
        separator = " " if text is None else text[:1]
    if not exact(fields):
        split_only = all(one.kind != "list" for one in fields)
        if not split_only:
            return join(one.value for one in fields).opaque() | EMPTY
    total = EMPTY
    for index, one in enumerate(fields):
        total = total + Value.literal(separator) + one.value if index else one.value
    return total


def transform(value: Value, change: Callable[[str], str]) -> Value:
    """*value* with the case of its letters changed: a hole is another text then, and the same whenever this is done."""
    return Value.any_of(
        normal(change(piece) if isinstance(piece, str) else _transformed(piece, change.__name__) for piece in text)
        for text in value.texts
    )


def _transformed(hole: Hole, change: str) -> Hole:
    return Hole(hole.taints, hole.symbol and f"{hole.symbol} {change}", hole.longest)


def substring(value: Value, offset: int | None, length: int | None, *, bounded: bool) -> Value:
    """``${v:offset:length}``; *bounded* tells whether a length was given."""
    return Value.any_of(_cut(text, offset, length, bounded=bounded) for text in value.texts)


def _cut(text: Text, offset: int | None, length: int | None, *, bounded: bool) -> Text:
    if not text:
        return text
    if len(text) == 1 and isinstance(text[0], str):
        whole = text[0]
        if offset is None or (bounded and length is None):
            return (Hole(),)
        start = offset if offset >= 0 else max(len(whole) + offset, 0)
        if offset < 0 and len(whole) + offset < 0:
            return ()
        end = len(whole) if not bounded or length is None else (start + length if length >= 0 else len(whole) + length)
        cut = whole[start : max(end, start)]
        return (cut,) if cut else ()
    taints = Value((text,)).taints
    if bounded and length is None:
        return (Hole(taints),)
    limit = length if length is not None and length >= 0 else None
    if offset is not None and offset < 0:
        tail = -offset if limit is None else min(-offset, limit)
        last = text[-1]
        if isinstance(last, str) and len(last) >= -offset:
            return _cut((last,), offset, length, bounded=bounded)
        return (Hole(taints, "", tail),)
    first = text[0]
    known = first if isinstance(first, str) else ""
    start = offset or 0
    if offset is None or (start > len(known)):
        return (Hole(taints, "", limit),)
    rest = normal((known[start:], *text[1:])) if known else text
    if limit is None:
        return rest if start == 0 or known else (Hole(taints, "", _total(text)),)
    kept = known[start : start + limit]
    if len(kept) == limit:
        return (kept,) if kept else ()
    following = [hole for piece in text for hole in ([piece] if isinstance(piece, Hole) else [])]
    bound = limit - len(kept)
    return normal((kept, Hole(frozenset().union(*(hole.taints for hole in following)), "", bound)))


def _total(text: Text) -> int | None:
    total = 0
    for piece in text:
        if isinstance(piece, str):
            total += len(piece)
        elif piece.longest is None:
            return None
        else:
            total += piece.longest
    return total


__all__ += ["anything", "element", "number_value"]
