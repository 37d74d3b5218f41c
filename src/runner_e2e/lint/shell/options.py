"""``set``, ``shopt``, ``enable``, and the positional parameters: ``shift``, ``getopts``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.declarations import print_variables
from runner_e2e.lint.shell.parameters import assign_scalar
from runner_e2e.lint.shell.state import exact, nth
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value, join

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.state import Field, State

__all__ = ["HANDLERS", "LETTERS"]

LETTERS = {"errexit": "e", "xtrace": "x", "allexport": "a", "noglob": "f", "verbose": "v", "nounset": "u"}
"""Option names that ``set -o`` takes, by letter where the interpreter looks for one."""

_POSITION = "\0optpos"  # where getopts stands within a word such as -abc


def _set(machine: Machine, call: Invocation) -> None:
    call.state.status = 0
    arguments = list(call.fields[1:])
    if not arguments:
        print_variables(machine, call.state, call.span)
        return
    options = set(call.state.options)
    while arguments:
        text = arguments[0].value.constant if arguments[0].kind == "one" else None
        if text in ("--", "-"):
            call.state.positional = tuple(arguments[1:])
            break
        if text is None or not re.match(r"[-+]\w", text):
            call.state.positional = tuple(arguments)
            break
        arguments.pop(0)
        letters = set(text[1:])
        if "o" in letters:
            letters.discard("o")
            name = arguments.pop(0).value.constant if arguments else None
            if name is not None:
                letters.add(LETTERS.get(name, name))
        options = options | letters if text[0] == "-" else options - letters
    call.state.options = frozenset(options)


def _shift(_m: Machine, call: Invocation) -> None:
    text = call.fields[1].value.constant if len(call.fields) > 1 else "1"
    count = int(text) if text is not None and text.isdigit() else None
    call.state.status = 0
    if count is not None and exact(call.state.positional[:count]):
        if count <= len(call.state.positional):
            call.state.positional = call.state.positional[count:]
        else:
            call.state.status = 1 if exact(call.state.positional) else None
        return
    if call.state.positional and call.state.positional[0].kind == "split" and count == 1:
        call.state.positional = call.state.positional[1:]
    else:
        call.state.positional = tuple(replace(one, kind="list") for one in call.state.positional)
    call.state.status = None


def _shopt(_m: Machine, call: Invocation) -> None:
    texts = [one.value.constant or "" for one in call.fields[1:]]
    names = frozenset(text for text in texts if not text.startswith("-"))
    flags = "".join(text for text in texts if text.startswith("-"))
    if "o" in flags:
        names = frozenset(LETTERS.get(name, name) for name in names)
    if "s" in flags:
        call.state.options = call.state.options | names
    elif "u" in flags:
        call.state.options = call.state.options - names
    call.state.status = 0 if flags else None


def _enable(_m: Machine, call: Invocation) -> None:
    texts = [one.value.constant or "" for one in call.fields[1:]]
    names = frozenset(text for text in texts if not text.startswith("-"))
    off = any(text.startswith("-") and "n" in text for text in texts)
    call.state.disabled = call.state.disabled | names if off else call.state.disabled - names
    call.state.status = 0


def _getopts(_m: Machine, call: Invocation) -> None:
    fields, state = call.fields, call.state
    if len(fields) < 3:
        state.status = 2
        return
    letters, name = fields[1].value.constant, fields[2].value.constant
    arguments = fields[3:] or state.positional
    if letters is None or name is None:
        state.status = None
        return
    index, at = _number(state, "OPTIND"), _number(state, _POSITION)
    word = nth(arguments, index - 1) if index is not None else None
    known = word.constant if word is not None else ""
    if index is None or at is None or known is None or not exact(arguments[:index]):
        _any_option(letters, name, arguments, state)
    elif len(known) < 2 or known[0] != "-" or known == "--":
        state.status = 1
        assign_scalar(state, name, Value.literal("?"))
    else:
        state.status = 0
        _one_option(state, (letters, name), arguments, (known, index, at))


def _number(state: State, name: str) -> int | None:
    variable = state.lookup(name)
    text = variable.plain().constant if variable is not None else "1"
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None


def _one_option(
    state: State, grammar: tuple[str, str], arguments: tuple[Field, ...], place: tuple[str, int, int]
) -> None:
    """Takes the option at *place*: a word, its number from 1, and the position within it."""
    letters, name = grammar
    known, index, at = place
    letter = known[at]
    found = letters.find(letter)
    last = at + 1 >= len(known)
    following, offset = (index + 1, 1) if last else (index, at + 1)
    if found < 0 or letter == ":":
        assign_scalar(state, name, Value.literal("?"))
    else:
        assign_scalar(state, name, Value.literal(letter))
        if letters[found + 1 : found + 2] == ":":
            argument = (nth(arguments, index) or EMPTY) if last else Value.literal(known[at + 1 :])
            assign_scalar(state, "OPTARG", argument)
            following, offset = (index + 2 if last else index + 1), 1
    assign_scalar(state, "OPTIND", Value.literal(str(following)))
    assign_scalar(state, _POSITION, Value.literal(str(offset)))


def _any_option(letters: str, name: str, arguments: tuple[Field, ...], state: State) -> None:
    choices = [Value.literal(letter) for letter in letters if letter != ":"]
    assign_scalar(state, name, join([*choices, Value.literal("?")]))
    assign_scalar(state, "OPTARG", join([EMPTY, *(one.value.opaque() for one in arguments)]))
    assign_scalar(state, "OPTIND", UNKNOWN)
    state.status = None


HANDLERS: dict[str, Callable[[Machine, Invocation], None]] = {
    "set": _set,
    "shift": _shift,
    "shopt": _shopt,
    "enable": _enable,
    "getopts": _getopts,
}
