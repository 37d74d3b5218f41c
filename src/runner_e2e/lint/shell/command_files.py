"""The runner's command files: ``$GITHUB_ENV``, ``$GITHUB_OUTPUT``, ``$GITHUB_STATE``, ``$GITHUB_PATH``.

Text is taken in as it is written; complete entries are kept by name, so that many conditional writes stay apart.
Both forms are read: ``NAME=value`` and ``NAME<<DELIMITER``, lines, delimiter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.shell.state import CommandFile
from runner_e2e.lint.values import EMPTY, Hole, Text, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMAND_FILES", "append", "entries", "lines"]

COMMAND_FILES = {
    "/github/env": "environment",
    "/github/output": "outputs",
    "/github/state": "states",
    "/github/path": "paths",
}


def append(content: CommandFile, text: Value) -> CommandFile:
    """The content after *text* was written at its end."""
    pending = content.pending + text
    found = dict(content.entries)
    listed = list(content.lines)
    rests: list[Value] = []
    for one in pending.texts:
        rest = _take(one, found, listed, joined=len(pending.texts) > 1)
        rests.append(Value((rest,)))
    return CommandFile(tuple(found.items()), tuple(dict.fromkeys(listed)), join(rests))


def _take(text: Text, found: dict[str, Value], listed: list[Value], *, joined: bool) -> Text:
    """Moves the complete entries of *text* into *found* (and lines into *listed*); gives what remains."""
    while True:
        line, rest = split_line(text)
        if line is None or rest is None:
            return text
        listed.append(Value((line,)))
        name, separator, value = _head(line)
        if separator == "<<":
            block = _block(rest, value)
            if block is None:
                return text
            value, rest = block
        if separator:
            _put(found, name, Value((value,)), joined=joined)
        elif any(isinstance(piece, Hole) for piece in line):
            _put(found, "*", Value((line,)).opaque(), joined=True)
        text = rest


def _put(found: dict[str, Value], name: str, value: Value, *, joined: bool) -> None:
    found[name] = found[name] | value if joined and name in found else value


def _head(line: Text) -> tuple[str, str, Text]:
    """Name, separator (``=``, ``<<`` or nothing) and what follows on the first line of an entry."""
    first = line[0] if line and isinstance(line[0], str) else ""
    equals, here = first.find("="), first.find("<<")
    if here > 0 and (equals < 0 or here < equals):
        return first[:here], "<<", normal((first[here + 2 :], *line[1:]))
    if equals > 0:
        return first[:equals], "=", normal((first[equals + 1 :], *line[1:]))
    return "*", "", line


def _block(text: Text, delimiter: Text) -> tuple[Text, Text] | None:
    """The lines up to the delimiter, and what follows it; None when the delimiter has not come yet."""
    block: list[str | Hole] = []
    while True:
        line, rest = split_line(text)
        if line is None:
            return None
        if line == delimiter:
            return normal(block), rest if rest is not None else ()
        if rest is None:
            return None
        if block:
            block.append("\n")
        block.extend(line)
        text = rest


def split_line(text: Text) -> tuple[Text | None, Text | None]:
    """The first line, and the text after its newline (None: there is no newline in known text)."""
    for index, piece in enumerate(text):
        if isinstance(piece, str) and "\n" in piece:
            head, tail = piece.split("\n", 1)
            return normal((*text[:index], head)), normal((tail, *text[index + 1 :]))
    return (text, None) if text else (None, None)


def entries(content: CommandFile | None) -> Mapping[str, Value]:
    """All entries, the last line counted even without a newline."""
    if content is None:
        return {}
    closed = append(content, Value.literal("\n")) if content.pending != EMPTY else content
    found = dict(closed.entries)
    if closed.pending.taints:  # a block that is never closed
        found["*"] = found["*"] | closed.pending if "*" in found else closed.pending
    return found


def lines(content: CommandFile | None) -> tuple[Value, ...]:
    """All lines."""
    if content is None:
        return ()
    closed = append(content, Value.literal("\n")) if content.pending != EMPTY else content
    return tuple(line for line in closed.lines if line != EMPTY)
