"""Lines of the files that findings point into, read once, and text that is safe on a terminal."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from runner_e2e.lint.values import Span

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.lint.finding import Edit

__all__ = ["Sources", "edited", "inert", "inert_json", "one_line", "visible"]

# C0 controls without tab, DEL, C1 controls, and what turns the direction of text: shown, they could rewrite a terminal.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)
_LINE_BREAK = re.compile(r"\r\n|\n|\r")


def visible(text: str) -> str:
    """*text* with every control character replaced by one visible character; line feeds stay."""
    return _UNSAFE.sub(lambda found: chr(0x2400 + ord(found[0])) if ord(found[0]) < 0x20 else "\ufffd", text)


def one_line(text: str) -> str:
    """*text* with its line feeds visible as well."""
    return visible(text).replace("\n", "\u240a")


def inert(text: str) -> str:
    """*text*, of which the CI runner takes no line for a command, should this be the log of a job.

    It looks for ``::`` at the beginning, behind blanks, and for the older ``##[`` anywhere.
    """
    return _COMMAND.sub(r"\1: :", text.replace("##[", "## ["))


def inert_json(text: str) -> str:
    """The same for JSON, whose lines never begin with ``::``: what is read from it stays as it is."""
    return text.replace("##[", "##\\u005b")


class Sources:
    """Text and lines of files by the paths that findings show, from *folder* and after *label*; empty for one that is
    gone.

    A byte order mark is no part of the text, as for the offsets of edits.
    """

    def __init__(self, folder: Path, label: str = "") -> None:
        self.folder = folder
        self.label = label
        self.whole = cache(self._read)
        self._lines = cache(self._split)

    def _read(self, path: str) -> str:
        try:
            return (self.folder / path.removeprefix(self.label)).read_bytes().decode("utf-8", errors="replace")
        except (OSError, ValueError):
            return ""

    def text(self, path: str) -> str:
        """The text of a file; :attr:`whole` has its byte order mark too."""
        return self.whole(path).removeprefix("\ufeff")

    def _split(self, path: str) -> list[str]:
        return _LINE_BREAK.split(self.text(path))

    def line(self, path: str, number: int) -> str:
        """Line *number*, from 1, without its line break."""
        lines = self._lines(path)
        return lines[number - 1] if 1 <= number <= len(lines) else ""


def edited(edit: Edit, sources: Sources) -> Span:
    """The stretch of the file that an edit replaces; empty where it only adds."""
    from runner_e2e.yaml_positions import Source  # the parser of YAML is loaded for few reports

    source = Source(sources.text(edit.path), edit.path)
    (line, column), (end_line, end_column) = source.position(edit.start), source.position(edit.end)
    return Span(path=edit.path, line=line, column=column, end_line=end_line, end_column=end_column)
