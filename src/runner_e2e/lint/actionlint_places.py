"""Where a message of actionlint really points to.

It gives the line and column of a YAML node, in characters, and for what stands inside of the node adds the distance
in *bytes of its value*. So a column is off after a non-ASCII character, and in a block scalar it counts from the
``|`` over all lines. What shellcheck says of a script stands at the key ``run``, with line and column of the script
in the message only.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.repository import read_document
from runner_e2e.lint.values import Span
from runner_e2e.lint.workflow import scalars
from runner_e2e.yaml_positions import Scalar, Source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.yaml_positions import Node

__all__ = ["Places"]

_NAME = re.compile(r"[\w.*-]+")
_WORD = re.compile(r"\S+")
_TAB_STOP = 8

# A line of which the columns are right and the parts are seen without reading YAML: one plain value, or a key.
_SIMPLE = re.compile(
    r"(?P<indent> *(?:- +)*)(?P<key>[\w-]+):(?: +(?P<value>[^\s|>&*!%@`\"'{\[#][^#\\]*?))?\s*(?: #.*)?"
)


class _File:
    """Scalars of one file by the line on which they begin."""

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


class Places:
    """Spans for places that actionlint names, by the paths that findings show."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = paths
        self._file = cache(self._read)
        self._lines = cache(self._split)

    def _split(self, shown: str) -> list[str]:
        try:
            return self.paths[shown].read_bytes().decode("utf-8-sig", errors="replace").split("\n")
        except OSError:
            return []

    def _read(self, shown: str) -> _File | None:
        try:
            document = read_document(self.paths[shown], shown)
        except ConfigurationError:
            return None
        return _File(Source(document.text.removeprefix("\ufeff"), shown), document.root)

    def span(self, shown: str, line: int, column: int, *, script: tuple[int, int] | None = None) -> Span:
        """The stretch that a message is about; *script* is a line and column in the script at that place."""
        line, column = max(1, line), max(1, column)
        simple = self._simple(shown, line, column) if script is None else None
        if simple is not None:
            return simple
        file = self._file(shown)
        if file is None:
            return Span(path=shown, line=line, column=column, end_line=line, end_column=column + 1)
        body = file.values.get((line, column)) if script is not None else None
        if body is not None and script is not None:
            line, column = body.position(_index(body.value, *script))
            return _stretch(file.source, line, column, _WORD)
        scalar = file.at(line, column)
        if scalar is None or script is not None:
            return _stretch(file.source, line, column, _WORD)
        start = file.source.position(scalar.start)
        distance = column - start[1] - (1 if scalar.style in {"'", '"'} else 0)
        if distance <= 0:
            return _whole(file.source, scalar)
        value = scalar.value.encode()
        if distance > len(value):
            return _stretch(file.source, line, column, _WORD)
        return _stretch(file.source, *scalar.position(len(value[:distance].decode(errors="ignore"))), _NAME)

    def _simple(self, shown: str, line: int, column: int) -> Span | None:
        """The span on a line that is so simple that no YAML needs to be read for it; most are."""
        lines = self._lines(shown)
        text = lines[line - 1].rstrip("\r") if line <= len(lines) else ""
        found = _SIMPLE.fullmatch(text) if text.isascii() else None
        if found is None:
            return None
        if column - 1 == found.start("key"):
            return Span(path=shown, line=line, column=column, end_line=line, end_column=found.end("key") + 1)
        start, end = found.span("value")
        if start == -1 or not start <= column - 1 < end:
            return None
        if column - 1 > start:
            name = _NAME.match(text, column - 1)
            end = name.end() if name else column
        return Span(path=shown, line=line, column=column, end_line=line, end_column=end + 1)


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
