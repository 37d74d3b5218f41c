"""Programs that execute their operands: ``env``, ``sudo``, ``timeout``, ``xargs``, ``find -exec``, containers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.shell import shells
from runner_e2e.lint.shell.command_files import split_line
from runner_e2e.lint.shell.filesystem import environment_block, read_channel, tainted_names, write_channel
from runner_e2e.lint.shell.parameters import join_list
from runner_e2e.lint.shell.state import NULL, Field, exact
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join, normal

if TYPE_CHECKING:
    from runner_e2e.lint.shell.ir import Command
    from runner_e2e.lint.shell.machine import Machine
    from runner_e2e.lint.shell.state import State
    from runner_e2e.lint.shell.tables import Wrapper

__all__ = ["container", "find", "parallel", "run", "xargs"]

_Environment: TypeAlias = Mapping[str, Value]
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_RESET_KEEPS = ("HOME", "PATH", "TERM", "LANG", "USER", "LOGNAME", "SHELL", "DISPLAY")


def _text(field: Field) -> str:
    return (field.value.constant or "") if field.kind == "one" else ""


def _prefix(value: Value) -> str:
    """The known text that every alternative of *value* begins with, of the first alternative."""
    first = value.texts[0]
    return first[0] if first and isinstance(first[0], str) else ""


def run(
    machine: Machine,
    name: str,
    grammar: Wrapper,
    fields: tuple[Field, ...],
    state: State,
    at: Command,
    environment: _Environment,
) -> None:
    """Runs what the wrapper *name* executes."""
    arguments = list(fields[1:])
    given = _environment_of(grammar, environment)
    script: Field | None = None
    operands = grammar.operands
    while arguments:
        one = arguments[0]
        text = _text(one)
        if grammar.after:
            arguments.pop(0)
            if text == grammar.after:
                break
            continue
        if text.startswith("-") and len(text) > 1:
            arguments.pop(0)
            if text == "--":
                break
            script, given = _option(name, grammar, text, arguments, (script, given), environment)
        elif grammar.assignments and (match := _ASSIGNMENT.match(_prefix(one.value))):
            arguments.pop(0)
            given = {**given, match[1]: _after(one.value, match.end())}
        elif operands:
            operands -= 1
            arguments.pop(0)
        else:
            break
    if script is not None:
        shells.run_program(machine, "sh", script, (), state, at, given, set(), named=True)
    elif grammar.joined and arguments:
        _run_joined(machine, arguments, state, at, given)
    elif arguments:
        machine.start(tuple(arguments), state, at, given)
    elif name == "env":
        block = environment_block(given)
        lines = Value.any_of(
            normal(piece.replace("\0", "\n") if isinstance(piece, str) else piece for piece in text)
            for text in block.texts
        )
        write_channel(machine, state, 1, lines, (at.start, at.end))


def _option(
    name: str,
    grammar: Wrapper,
    text: str,
    arguments: list[Field],
    found: tuple[Field | None, _Environment],
    environment: _Environment,
) -> tuple[Field | None, _Environment]:
    """Takes one option (already popped) with its value; gives the script to run and the environment."""
    script, given = found
    option, equals, _ = text.partition("=")
    if option in grammar.script and not equals:
        return (arguments.pop(0) if arguments else None), given
    if option in grammar.keep or (grammar.keep and re.fullmatch(r"-[A-Za-z]*E[A-Za-z]*", text)):
        if equals:
            names = text.split("=", 1)[1].split(",")
            return script, {**given, **{key: environment[key] for key in names if key in environment}}
        return script, environment
    if name == "env":
        given = _env_option(text, arguments, given)
    elif text in grammar.values and arguments:
        arguments.pop(0)
    return script, given


def _env_option(text: str, arguments: list[Field], given: _Environment) -> _Environment:
    if text in ("-i", "-", "--ignore-environment"):
        return {}
    if text in ("-u", "--unset") and arguments:
        gone = _text(arguments.pop(0))
        return {key: value for key, value in given.items() if key != gone}
    if text.startswith(("-u", "--unset=")):
        gone = text.removeprefix("--unset=").removeprefix("-u")
        return {key: value for key, value in given.items() if key != gone}
    if text in ("-S", "--split-string") and arguments:
        one = arguments.pop(0)
        words = _text(one).split()
        arguments[:0] = [Field(Value.literal(word), "one", one.start, one.end) for word in words]
    elif text in ("-C", "--chdir") and arguments:
        arguments.pop(0)
    return given


def _environment_of(grammar: Wrapper, environment: _Environment) -> _Environment:
    if grammar.environment == "reset":
        return {key: value for key, value in environment.items() if key in _RESET_KEEPS}
    return environment


def _after(value: Value, offset: int) -> Value:
    return Value.any_of(
        normal((text[0][offset:], *text[1:])) if text and isinstance(text[0], str) else text for text in value.texts
    )


def _run_joined(machine: Machine, arguments: list[Field], state: State, at: Command, environment: _Environment) -> None:
    text = join_list(machine, state, tuple(arguments), star=False)
    program = Field(text, "one", arguments[0].start, arguments[-1].end)
    shells.run_program(machine, "sh", program, (), state, at, environment, set(), named=True)


# --- xargs, parallel, find

_XARGS_VALUES = frozenset("-n -P -d -a -E -s -L --max-args --max-procs --delimiter --arg-file --max-lines".split())  # noqa: SIM905


def _words_of(content: Value, at: Command) -> tuple[Field, ...]:
    """The words of an input, as arguments whose place is the command."""
    if content == EMPTY:
        return ()
    if content.constants is not None and len(content.texts) == 1:
        return tuple(Field(Value.literal(word), "one", at.start, at.end) for word in (content.constant or "").split())
    return (Field(content.opaque(), "list", at.start, at.end),)


def xargs(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    """Runs the command with words of standard input as further arguments."""
    arguments = list(fields[1:])
    replaced: str | None = None
    content: Value | None = None
    while arguments and (text := _text(arguments[0])).startswith("-"):
        arguments.pop(0)
        if text in ("-a", "--arg-file") and arguments:
            from_file = read_file_of(machine, arguments.pop(0).value, state, environment)
            content = from_file
        elif text in ("-I", "--replace") and arguments:
            replaced = _text(arguments.pop(0)) if text == "-I" else "{}"
        elif text.startswith(("-I", "-i")):
            replaced = text[2:] or "{}"
        elif text in _XARGS_VALUES and arguments:
            arguments.pop(0)
    if content is None:
        content = read_channel(state, state.descriptors.get(0, NULL))
    if not arguments:
        arguments = [Field(Value.literal("/bin/echo"), "one", at.start, at.end)]
    if replaced is None:
        machine.start((*arguments, *_words_of(content, at)), state, at, environment)
        return
    lines = content if content.constants is None else _first_lines(content)
    machine.start(tuple(_with(one, replaced, lines, at) for one in arguments), state, at, environment)


def read_file_of(machine: Machine, path: Value, state: State, environment: _Environment) -> Value:
    """The content of a file that an option names."""
    from runner_e2e.lint.shell.filesystem import read_file

    return read_file(machine, state, path, environment)


def _first_lines(content: Value) -> Value:
    found: list[Value] = []
    for text in content.texts:
        rest = text
        while rest and len(found) < 12:
            line, following = split_line(rest)
            found.append(Value((line or (),)))
            rest = following or ()
    return join(found) if found else EMPTY


def _with(field: Field, mark: str, value: Value, at: Command) -> Field:
    """*field* with *mark* replaced by *value*."""
    total = EMPTY
    changed = False
    if len(field.value.texts) != 1 or not mark:
        return field
    for piece in field.value.texts[0]:
        if isinstance(piece, str):
            parts = piece.split(mark)
            for index, part in enumerate(parts):
                if index:
                    total = total + value
                    changed = True
                total = total + Value.literal(part)
        else:
            total = total + Value(((piece,),))
    start, end = (field.start, field.end) if field.end else (at.start, at.end)
    return Field(total, field.kind, start, end) if changed else field


_PARALLEL_VALUES = frozenset(
    ["-j", "--jobs", "-a", "--arg-file", "--colsep", "-C", "--delay", "--timeout", "--retries", "-n", "-N", "-S", "--joblog"]
)


def parallel(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    """GNU parallel: a shell runs the command for each input."""
    arguments = list(fields[1:])
    while arguments and (text := _text(arguments[0])).startswith("-"):
        arguments.pop(0)
        if text in _PARALLEL_VALUES and arguments:
            arguments.pop(0)
    split_at = next((i for i, one in enumerate(arguments) if _text(one) in (":::", ":::+", "::::")), len(arguments))
    command, inputs = arguments[:split_at], [one for one in arguments[split_at:] if not _text(one).startswith("::")]
    source = join(one.value for one in inputs) if inputs else read_channel(state, state.descriptors.get(0, NULL))
    if not command:
        return
    replaced = [_with(one, "{}", source, at) for one in command]
    if replaced == command:
        replaced = [*command, Field(source, "split", at.start, at.end)]
    if len(command) == 1 and re.search(r"\s", _text(command[0])):
        _run_joined(machine, replaced, state, at, environment)
        return
    machine.start(tuple(replaced), state, at, environment)


def find(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    """``find``: its output and its ``-exec`` get names of files."""
    arguments = fields[1:]
    names = tainted_names(state).weakened(Confidence.MEDIUM)
    found = names | UNKNOWN if names.taints else UNKNOWN
    index = 0
    executes = False
    while index < len(arguments):
        if _text(arguments[index]) in ("-exec", "-execdir", "-ok", "-okdir"):
            end = index + 1
            while end < len(arguments) and _text(arguments[end]) not in (";", "+"):
                end += 1
            command = tuple(_with(one, "{}", found, at) for one in arguments[index + 1 : end])
            if command:
                executes = True
                inner = state.copy()
                machine.start(command, inner, at, environment)
                state.files, state.command_files = inner.files, inner.command_files
            index = end
        index += 1
    if not executes:
        write_channel(machine, state, 1, found, (at.start, at.end))


# --- containers


def container(
    machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment
) -> None:
    """``docker run image sh -c '…'``: the shell in the container sees what ``-e`` gives it."""
    given: dict[str, Value] = {}
    arguments = fields[1:]
    for index, one in enumerate(arguments):
        text = _text(one)
        value = arguments[index + 1].value if index + 1 < len(arguments) else EMPTY
        if text.startswith("--env="):
            value = Value.literal(text.removeprefix("--env="))
        elif text not in ("-e", "--env"):
            continue
        prefix = _prefix(value)
        if match := _ASSIGNMENT.match(prefix):
            given[match[1]] = _after(value, match.end())
        elif prefix in environment:
            given[prefix] = environment[prefix]
    for index, one in enumerate(arguments):
        name = _text(one).rsplit("/", 1)[-1]
        if name in shells.NAMES and index + 2 < len(arguments) and exact(arguments[: index + 2]):
            inner = state.copy()
            tail = tuple(replace(field, start=field.start or at.start) for field in arguments[index:])
            shells.run(machine, name, tail, inner, at, given)
            break
    write_channel(machine, state, 1, UNKNOWN, (at.start, at.end))
