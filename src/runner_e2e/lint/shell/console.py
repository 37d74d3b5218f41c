"""What the runner makes of the lines that a step prints: text of the log, annotations, masks, outputs.

A line that begins with ``::NAME …::`` is a workflow command.
Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.command_files import split_line
from runner_e2e.lint.values import EMPTY, Hole, Text, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Console", "read_console"]

_COMMAND = re.compile(r"\s*::(?P<command>[a-z-]+)(?P<properties>(?: [^:]*)?)::")
_NAME = re.compile(r"\bname=([^,]+)")
_ANNOTATIONS = frozenset({"error", "warning", "notice"})
_SILENT = frozenset({"save-state", "set-env", "add-path", "add-matcher", "remove-matcher", "echo", "endgroup"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Console:
    """*shown* is what stays in the log; a mask with more than one alternative is registered on some ways only."""

    shown: Value
    masks: tuple[Value, ...] = ()
    outputs: tuple[tuple[str, Value], ...] = ()
    annotates: bool = False


def read_console(value: Value) -> Console:
    """Reads printed text."""
    if not any(isinstance(text[0], str) and "::" in text[0] for text in value.texts if text) and not _later(value):
        return Console(shown=value)
    shown: list[Text] = []
    masks: list[Value] = []
    outputs: list[tuple[str, Value]] = []
    annotates = False
    certain = len(value.texts) == 1
    for text in value.texts:
        kept: list[str | Hole] = []
        for line in _lines(text):
            match = _COMMAND.match(line[0]) if line and isinstance(line[0], str) else None
            command = match["command"] if match else ""
            rest = _after(line, match.end()) if match else line
            if command == "add-mask":
                masks.append(Value((rest,)) if certain else join([Value((rest,)), EMPTY]))
            elif command == "set-output" and match is not None:
                name = _NAME.search(match["properties"])
                outputs.append((name[1].strip() if name else "*", Value((rest,))))
            elif command not in _SILENT:
                annotates = annotates or command in _ANNOTATIONS
                kept += [*line, "\n"]
        shown.append(normal(kept[:-1]))
    return Console(shown=Value.any_of(shown), masks=tuple(masks), outputs=tuple(outputs), annotates=annotates)


def _later(value: Value) -> bool:
    """Whether a command can begin after the first piece of a text."""
    return any(isinstance(piece, str) and "\n" in piece and "::" in piece for piece in value.pieces())


def _after(line: Text, offset: int) -> Text:
    first = line[0]
    assert isinstance(first, str)
    return normal((first[offset:], *line[1:]))


def _lines(text: Text) -> Iterator[Text]:
    rest: Text | None = text
    while rest:
        line, rest = split_line(rest)
        yield line or ()
