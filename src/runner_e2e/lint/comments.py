"""Where the comments and the commands of a script stand, as its language reads it."""

from __future__ import annotations

import ast
import bisect
import io
import re
import tokenize
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.ir import ShellSyntaxError
from runner_e2e.lint.shell.parser import CommandParser
from runner_e2e.lint.source import Source
from runner_e2e.lint.step_shell import step_shell
from runner_e2e.lint.values import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.shell.ir import Command

__all__ = ["Reading", "language_of", "read_script"]

_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_LANGUAGES = (
    (re.compile(r"\.(?:c|m)?[jt]sx?$"), "javascript"),
    (re.compile(r"\.py$"), "python"),
    (re.compile(r"\.(?:ps1|psm1)$"), "pwsh"),
    (re.compile(r"\.(?:cmd|bat)$"), "cmd"),
    (re.compile(r"\.(?:pl|rb)$"), "perl"),
)
_SHEBANG = re.compile(r"#!.*?\b(?:python|node|pwsh|perl|ruby)")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """*comments* and *extents* (of commands or of texts of several lines): half-open, comments in order."""

    comments: tuple[tuple[int, int], ...] = ()
    extents: tuple[tuple[int, int], ...] = ()

    def comment_at(self, offset: int) -> int | None:
        """The start of the comment that the character at *offset* stands in."""
        found = bisect.bisect_right(self.comments, offset, key=lambda comment: comment[0]) - 1
        if found < 0:
            return None
        start, end = self.comments[found]
        return start if start <= offset < end else None

    def extents_from(self, first: int, last: int) -> Iterator[int]:
        """Ends of what begins in ``[first, last)``."""
        return (end for start, end in self.extents if first <= start < last)


def language_of(name: str, text: str) -> str:
    """The language of a file with this name and text: a value of ``shell:``, or ``javascript``."""
    found = next((language for pattern, language in _LANGUAGES if pattern.search(name)), "")
    if found:
        return found
    shebang = _SHEBANG.match(text)
    if shebang is None:
        return "bash"
    return next((language for word, language in _PROGRAMS.items() if word in shebang[0]), "bash")


_PROGRAMS = {"python": "python", "node": "javascript", "pwsh": "pwsh", "perl": "perl", "ruby": "perl"}


def read_script(text: str, shell: str) -> Reading:
    """The comments of a script for ``shell:`` *shell*. Expressions are blotted out first: they may hold anything."""
    masked = _EXPRESSION.sub(lambda found: re.sub(r"[^\r\n]", "x", found[0]), text)
    if shell == "javascript":
        return _lines(masked, r"//")
    found = step_shell(shell)
    if found.posix is not None:
        return _shell(masked, bash=found.posix == "bash")
    if found.language.startswith("python"):
        return _python(masked)
    if found.language == "cmd":
        return _lines(masked, r"::|@?(?i:rem)\b")
    return _lines(masked, "#")


def _lines(text: str, opening: str) -> Reading:
    """Comments of a language that is not parsed here: only lines that are nothing but one."""
    return Reading(
        comments=tuple(
            (found.start(1), found.end()) for found in re.finditer(rf"(?m)^[ \t]*((?:{opening})[^\r\n]*)", text)
        )
    )


class _Commands(CommandParser):
    """The grammar of commands; notes comments and simple commands of the text itself."""

    def __init__(
        self, source: Source, *, bash: bool, offset: int = 0, limit: int | None = None, depth: int = 0
    ) -> None:
        super().__init__(source, bash=bash, offset=offset, limit=limit, depth=depth)
        self.comments: set[tuple[int, int]] = set()
        self.extents: set[tuple[int, int]] = set()

    def nested(self, source: Source, *, offset: int = 0, limit: int | None = None) -> _Commands:
        inner = super().nested(source, offset=offset, limit=limit)
        assert isinstance(inner, _Commands)
        if source is self.source:
            inner.comments, inner.extents = self.comments, self.extents
        return inner

    def blanks(self) -> None:
        before = self.offset
        super().blanks()
        start = self.text.find("#", before, self.offset)
        if start >= 0:
            self.comments.add((start, self.offset))

    def simple(self) -> Command:
        start = self.offset
        found = super().simple()
        self.extents.add((start, self.offset))
        return found


def _shell(text: str, *, bash: bool) -> Reading:
    parser = _Commands(Source(Origin(path="", text=text), text), bash=bash)
    try:
        while parser.complete_command([], ""):
            pass
    except (ShellSyntaxError, RecursionError):
        pass  # what was read until then
    extents = {(start, end) for start, end in parser.extents if "\n" in text[start:end]}
    return Reading(comments=tuple(sorted(parser.comments)), extents=tuple(sorted(extents)))


def _python(text: str) -> Reading:
    starts = [0]
    for line in io.StringIO(text, newline=""):
        starts.append(starts[-1] + len(line))
    comments: list[tuple[int, int]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                start = starts[token.start[0] - 1] + token.start[1]
                comments.append((start, start + len(token.string)))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # what was read until then
    return Reading(comments=tuple(comments), extents=tuple(_statements(text, starts)))


def _statements(text: str, starts: list[int]) -> Iterator[tuple[int, int]]:
    """Statements of several lines that hold no others."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and (node.end_lineno or 0) > node.lineno:
            end = starts[node.end_lineno or node.lineno] - 1
            yield starts[node.lineno - 1] + len(_indent(text, starts[node.lineno - 1])), end


def _indent(text: str, start: int) -> str:
    found = re.compile(r"[ \t]*").match(text, start)
    return found[0] if found else ""
