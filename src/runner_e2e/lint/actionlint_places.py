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

from runner_e2e.lint.values import Span

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.lint.actionlint_nodes import Nodes

__all__ = ["Places"]

_NAME = re.compile(r"[\w.*-]+")

# A line of which the columns are right and the parts are seen without reading YAML: one plain value, or a key.
_SIMPLE = re.compile(
    r"(?P<indent> *(?:- +)*)(?P<key>[\w-]+):(?: +(?P<value>[^\s|>&*!%@`\"'{\[#][^#\\]*?))?\s*(?: #.*)?"
)


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

    def span(self, shown: str, line: int, column: int, *, script: tuple[int, int] | None = None) -> Span:
        """The stretch that a message is about; *script* is a line and column in the script at that place."""
        line, column = max(1, line), max(1, column)
        simple = self._simple(shown, line, column) if script is None else None
        if simple is not None:
            return simple
        file = self._file(shown)
        if file is None:
            return Span(path=shown, line=line, column=column, end_line=line, end_column=column + 1)
        return file.span(line, column, name=_NAME, script=script)

    def _read(self, shown: str) -> Nodes | None:
        from runner_e2e.lint.actionlint_nodes import read_nodes  # reads YAML: most messages are about simple lines

        return read_nodes(self.paths[shown], shown)

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
