"""Programs that execute their operands: ``env``, ``sudo``, ``timeout``, ``xargs``, ``find -exec``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell import shells
from runner_e2e.lint.shell.command_files import split_line
from runner_e2e.lint.shell.filesystem import environment_lines, read_channel, read_file, tainted_names, write_channel
from runner_e2e.lint.shell.machine import ShellStart
from runner_e2e.lint.shell.parameters import join_list
from runner_e2e.lint.shell.state import NULL, Field
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.shell.ir import Command
    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.tables import Wrapper

__all__ = ["find", "known_start", "parallel", "rest_of", "run", "xargs"]

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_RESET_KEEPS = ("HOME", "PATH", "TERM", "LANG", "USER", "LOGNAME", "SHELL", "DISPLAY")


def _text(field: Field) -> str:
    return (field.value.constant or "") if field.kind == "one" else ""


def known_start(value: Value) -> str:
    """The known text that every alternative of *value* begins with, of the first alternative."""
    first = value.texts[0]
    return first[0] if first and isinstance(first[0], str) else ""


def run(machine: Machine, grammar: Wrapper, call: Invocation) -> None:
    """Runs what a wrapper executes."""
    arguments = list(call.fields[1:])
    reader = _Reader(call, grammar)
    reader.read(arguments)
    given = reader.environment
    if reader.script is not None:
        program = reader.script
        span = (program.start, program.end) if program.end else call.span
        start = ShellStart(dialect="sh", span=span)
        shells.run_program(machine, program.value, call.running(call.fields, given), start)
    elif grammar.joined and arguments:
        _run_joined(machine, arguments, call.running(call.fields, given))
    elif arguments:
        machine.start(call.running(arguments, given))
    elif call.name == "env":
        write_channel(machine, call.state, 1, environment_lines(given), call.span)


class _Reader:
    """Reads the options of a wrapper: what script it runs, and with which environment."""

    def __init__(self, call: Invocation, grammar: Wrapper) -> None:
        self.name = call.name
        self.grammar = grammar
        self.whole = call.environment
        self.environment: Mapping[str, Value] = call.environment
        if grammar.environment == "reset":
            self.environment = {key: value for key, value in self.whole.items() if key in _RESET_KEEPS}
        self.script: Field | None = None

    def read(self, arguments: list[Field]) -> None:
        """Takes everything before the command off *arguments*."""
        operands = self.grammar.operands
        if self.grammar.after:
            texts = [_text(one) for one in arguments]
            at = texts.index(self.grammar.after) if self.grammar.after in texts else len(texts)
            del arguments[: at + 1]
            return
        while arguments:
            one = arguments[0]
            text = _text(one)
            if text.startswith("-") and len(text) > 1:
                arguments.pop(0)
                if text == "--":
                    return
                self._option(text, arguments)
            elif self.grammar.assignments and (match := _ASSIGNMENT.match(known_start(one.value))):
                arguments.pop(0)
                self.environment = {**self.environment, match[1]: rest_of(one.value, match.end())}
            elif operands:
                operands -= 1
                arguments.pop(0)
            else:
                return

    def _option(self, text: str, arguments: list[Field]) -> None:
        option, equals, names = text.partition("=")
        keep = self.grammar.keep
        if option in self.grammar.script and not equals:
            self.script = arguments.pop(0) if arguments else None
        elif keep and (option in keep or re.fullmatch(r"-[A-Za-z]*E[A-Za-z]*", text)):
            kept = {key: self.whole[key] for key in names.split(",") if key in self.whole}
            self.environment = {**self.environment, **kept} if equals else self.whole
        elif self.name == "env":
            self.environment = _env_option(text, arguments, self.environment)
        elif text in self.grammar.values and arguments:
            arguments.pop(0)


def _env_option(text: str, arguments: list[Field], given: Mapping[str, Value]) -> Mapping[str, Value]:
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


def rest_of(value: Value, offset: int) -> Value:
    """*value* without its first *offset* characters, which are known."""
    return Value.any_of(
        normal((text[0][offset:], *text[1:])) if text and isinstance(text[0], str) else text for text in value.texts
    )


def _run_joined(machine: Machine, arguments: list[Field], call: Invocation) -> None:
    """A shell runs all *arguments* as one text."""
    text = join_list(call.state, tuple(arguments), star=False)
    start = ShellStart(dialect="sh", span=(arguments[0].start, arguments[-1].end))
    shells.run_program(machine, text, call, start)


# --- xargs, parallel, find

_XARGS_VALUES = frozenset(
    {"-n", "-P", "-d", "-E", "-s", "-L", "--max-args", "--max-procs", "--delimiter", "--max-lines"}
)


_XARGS_FILE = re.compile(r"(?:--arg-file(?:=|$)|-[0oprtx]*a)(.*)")


def _words_of(content: Value, at: Command) -> tuple[Field, ...]:
    """The words of an input, as arguments whose place is the command."""
    if content == EMPTY:
        return ()
    text = content.constant
    if text is not None:
        return tuple(Field(Value.literal(word), "one", at.start, at.end) for word in text.split())
    return (Field(content.opaque(), "list", at.start, at.end),)


def xargs(machine: Machine, call: Invocation) -> None:
    """Runs the command with words of standard input as further arguments."""
    arguments = list(call.fields[1:])
    replaced: str | None = None
    content: Value | None = None
    while arguments and (text := _text(arguments[0])).startswith("-"):
        arguments.pop(0)
        if (file := _XARGS_FILE.match(text)) is not None and (file[1] or arguments):
            named = Value.literal(file[1]) if file[1] else arguments.pop(0).value
            content = read_file(machine, call.state, named, call.environment)
        elif text == "-I" and arguments:
            replaced = _text(arguments.pop(0))
        elif text.startswith(("-I", "-i", "--replace")):
            replaced = text.removeprefix("--replace").removeprefix("=").removeprefix("-I").removeprefix("-i") or "{}"
        elif text in _XARGS_VALUES and arguments:
            arguments.pop(0)
    if content is None:
        content = read_channel(call.state, call.state.descriptors.get(0, NULL))
    if not arguments:
        arguments = [Field(Value.literal("/bin/echo"), "one", *call.span)]
    if replaced is None:
        machine.start(call.running((*arguments, *_words_of(content, call.at))))
        return
    lines = _lines(content)
    if lines is not None:
        mark = replaced
        machine.start(call.running(_with(one, mark, lines, call.at) for one in arguments))


def _lines(content: Value) -> Value | None:
    """Any line of *content*; None when it has none."""
    found: list[Value] = []
    for text in content.texts:
        rest = text
        while rest and len(found) < 12:
            line, following = split_line(rest)
            found.append(Value((line or (),)))
            rest = following or ()
        if rest:
            found.append(Value((rest,)).opaque())
    return join(found) if found else None


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
    {"-j", "--jobs", "-a", "--arg-file", "--colsep", "-C", "--delay", "--timeout", "--retries", "-n", "-N", "-S"}
)


def parallel(machine: Machine, call: Invocation) -> None:
    """GNU parallel: a shell runs the command for each input."""
    arguments = list(call.fields[1:])
    while arguments and (text := _text(arguments[0])).startswith("-"):
        arguments.pop(0)
        if text in _PARALLEL_VALUES and arguments:
            arguments.pop(0)
    split_at = next((i for i, one in enumerate(arguments) if _text(one) in (":::", ":::+", "::::")), len(arguments))
    command, inputs = arguments[:split_at], [one for one in arguments[split_at:] if not _text(one).startswith("::")]
    source = (
        join(one.value for one in inputs) if inputs else read_channel(call.state, call.state.descriptors.get(0, NULL))
    )
    if not command:
        return
    replaced = [_with(one, "{}", source, call.at) for one in command]
    if replaced == command:
        replaced = [*command, Field(source, "split", call.at.start, call.at.end)]
    if len(command) == 1 and re.search(r"\s", _text(command[0])):
        _run_joined(machine, replaced, call)
        return
    machine.start(call.running(replaced))


def find(machine: Machine, call: Invocation) -> None:
    """``find``: its output and its ``-exec`` get names of files."""
    arguments = call.fields[1:]
    names = tainted_names(call.state).weakened(Confidence.MEDIUM)
    found = names | UNKNOWN if names.taints else UNKNOWN
    index = 0
    executes = False
    while index < len(arguments):
        if _text(arguments[index]) in ("-exec", "-execdir", "-ok", "-okdir"):
            end = index + 1
            while end < len(arguments) and _text(arguments[end]) not in (";", "+"):
                end += 1
            command = tuple(_with(one, "{}", found, call.at) for one in arguments[index + 1 : end])
            if command:
                executes = True
                inner = replace(call, state=call.state.copy()).running(command)
                machine.start(inner)
                call.state.files, call.state.command_files = inner.state.files, inner.state.command_files
                call.state.masks = call.state.masks.joined(inner.state.masks)
            index = end
        index += 1
    if not executes:
        write_channel(machine, call.state, 1, found, call.span)
