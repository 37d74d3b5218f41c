"""Reading PowerShell, the lower half: blanks, names, variables, strings, here-strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.powershell.syntax import (
    Expandable,
    Expression,
    Statement,
    Sub,
    Text,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SyntaxProblem", "WordReader"]

_BLANK = re.compile(r"(?:[ \t\r\f\v\u00a0\ufeff]|`\r?\n|<#.*?(?:#>|\Z)|#[^\n]*)*", re.DOTALL)
_SEPARATORS = re.compile(r"(?:[ \t\r\f\v\u00a0\ufeff\n;]|`\r?\n|<#.*?(?:#>|\Z)|#[^\n]*)*", re.DOTALL)
_VARIABLE = re.compile(
    r"[$@](?:(?P<drive>[A-Za-z]+):(?!:))?(?P<name>[A-Za-z0-9_?]+|[$^]|(?<=\$)\?)|\$\{(?P<braced>[^}]+)\}", re.DOTALL
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_SINGLE = "'\u2018\u2019\u201a\u201b"  # PowerShell takes typographic quotes for quotes
_DOUBLE = '"\u201c\u201d\u201e'


class SyntaxProblem(Exception):  # noqa: N818 - it never leaves the parser
    """The text is not of the subset: *offset* and *reason*. It becomes a :class:`~.syntax.Gap`."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


class WordReader:
    """Reads *text* from *offset*; :class:`~.parser.Parser` adds expressions and statements."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.depth = 0

    # --- characters

    def peek(self, count: int = 1) -> str:
        """The next characters."""
        return self.text[self.offset : self.offset + count]

    def blanks(self) -> None:
        """Skips blanks and comments on this line."""
        match = _BLANK.match(self.text, self.offset)
        assert match is not None
        self.offset = match.end()

    def separators(self) -> None:
        """Skips blanks, comments, ends of lines and semicolons."""
        match = _SEPARATORS.match(self.text, self.offset)
        assert match is not None
        self.offset = match.end()

    def take(self, literal: str) -> bool:
        """Skips *literal* when it is next."""
        if self.text.startswith(literal, self.offset):
            self.offset += len(literal)
            return True
        return False

    def expect(self, literal: str) -> None:
        """Skips *literal*, which has to be next."""
        if not self.take(literal):
            raise SyntaxProblem(self.offset, f"a {literal!r} is missing")

    def keyword(self) -> str:
        """The word that is next, in lower case, without taking it."""
        match = re.compile(r"[A-Za-z]+(?![\w-])").match(self.text, self.offset)
        return match[0].lower() if match is not None else ""

    # --- variables and strings

    def variable(self) -> Variable | None:
        """A variable, when one is next."""
        match = _VARIABLE.match(self.text, self.offset)
        if match is None:
            return None
        start, self.offset = self.offset, match.end()
        if match["braced"] is not None:
            drive, colon, name = match["braced"].partition(":")
            return Variable(start, self.offset, name if colon else drive, drive.lower() if colon else "")
        splat = self.text[start] == "@"
        return Variable(start, self.offset, match["name"] or "?", (match["drive"] or "").lower(), splat)

    def single_quoted(self) -> Text:
        """``'…'``; a doubled quote stands for one."""
        start = self.offset
        self.offset += 1
        pieces: list[str] = []
        while True:
            end = next((i for i in range(self.offset, len(self.text)) if self.text[i] in _SINGLE), -1)
            if end < 0:
                raise SyntaxProblem(start, "a string is not closed")
            pieces.append(self.text[self.offset : end])
            self.offset = end + 1
            if self.peek() not in _SINGLE or not self.peek():
                return Text(start, self.offset, "".join(pieces))
            pieces.append("'")
            self.offset += 1

    def double_quoted(self) -> Expression:
        """``"…"`` with what is expanded in it."""
        start = self.offset
        self.offset += 1
        parts = self.expanded(stop=_DOUBLE)
        if not self.peek():
            raise SyntaxProblem(start, "a string is not closed")
        self.offset += 1
        return _whole(start, self.offset, parts)

    def here_string(self) -> Expression | None:
        """``@" … "@`` and ``@' … '@``; None when none is next."""
        match = re.compile(rf"@([{_SINGLE}{_DOUBLE}])[ \t]*\r?\n").match(self.text, self.offset)
        if match is None:
            return None
        start = self.offset
        quotes = _SINGLE if match[1] in _SINGLE else _DOUBLE
        end = re.compile(rf"\r?\n[{quotes}]@").search(self.text, match.end() - 1)
        if end is None:
            raise SyntaxProblem(start, "a here-string is not closed")
        if quotes is _SINGLE:
            self.offset = end.end()
            return Text(start, self.offset, self.text[match.end() : max(end.start(), match.end())])
        self.offset = match.end()
        parts = self.expanded(stop="", limit=max(end.start(), match.end()))
        self.offset = end.end()
        return _whole(start, self.offset, parts)

    def expanded(self, *, stop: str, limit: int | None = None) -> list[Expression]:
        """The parts of an expandable string up to a character of *stop*, or up to *limit*."""
        parts: list[Expression] = []
        known: list[str] = []
        began = self.offset
        end = len(self.text) if limit is None else limit

        def flush() -> None:
            if known:
                parts.append(Text(began, self.offset, "".join(known)))
                known.clear()

        while self.offset < end:
            char = self.text[self.offset]
            if stop and char in stop:
                if self.text[self.offset + 1 : self.offset + 2] not in stop or self.offset + 1 >= end:
                    break
                known.append('"')
                self.offset += 2
            elif char == "`":
                known.append(self.escape())
            elif char == "$" and (part := self._substitution()) is not None:
                flush_end, self.offset = self.offset, part.start
                flush()
                self.offset = flush_end
                parts.append(part)
                began = self.offset
            else:
                known.append(char)
                self.offset += 1
        flush()
        return parts

    def escape(self) -> str:
        """A backtick and what follows it."""
        char = self.text[self.offset + 1 : self.offset + 2]
        match = re.compile(r"`u\{([0-9A-Fa-f]{1,6})\}").match(self.text, self.offset)
        if match is not None and int(match[1], 16) <= 0x10FFFF:
            self.offset = match.end()
            return chr(int(match[1], 16))
        self.offset += 2
        return _ESCAPES.get(char, char)

    def _substitution(self) -> Expression | None:
        """``$( … )`` or ``$name`` within a string."""
        if self.text.startswith("$(", self.offset):
            return self.sub_expression()
        return self.variable()

    def sub_expression(self) -> Sub:
        """``$( … )``."""
        start = self.offset
        self.offset += 2
        body = self.statements(until=")")
        self.expect(")")
        return Sub(start, self.offset, tuple(body))

    def statements(self, *, until: str) -> Sequence[Statement]:
        """Statements up to the character *until*, which is left. Given by the parser."""
        raise NotImplementedError

    def members(self, owner: Expression) -> Expression:
        """Members and indexes after *owner*. Given by the parser."""
        raise NotImplementedError


def _whole(start: int, end: int, parts: list[Expression]) -> Expression:
    if not parts:
        return Text(start, end, "")
    if len(parts) == 1 and isinstance(parts[0], Text):
        return Text(start, end, parts[0].text)
    return Expandable(start, end, tuple(parts))
