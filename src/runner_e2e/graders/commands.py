"""Reads a command line for what it tries to write and what it prints, without running it.

The reading is cautious on both sides: a write is *certain* only when nothing stands before it that could keep it from
being run, and a command whose output could hold words of anybody's choice makes the reading *opaque*.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from runner_e2e.graders.command_tables import (
    BENIGN,
    CODE_OPTIONS,
    CODE_WRITES,
    DESTINATION_WRITERS,
    GIT_SHOWS,
    GIT_WRITES,
    OPERAND_WRITERS,
    SHELLS,
    SHOWS_FILES,
    TRANSPARENT,
    WRAPPERS,
)
from runner_e2e.graders.event_streams import patch_paths
from runner_e2e.lint.shell import ir
from runner_e2e.lint.shell.parser import parse
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import Origin

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LONGEST_COMMAND", "CommandReading", "Write", "read_command", "resolve"]

LONGEST_COMMAND: Final = 64 << 10
_DEPTH: Final = 8
_MOST_WRITES: Final = 200
_DEVICES = re.compile(r"/dev/(?:null|zero|full|tty|stdin|stdout|stderr|fd/\d+|pts/\d+)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_HOLE: Final = "\0"
# One simple command of plain and single-quoted words, which needs no parser: most of what agents run.
_PLAIN: Final = re.compile(r"(?P<name>[A-Za-z_./][\w./-]*)(?: +(?:[\w./:=,+@%-]+|'[^'\n\0]*')+)*", re.ASCII)
_PLAIN_WORD: Final = re.compile(r"(?:[\w./:=,+@%-]+|'[^']*')+", re.ASCII)
_RESERVED: Final = frozenset(
    {"case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then"}
    | {"time", "until", "while"}
)
_LEAVE: Final = frozenset({"break", "continue", "eval", "exec", "exit", "kill", "return", "set", "source", "trap", "."})
_SETTLED: Final = {"mkdir": "p", "rm": "f", "touch": "c"}
# Compound commands from within which the shell itself cannot be left.
_STAYS: Final = (
    ir.ArithmeticCommand,
    ir.Background,
    ir.Conditional,
    ir.FunctionDefinition,
    ir.Pipeline,
    ir.Subshell,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Write:
    """One attempt to make, change or remove *path* (as it was written; *directory*: the shell's, None: unknown).

    *certain*: nothing decides whether it is run. *decides*: the command line ends with status 0 only when this write
    succeeded.
    """

    path: str
    directory: str | None
    certain: bool
    decides: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandReading:
    """What a command line tries. *printed*: lines that it prints itself, a NUL for what is not known in them.

    *opaque*: it runs or prints something that cannot be read here. *unclear*: it writes to a file whose name is not
    known. *status_lines*: prefixes of lines that show the status of the write before them (``rc=`` in ``echo rc=$?``).
    """

    writes: tuple[Write, ...] = ()
    printed: tuple[str, ...] = ()
    status_lines: tuple[str, ...] = ()
    opaque: bool = False
    unclear: bool = False


def resolve(path: str, directory: str | None) -> str | None:
    """The absolute path that *path* means in *directory*, without looking at any disk; None when unknown."""
    if path.startswith("/"):
        return posixpath.normpath(path)
    return posixpath.normpath(posixpath.join(directory, path)) if directory else None


@lru_cache(maxsize=16)  # a stream tells one command several times: as a call, as begun, as ended
def read_command(text: str, directory: str | None = None) -> CommandReading:
    """Reads *text* as bash would, started in *directory*."""
    reader = _Reader(directory=directory)
    plain = _PLAIN.fullmatch(text)
    if plain and len(text) <= LONGEST_COMMAND and plain["name"] not in _RESERVED:
        words = [word.replace("'", "") for word in _PLAIN_WORD.findall(text)]
        reader.run(words, None, _Context(certain=True, decides=True))
    else:
        reader.read_text(text, _Context(certain=True, decides=True))
    return CommandReading(
        writes=tuple(reader.writes),
        printed=tuple(reader.printed),
        status_lines=tuple(reader.status_lines),
        opaque=reader.opaque,
        unclear=reader.unclear,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Context:
    """How a command is run: *quiet* when its output goes elsewhere than to the agent."""

    certain: bool
    decides: bool
    quiet: bool = False
    depth: int = 0

    @property
    def perhaps(self) -> _Context:
        return replace(self, certain=False, decides=False)


@dataclass(kw_only=True)
class _Reader:
    directory: str | None
    writes: list[Write] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    status_lines: list[str] = field(default_factory=list)
    opaque: bool = False
    unclear: bool = False

    def read_text(self, text: str, context: _Context) -> None:
        if len(text) > LONGEST_COMMAND or context.depth > _DEPTH:
            self.opaque = self.unclear = True
            return
        sequence, mistake = parse(Source(Origin(path="", text=text), text), bash=True)
        if mistake is not None:
            self.opaque = True
        self.read(sequence, context)

    # --- control flow

    def read(self, command: ir.Command, context: _Context) -> None:
        match command:
            case ir.Simple():
                self.read_simple(command, context)
            case ir.Sequence():
                self.read_sequence(command, context)
            case ir.AndOr():
                self.read_and_or(command, context)
            case ir.Pipeline():
                self.read_pipeline(command, context)
            case ir.Redirected():
                self.read_redirections(command.redirections, context)
                self.read(command.body, replace(context, quiet=context.quiet or _hides_output(command.redirections)))
            case ir.Group():
                self.read(command.body, context)
            case ir.Subshell():
                before = self.directory
                self.read(command.body, context)
                self.directory = before
            case ir.If():
                self.read_if(command, context)
            case ir.Case():
                for item in command.items:
                    self.read(item.body, context.perhaps)
            case ir.Conditional() | ir.ArithmeticCommand():
                pass
            case _:
                # Loops, functions, what runs in the background: perhaps once, perhaps never.
                self.opaque = self.opaque or isinstance(command, ir.Coprocess)
                self.read(command.body, context.perhaps)

    def read_if(self, command: ir.If, context: _Context) -> None:
        for number, (condition, body) in enumerate(command.branches):
            self.read(condition, context.perhaps if number else replace(context, decides=False))
            self.read(body, context.perhaps)
        if command.otherwise is not None:
            self.read(command.otherwise, context.perhaps)

    def read_sequence(self, sequence: ir.Sequence, context: _Context) -> None:
        certain = context.certain
        for number, command in enumerate(sequence.commands):
            last = number == len(sequence.commands) - 1
            self.read(command, replace(context, certain=certain, decides=context.decides and last))
            if _may_leave(command):
                certain = False

    def read_and_or(self, command: ir.AndOr, context: _Context) -> None:
        conjunction = command.operator == "&&"
        self.read(command.left, replace(context, decides=context.decides and conjunction))
        certain = context.certain and conjunction and _name(command.left) in BENIGN
        self.read(command.right, replace(context, certain=certain, decides=context.decides and conjunction))

    def read_pipeline(self, pipeline: ir.Pipeline, context: _Context) -> None:
        before = self.directory
        last = len(pipeline.commands) - 1
        for number, command in enumerate(pipeline.commands):
            # The words of a command before the last go to the next one, its errors to the agent unless merged.
            part = replace(
                context,
                decides=context.decides and number == last and not pipeline.negated,
                quiet=context.quiet or number != last,
            )
            if number and _name(command) in SHELLS:
                self.opaque = self.unclear = True
            self.read(command, part)
        if last:
            self.directory = before

    # --- simple commands

    def read_simple(self, command: ir.Simple, context: _Context) -> None:
        for assignment in command.assignments:
            if assignment.value is not None:
                self.read_substitutions(assignment.value, context)
        for word in command.words:
            self.read_substitutions(word, context)
        self.read_redirections(command.redirections, context)
        arguments = [_text(word, self.directory) for word in command.words]
        quiet = context.quiet or _hides_output(command.redirections)
        self.run(arguments, _here_text(command.redirections), replace(context, quiet=quiet))

    def read_substitutions(self, word: ir.Word, context: _Context) -> None:
        """What stands in ``$(…)`` is run before the command; its output becomes a word that is not known."""
        for part in word.parts:
            if isinstance(part, ir.CommandPart | ir.ProcessPart):
                self.read(part.body, replace(context, decides=False, quiet=True))
            elif isinstance(part, ir.Parameter):
                for argument in part.arguments:
                    self.read_substitutions(argument, context.perhaps)

    def read_redirections(self, redirections: Sequence[ir.Redirection], context: _Context) -> None:
        for redirection in redirections:
            if redirection.operator in (">", ">>", ">|", "&>", "&>>", "<>") or (
                redirection.operator == ">&" and not _is_descriptor(redirection.target)
            ):
                self.add(_text(redirection.target, self.directory), context)

    def add(self, path: str, context: _Context) -> None:
        if _HOLE in path or len(self.writes) >= _MOST_WRITES:
            self.unclear = True
        elif path and not _DEVICES.fullmatch(path):
            self.writes.append(
                Write(path=path, directory=self.directory, certain=context.certain, decides=context.decides)
            )

    def run(self, arguments: list[str], standard_input: str | None, context: _Context) -> None:
        """Follows one program with its arguments."""
        while arguments and _ASSIGNMENT.match(arguments[0]):
            arguments = arguments[1:]
        if not arguments:
            return
        name = posixpath.basename(arguments[0])
        operands = _operands(arguments[1:], OPERAND_WRITERS.get(name, frozenset()))
        if name in WRAPPERS:
            inner = arguments[1:]
            while inner and (inner[0].startswith("-") or _ASSIGNMENT.match(inner[0])):
                inner = inner[1:]
            self.run(inner[WRAPPERS[name] :], standard_input, replace(context, depth=context.depth + 1))
        elif name in SHELLS:
            self.run_shell(arguments[1:], standard_input, context)
        elif name in CODE_OPTIONS:
            self.run_code(CODE_OPTIONS[name], arguments[1:], standard_input, context)
        elif name in ("echo", "printf"):
            self.print(name, arguments[1:], context)
        elif name == "cd":
            self.directory = resolve(operands[0], self.directory) if operands and _HOLE not in operands[0] else None
        elif name == "apply_patch":
            for path in patch_paths(standard_input or "\n".join(arguments[1:])):
                self.add(path, context)
        else:
            self.run_writer(name, arguments[1:], operands, context)
            self.show(name, operands, standard_input, context)

    def run_writer(self, name: str, arguments: list[str], operands: list[str], context: _Context) -> None:
        """The files that a program of the tables writes."""
        in_place = any(argument.startswith(("-i", "--in-place", "-ni", "-Ei")) for argument in arguments)
        paths: list[str] = []
        if any(_SETTLED.get(name, "\0") in argument for argument in arguments if re.fullmatch("-[a-zA-Z]+", argument)):
            # ``mkdir -p``, ``rm -f``, ``touch -c`` end with status 0 also when there is nothing to do.
            context = replace(context, decides=False)
        if name in OPERAND_WRITERS:
            paths = operands
        elif name in DESTINATION_WRITERS:
            paths = operands[1:][-1:]
        elif name == "dd":
            paths = [argument[3:] for argument in arguments if argument.startswith("of=")]
        elif name in ("chmod", "chown", "chgrp") or (name == "sed" and in_place):
            paths = operands[1:]
        elif name == "git" and operands and operands[0] in GIT_WRITES:
            paths = [".git"]
        for path in paths:
            self.add(path, context)

    def show(self, name: str, operands: list[str], standard_input: str | None, context: _Context) -> None:
        """Whether the output of a program can hold anybody's words."""
        known = name in TRANSPARENT or name in OPERAND_WRITERS or name in DESTINATION_WRITERS
        if name in SHOWS_FILES:
            if name == "cat" and standard_input is not None and not operands:
                if not context.quiet:
                    self.printed += standard_input.split("\n")
            elif not context.quiet:
                self.opaque = True
        elif name == "git":
            self.opaque = self.opaque or (not context.quiet and bool(operands) and operands[0] in GIT_SHOWS)
        elif not known:
            self.opaque = self.unclear = True

    def run_shell(self, arguments: list[str], standard_input: str | None, context: _Context) -> None:
        for position, argument in enumerate(arguments):
            if argument.startswith("-") and not argument.startswith("--") and "c" in argument:
                text = next(iter(arguments[position + 1 :]), "")
                if _HOLE in text:
                    self.opaque = self.unclear = True
                else:
                    self.read_text(text, replace(context, depth=context.depth + 1))
                return
            if not argument.startswith("-"):
                self.opaque = self.unclear = True  # a script in a file
                return
        if standard_input is None or _HOLE in standard_input:
            self.opaque = self.unclear = True
        else:
            self.read_text(standard_input, replace(context, depth=context.depth + 1))

    def run_code(
        self, options: tuple[str, ...], arguments: list[str], standard_input: str | None, context: _Context
    ) -> None:
        """Code in another language: its writes are found by their usual forms, the rest of it stays opaque."""
        self.opaque = self.unclear = True
        code = standard_input or ""
        for position, argument in enumerate(arguments[:-1]):
            if argument in options:
                code = arguments[position + 1]
        for found in CODE_WRITES.finditer(code):
            if found.lastgroup:
                self.add(found[found.lastgroup], context.perhaps)

    def print(self, name: str, arguments: list[str], context: _Context) -> None:
        """``echo`` and ``printf``: the text they print, when it reaches the agent."""
        if context.quiet:
            return
        words = arguments
        while words and name == "echo" and re.fullmatch(r"-[neE]+", words[0]):
            words = words[1:]
        text = " ".join(words)
        if name == "printf" and words:
            text = _HOLE.join(re.split(r"%[-+ #0-9.*]*[A-Za-z]", words[0])) + _HOLE.join(["", *words[1:]])
            text = text.replace("\\n", "\n")
        if text.endswith("\0?"):  # a word that ends in $?
            self.status_lines.append(text[:-2])
        self.printed += text.replace("\0?", _HOLE).split("\n")


def _name(command: ir.Command) -> str:
    """The program of a simple command; empty for every other."""
    if isinstance(command, ir.Simple) and command.words:
        return posixpath.basename(_text(command.words[0], None))
    return ""


def _may_leave(command: ir.Command) -> bool:
    """Whether what follows a command in a list may not be run, because the shell may have ended or ends on errors."""
    if isinstance(command, ir.Simple):
        return _name(command) in _LEAVE
    if isinstance(command, ir.AndOr):
        return _may_leave(command.left) or _may_leave(command.right)
    return not isinstance(command, _STAYS)


def _text(word: ir.Word, directory: str | None) -> str:
    """The text of a word; what is not known of it becomes a hole, ``$?`` a hole and a question mark."""
    pieces = []
    for part in word.parts:
        if isinstance(part, ir.Literal):
            pieces.append(part.text.replace(_HOLE, ""))
        elif isinstance(part, ir.Parameter) and part.name == "PWD" and not part.operator and directory:
            pieces.append(directory)
        elif isinstance(part, ir.Parameter) and part.name == "?":
            pieces.append(_HOLE + "?")
        else:
            pieces.append(_HOLE)
    return "".join(pieces)


def _operands(arguments: list[str], with_value: frozenset[str]) -> list[str]:
    operands: list[str] = []
    skip = options_over = False
    for argument in arguments:
        if skip:
            skip = False
        elif options_over or not argument.startswith("-") or argument == "-":
            operands.append(argument)
        elif argument == "--":
            options_over = True
        else:
            skip = argument in with_value
    return operands


def _is_descriptor(word: ir.Word) -> bool:
    text = word.static
    return text is not None and (text.isdigit() or text == "-" or text.rstrip("-").isdigit())


def _hides_output(redirections: Sequence[ir.Redirection]) -> bool:
    """Whether standard output goes to a file."""
    return any(
        redirection.operator in (">", ">>", ">|", "&>", "&>>") and redirection.descriptor in (None, 1)
        for redirection in redirections
    )


def _here_text(redirections: Sequence[ir.Redirection]) -> str | None:
    for redirection in reversed(redirections):
        if redirection.operator in ("<<", "<<-", "<<<"):
            return _text(redirection.target, None)
    return None
