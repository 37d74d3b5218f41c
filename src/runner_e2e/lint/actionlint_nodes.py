"""Where a message of actionlint points to among the nodes of a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.repository import read_document
from runner_e2e.lint.values import Span
from runner_e2e.lint.workflow import scalars
from runner_e2e.yaml_positions import Scalar, Source

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.yaml_positions import Node

__all__ = ["Nodes", "read_nodes"]

_WORD = re.compile(r"\S+")
_TAB_STOP = 8


class Nodes:
    """The scalars of one file by the line on which they begin."""

    def __init__(self, source: Source, root: Node | None) -> None:
        self.source = source
        self.by_line: dict[int, list[tuple[int, Scalar]]] = {}
        previous: Scalar | None = None
        self.values: dict[tuple[int, int], Scalar] = {}
        for scalar in scalars(root):
            line, column = source.position(scalar.start)
            self.by_line.setdefault(line, []).append((column, scalar))
            if previous is not None and previous.value == "run":
                self.values[source.position(previous.start)] = scalar
            previous = scalar

    def at(self, line: int, column: int) -> Scalar | None:
        """The last scalar that begins on *line* at *column* or before."""
        found = [each for each in self.by_line.get(line, ()) if each[0] <= column]
        return max(found, key=lambda each: each[0])[1] if found else None

    def span(self, line: int, column: int, *, name: re.Pattern[str], script: tuple[int, int] | None) -> Span:
        """The stretch at a place: a scalar, or *name* inside of it.

        *script* is a line and column in the script that stands there.
        """
        body = self.values.get((line, column)) if script is not None else None
        if body is not None and script is not None:
            line, column = body.position(_index(body.value, *script))
            return _stretch(self.source, line, column, _WORD)
        scalar = self.at(line, column)
        if scalar is None or script is not None:
            return _stretch(self.source, line, column, _WORD)
        start = self.source.position(scalar.start)
        distance = column - start[1] - (1 if scalar.style in {"'", '"'} else 0)
        if distance <= 0:
            return _whole(self.source, scalar)
        value = scalar.value.encode()
        if distance > len(value):
            return _stretch(self.source, line, column, _WORD)
        return _stretch(self.source, *scalar.position(len(value[:distance].decode(errors="ignore"))), name)


def read_nodes(path: Path, shown: str) -> Nodes | None:
    """The nodes of the file at *path*, which findings show as *shown*; None for one that cannot be read."""
    try:
        document = read_document(path, shown)
    except ConfigurationError:
        return None
    return Nodes(Source(document.text.removeprefix("\ufeff"), shown), document.root)


def _index(script: str, line: int, column: int) -> int:
    """The character of *script* at a place as shellcheck counts it: a tab goes to the next column of eight."""
    lines = script.split("\n")
    line = min(max(1, line), len(lines))
    text, at, width = lines[line - 1], 0, 0
    while at < len(text) and width < column - 1:
        width += _TAB_STOP - width % _TAB_STOP if text[at] == "\t" else 1
        at += 1
    return sum(len(each) + 1 for each in lines[: line - 1]) + at


def _whole(source: Source, scalar: Scalar) -> Span:
    """A scalar, up to the end of its first line."""
    line, column = source.position(scalar.start)
    end = min(column + scalar.end - scalar.start, len(source.line(line)) + 1)
    return Span(path=source.path, line=line, column=column, end_line=line, end_column=max(end, column + 1))


def _stretch(source: Source, line: int, column: int, what: re.Pattern[str]) -> Span:
    """What matches at a place, at least one character."""
    found = what.match(source.line(line), column - 1)
    end = found.end() + 1 if found else column + 1
    return Span(path=source.path, line=line, column=column, end_line=line, end_column=end)
