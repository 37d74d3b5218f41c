"""Python program texts: parsed with :mod:`ast`, unknown text in them kept, places counted in characters."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.source import PLACEHOLDER
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from runner_e2e.lint.source import Source

__all__ = ["MAX_CHARACTERS", "Module", "PythonSyntaxError", "parse"]

MAX_CHARACTERS = 1 << 19
"""Longer programs are not parsed: that alone would take seconds."""

# Letters of a script that hardly any program uses: an identifier may hold them, so unknown text may stand anywhere.
_FIRST = 0x30000
_COUNT = 0x1349
_STAND_IN = re.compile(f"[{chr(_FIRST)}-{chr(_FIRST + _COUNT)}]")
_LINE_END = re.compile(r"\r\n|\r|\n")


class PythonSyntaxError(Exception):
    """The text is no Python program: *offset* is where, in characters. Becomes a finding."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


@dataclass(slots=True, eq=False)
class Module:
    """A parsed program: its *source*, its tree, its name and where it was read (empty: not from a file)."""

    source: Source
    tree: ast.Module
    lines: list[int]
    """Offset of the first character of each line."""
    name: str = "__main__"
    path: str = ""
    scope: int = 0

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg | ast.excepthandler) -> tuple[int, int]:
        """The characters of *node*."""
        start = self._offset(node.lineno, node.col_offset)
        return start, self._offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def _offset(self, line: int, column: int) -> int:
        """*column* counts the bytes of UTF-8."""
        start = self.lines[min(line, len(self.lines)) - 1]
        text = self.source.text[start : start + column]
        if text.isascii():
            return start + column
        size = 0
        for count, character in enumerate(text):
            if size >= column:
                return start + count
            code = ord(character)
            size += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        return start + len(text)

    def has_unknown(self, name: str) -> bool:
        """Whether unknown text stands in an identifier."""
        return _STAND_IN.search(name) is not None

    def value_of(self, text: str) -> Value:
        """A literal or a name as a value: unknown text in it is that which was put in."""
        if text.isascii() or _STAND_IN.search(text) is None:
            return Value.literal(text)
        value = EMPTY
        for piece in re.split(f"([{chr(_FIRST)}-{chr(_FIRST + _COUNT)}])", text):
            index = ord(piece) - _FIRST if len(piece) == 1 else -1
            if 0 <= index < len(self.source.inserted):
                value = value + self.source.inserted[index]
            else:
                value = value + Value.literal(piece)
        return value


def parse(source: Source, *, name: str = "__main__", path: str = "") -> Module:
    """The program in *source*. Raises :class:`PythonSyntaxError`."""
    if len(source.text) > MAX_CHARACTERS:
        raise PythonSyntaxError(0, f"a program of more than {MAX_CHARACTERS} characters is not followed")
    if len(source.inserted) > _COUNT:
        raise PythonSyntaxError(0, "too many expressions in a program")
    # What the runner puts in is unknown here; the text itself may hold such letters only by chance.
    text = _STAND_IN.sub("\ufffd", source.text) if not source.text.isascii() else source.text
    text = PLACEHOLDER.sub(lambda match: chr(_FIRST + ord(match[0]) - 0xF0000), text)
    lines = [0, *(match.end() for match in _LINE_END.finditer(text))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), len(lines))
        offset = min(lines[line - 1] + max((error.offset or 1) - 1, 0), len(text))
        raise PythonSyntaxError(offset, _message(error)) from None
    except ValueError as error:  # null characters, half surrogate pairs
        raise PythonSyntaxError(0, f"Python cannot read it: {error}") from None
    except (MemoryError, RecursionError):
        raise PythonSyntaxError(0, "nested too deeply to follow") from None
    return Module(source, tree, lines, name, path)


def _message(error: SyntaxError) -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"Python {version}, which runs the lint, cannot parse it: {error.msg}"
