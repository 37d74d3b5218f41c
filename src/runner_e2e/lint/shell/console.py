"""What the runner makes of the lines that a step prints: text of the log, annotations, masks, outputs.

A line that begins with ``::NAME …::`` is a workflow command. While commands are stopped every one is plain text, but
for the token that ends the stop.
Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions, and ``ActionCommandManager.cs``
and ``ActionCommand.cs`` of https://github.com/actions/runner.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.command_files import split_line
from runner_e2e.lint.shell.state import Reading
from runner_e2e.lint.values import EMPTY, Hole, Text, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LINE_BEGUN", "Console", "Part", "begins_line", "changes_reading", "has_commands", "read_console"]

LINE_BEGUN = Value.literal("\0")
"""Stands for the text before, where text that is printed goes on with a line."""

_COMMAND = re.compile(r"\s*::(?P<command>[a-z-]+)(?P<properties>(?: [^:]*)?)::", re.IGNORECASE)
_NAME = re.compile(r"\bname=([^,]+)")
_ANNOTATIONS = frozenset({"error", "warning", "notice"})
_SILENT = frozenset({"set-output", "save-state", "add-matcher", "remove-matcher", "echo", "endgroup"})
_UNSECURE = frozenset({"set-env", "add-path"})
"""Commands that the runner refuses unless ``ACTIONS_ALLOW_UNSECURE_COMMANDS`` is set: it shows them in an error."""
_NO_TOKENS = (
    frozenset({"", "pause-logging", "stop-commands", "add-mask", "debug", "group"}) | _ANNOTATIONS | _SILENT | _UNSECURE
)
"""What the runner does not take for the token of a stop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Text that stays in the log, after *masks* of the same print."""

    shown: Value
    masks: tuple[Value, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Console:
    """What becomes of a print; a mask with more than one alternative is registered on some ways only.

    *reading* is how the lines that follow are read.
    """

    parts: tuple[Part, ...]
    reading: Reading = Reading()
    masks: tuple[Value, ...] = ()
    outputs: tuple[tuple[str, Value], ...] = ()
    environment: tuple[tuple[str, Value], ...] = ()
    paths: tuple[Value, ...] = ()
    annotates: bool = False


def begins_line(value: Value) -> bool:
    """Whether the last line of printed text is none yet, for sure: what is printed next goes on with it.

    One that begins with a command is not told.
    """
    return all(_begins_line(text) for text in value.texts)


def _begins_line(text: Text) -> bool:
    known = False
    for index in range(len(text) - 1, -1, -1):
        piece = text[index]
        if isinstance(piece, str):
            end = max(piece.rfind("\n"), piece.rfind("\r"))
            rest = piece[end + 1 :]
            known = known or bool(rest)
            if end >= 0 or index == 0:
                return known and _COMMAND.match(rest) is None
    return known


def has_commands(value: Value) -> bool:
    """Whether a workflow command can be in printed text: a quick look, before :func:`read_console`."""
    return any(isinstance(piece, str) and "::" in piece for text in value.texts for piece in text)


def changes_reading(value: Value) -> bool:
    """Whether a command in printed text may say how the lines after it are read."""
    return any(
        "stop-commands::" in known or "::echo::" in known
        for text in value.texts
        for piece in text
        if isinstance(piece, str) and "::" in piece
        for known in (piece.lower(),)
    )


def read_console(value: Value, reading: Reading = Reading(), *, unsecure: bool = False) -> Console:  # noqa: B008 - frozen
    """Reads printed text. *unsecure*: commands that are refused by default are allowed."""
    if not has_commands(value):
        return Console(parts=(Part(shown=value),), reading=reading)
    tokens = reading.stopped.texts
    lines = _Lines(reading, unsecure=unsecure, certain=len(value.texts) * len(tokens) == 1)
    ends = [end for token in tokens for text in value.texts for end in lines.read(text, token)]
    return Console(
        parts=lines.parts(),
        reading=replace(reading, stopped=Value.any_of(ends), echoed=lines.echoed),
        masks=tuple(dict.fromkeys(lines.masks)),
        outputs=tuple(lines.outputs),
        environment=tuple(lines.environment),
        paths=tuple(lines.paths),
        annotates=lines.annotates,
    )


class _Lines:
    """Reads line by line, and keeps what was seen."""

    def __init__(self, reading: Reading, *, unsecure: bool, certain: bool) -> None:
        self.masks: list[Value] = []
        self.outputs: list[tuple[str, Value]] = []
        self.environment: list[tuple[str, Value]] = []
        self.paths: list[Value] = []
        self.annotates = False
        self.echoed = reading.echoed
        self._unsecure = unsecure
        self._certain = certain
        self._one = certain  # of several texts none comes after another
        self._shown: list[tuple[Text, int]] = []
        self._kept: list[str | Hole] = []

    def parts(self) -> tuple[Part, ...]:
        """What stays in the log, in its order."""
        if self._one:
            return tuple(Part(shown=Value((text,)), masks=tuple(self.masks[:count])) for text, count in self._shown)
        return (Part(shown=Value.any_of(text for text, _ in self._shown)),)

    def read(self, text: Text, token: Text) -> list[Text]:
        """Reads *text* while *token* ends a stop (empty: there is none); the tokens that may hold after it."""
        ends: list[Text] = []
        for line in _lines(text):
            if token and _resumes(line, token):
                token = ()
                self._keep(line)
            elif token and len(line) > 1 and isinstance(line[0], str) and line[0].lstrip() == "::":
                ends.append(token)  # perhaps this is the token
                token, self._certain = (), False
                self._keep(line)
            elif token:
                self._keep(line)
            else:
                token = self._command(line)
        self._end_part()
        return [*ends, token]

    def _command(self, line: Text) -> Text:
        """Carries out one line while commands are not stopped; the token of a stop that begins here."""
        match = _COMMAND.match(line[0]) if line and isinstance(line[0], str) else None
        command = match["command"].lower() if match else ""
        data = _after(line, match.end()) if match else line
        name = _NAME.search(match["properties"]) if match else None
        if command == "add-mask":
            if self._one:
                self._end_part()
            self.masks.append(Value((data,)) if self._certain else join([Value((data,)), EMPTY]))
            return ()
        if command == "stop-commands":
            self._keep(line)
            token = Value((data,)).constant
            return () if token is not None and token.lower() in _NO_TOKENS else data
        if command == "set-output":
            self.outputs.append((name[1].strip() if name else "*", Value((data,))))
        elif command == "echo" and data in {("on",), ("off",)}:
            self.echoed = data == ("on",) or (self.echoed and not self._certain)
        elif command in _UNSECURE and self._unsecure:
            if command == "set-env":
                self.environment.append((name[1].strip() if name else "*", Value((data,))))
            else:
                self.paths.append(Value((data,)))
        if command not in _SILENT | _UNSECURE or self.echoed or (command in _UNSECURE and not self._unsecure):
            self.annotates = self.annotates or command in _ANNOTATIONS | _UNSECURE
            self._keep(line)
        return ()

    def _keep(self, line: Text) -> None:
        self._kept += [*line, "\n"]

    def _end_part(self) -> None:
        self._shown.append((normal(self._kept[:-1]), len(self.masks)))
        self._kept = []


def _resumes(line: Text, token: Text) -> bool:
    """Whether *line* is the command that *token* names."""
    wanted = normal(("::", *token, "::"))
    last = len(wanted) - 1
    if len(line) <= last:
        return False
    for index, (piece, part) in enumerate(zip(line, wanted, strict=False)):
        if isinstance(piece, Hole) or isinstance(part, Hole):
            if piece != part:
                return False
            continue
        known = (piece.lstrip() if index == 0 else piece).lower()
        if not (known.startswith(part.lower()) if index == last else known == part.lower()):
            return False
    return True


def _after(line: Text, offset: int) -> Text:
    first = line[0]
    assert isinstance(first, str)
    return normal((first[offset:], *line[1:]))


def _lines(text: Text) -> Iterator[Text]:
    rest: Text | None = text
    while rest:
        line, rest = split_line(rest)
        yield line or ()
