"""Reading words: quoting, expansions, here-documents. The grammar of commands is in :mod:`parser`."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.ansi import decode
from runner_e2e.lint.shell.ir import (
    OUT_OF_TIME,
    ArithmeticPart,
    CommandPart,
    ExhaustedError,
    Inserted,
    Literal,
    Parameter,
    Part,
    ProcessPart,
    Sequence,
    ShellSyntaxError,
    Word,
)
from runner_e2e.lint.source import PLACEHOLDER, Source

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAX_DEPTH", "WordParser"]

MAX_DEPTH = 60
"""Nesting of substitutions and compound commands that is still followed."""

_PLAIN = re.compile(r"[^\s\\'\"`$&|;<>()]+")
_IN_DOUBLE_QUOTES = re.compile(r"[^\\\"`$]+")
_IN_HERE_DOCUMENT = re.compile(r"[^\\`$]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = re.compile(r"[0-9@*#?$!-]")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!_-]")
_OPERATOR = re.compile(r":?[-=?+]|##?|%%?|//|/#|/%|/|\^\^?|,,?|~~?|@[A-Za-z]|:")
_EXTENDED_GLOB = re.compile(r"[?*+@!]$")
_IN_BRACES = re.compile(r"[^\\'\"`$}/:]+")


class WordParser:
    """Reads words of *source* from *offset* on. :meth:`sequence` is given by the command parser."""

    def __init__(
        self, source: Source, *, bash: bool, offset: int = 0, limit: int | None = None, depth: int = 0
    ) -> None:
        self.source = source
        self.text = source.text
        self.bash = bash
        self.offset = offset
        self.limit = len(source.text) if limit is None else limit
        self.depth = depth
        self.deadline: float | None = None
        """When reading must have ended, a ``time.process_time()`` time."""
        # Where the line that ends at the key goes on: after the bodies of its here-documents.
        self.resume: dict[int, int] = {}

    # The grammar of commands, which substitutions need.
    def sequence(self, *, until: str) -> Sequence:
        """Commands up to *until* (not consumed)."""
        raise NotImplementedError

    def nested(self, source: Source, *, offset: int = 0, limit: int | None = None) -> WordParser:
        """A parser of the same kind for a part of the text, or for a text taken out of it."""
        if self.depth >= MAX_DEPTH:
            raise ShellSyntaxError(self.offset, "nested too deeply to follow")
        made = type(self)(source, bash=self.bash, offset=offset, limit=limit, depth=self.depth + 1)
        made.deadline = self.deadline
        return made

    def check_time(self, number: int) -> None:
        """Raises :class:`ExhaustedError` after the deadline. Looks at the clock for some values of *number* only."""
        if self.deadline is not None and not number % 64 and time.process_time() > self.deadline:
            raise ExhaustedError(OUT_OF_TIME)

    def fail(self, message: str, offset: int | None = None) -> ShellSyntaxError:
        """The error to raise at *offset* (here, by default)."""
        return ShellSyntaxError(self.offset if offset is None else offset, message)

    def peek(self, text: str) -> bool:
        """Whether *text* comes next."""
        return self.offset < self.limit and self.text.startswith(text, self.offset)

    def char(self) -> str:
        """The next character, or nothing at the end."""
        return self.text[self.offset] if self.offset < self.limit else ""

    def word(self, stop: Callable[[str], bool] | None = None) -> Word | None:
        """One word outside quotes, None when none starts here. *stop* can end it before a character."""
        first = self.offset
        parts: list[Part] = []
        while self.offset < self.limit:
            char = self.text[self.offset]
            if stop is not None and stop(char):
                break
            if not self._word_part(parts, char, plain=stop is None):
                break
        if self.offset == first:
            return None
        return Word(self.source.start(first), self.source.end(self.offset), tuple(parts))

    def _word_part(self, parts: list[Part], char: str, *, plain: bool) -> bool:
        """Reads one more part of a word; False where the word ends."""
        start = self.offset
        if char == "'":
            self._single_quoted(parts)
        elif char == '"':
            self._double_quoted(parts)
        elif char == "\\":
            self._escaped(parts)
        elif char == "$":
            self.dollar(parts, quoted=False)
        elif char == "`":
            self._backquoted(parts, quoted=False)
        elif char == "(" and self.bash and parts and _ends_with_glob_operator(parts[-1]):
            self._extended_glob(parts)
        elif char in "<>" and self.bash and self.text.startswith("(", start + 1):
            parts.append(self._process_substitution(char))
        elif plain:
            match = _PLAIN.match(self.text, start, self.limit)
            if match is None:
                return False
            self.offset = match.end()
            self.add(parts, start, self.offset, match.group(), quoted=False)
        elif char.isspace() or char in "&|;<>()":
            return False
        else:
            self.offset += 1
            self.add(parts, start, self.offset, char, quoted=False)
        return True

    def add(self, parts: list[Part], start: int, end: int, text: str, *, quoted: bool) -> None:
        """Adds known characters, taking the inserted ones out as parts of their own."""
        if not text.isascii() and PLACEHOLDER.search(text):
            for piece in re.split("([\U000f0000-\U000ffffd])", text):
                if PLACEHOLDER.match(piece):
                    at = self.text.find(piece, start, end)
                    parts.append(
                        Inserted(self.source.start(at), self.source.end(at + 1), self.source.value_of(piece), quoted)
                    )
                elif piece:
                    parts.append(Literal(self.source.start(start), self.source.end(end), piece, quoted))
            return
        last = parts[-1] if parts else None
        if isinstance(last, Literal) and last.quoted == quoted:
            parts[-1] = Literal(last.start, self.source.end(end), last.text + text, quoted)
        else:
            parts.append(Literal(self.source.start(start), self.source.end(end), text, quoted))

    def _single_quoted(self, parts: list[Part]) -> None:
        start = self.offset
        close = self.text.find("'", start + 1, self.limit)
        if close < 0:
            raise self.fail("a single quote is not closed", start)
        self.offset = close + 1
        self.add(parts, start + 1, close, self.text[start + 1 : close], quoted=True)

    def _escaped(self, parts: list[Part]) -> None:
        start = self.offset
        self.offset = min(start + 2, self.limit)
        following = self.text[start + 1 : self.offset]
        if following != "\n":
            self.add(parts, start, self.offset, following or "\\", quoted=True)

    def _double_quoted(self, parts: list[Part]) -> None:
        start = self.offset
        self.offset += 1
        # An empty string is a word too.
        parts.append(Literal(self.source.start(start), self.source.end(start + 1), "", True))
        self.quoted_parts(parts, stop='"')
        if not self.peek('"'):
            raise self.fail("a double quote is not closed", start)
        self.offset += 1

    def quoted_parts(self, parts: list[Part], *, stop: str) -> None:
        """Reads as within double quotes up to *stop* (not consumed); an empty *stop* reads a here-document."""
        run = _IN_DOUBLE_QUOTES if stop == '"' else _IN_HERE_DOCUMENT
        escapable = '$`"\\' if stop == '"' else "$`\\"
        while self.offset < self.limit:
            start = self.offset
            match = run.match(self.text, start, self.limit)
            if match is not None:
                self.offset = match.end()
                self.add(parts, start, self.offset, match.group(), quoted=True)
                continue
            char = self.text[start]
            if char == "$":
                self.dollar(parts, quoted=True)
            elif char == "`":
                self._backquoted(parts, quoted=True)
            elif char == "\\":
                following = self.text[start + 1 : start + 2]
                self.offset = min(start + 2, self.limit)
                if following != "\n":
                    kept = following if following and following in escapable else "\\" + following
                    self.add(parts, start, self.offset, kept, quoted=True)
            else:
                return

    def dollar(self, parts: list[Part], *, quoted: bool) -> None:
        """Reads what starts with ``$``."""
        start = self.offset
        following = self.text[start + 1 : min(start + 2, self.limit)]
        if following == "(":
            parts.append(self._parenthesised(quoted=quoted))
        elif following == "{":
            parts.append(self._braced(quoted=quoted))
        elif following == "[" and self.bash:
            parts.append(self._bracketed(quoted=quoted))
        elif following == "'" and self.bash and not quoted:
            self._ansi_quoted(parts)
        elif following == '"' and self.bash and not quoted:
            self.offset += 1
        elif (name := _NAME.match(self.text, start + 1, self.limit)) or (
            name := _SPECIAL.match(self.text, start + 1, self.limit)
        ):
            self.offset = name.end()
            parts.append(Parameter(self.source.start(start), self.source.end(self.offset), name.group(), quoted))
        else:
            self.offset += 1
            self.add(parts, start, self.offset, "$", quoted=quoted)

    def _ansi_quoted(self, parts: list[Part]) -> None:
        start = self.offset
        self.offset += 2
        while self.offset < self.limit and self.text[self.offset] != "'":
            self.offset += 2 if self.text[self.offset] == "\\" else 1
        if self.offset >= self.limit:
            raise self.fail("a $'…' quote is not closed", start)
        self.add(parts, start, self.offset, decode(self.text[start + 2 : self.offset]), quoted=True)
        self.offset += 1

    def _parenthesised(self, *, quoted: bool) -> Part:
        start = self.offset
        if self.text.startswith("((", start + 1):
            close = self._arithmetic_end(start + 3)
            if close is not None:
                return self._arithmetic(start, start + 3, close, close + 2, quoted=quoted)
        self.offset = start + 2
        body = self._substituted_commands(start)
        return CommandPart(self.source.start(start), self.source.end(self.offset), body, quoted)

    def _substituted_commands(self, start: int) -> Sequence:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("nested too deeply to follow")
        body = self.sequence(until=")")
        self.depth -= 1
        if not self.peek(")"):
            raise self.fail("a substitution is not closed", start)
        self.offset += 1
        return body

    def _arithmetic_end(self, offset: int) -> int | None:
        """Where the ``))`` stands that closes arithmetic beginning at *offset*; None when it is a subshell."""
        depth = 0
        while offset < self.limit:
            char = self.text[offset]
            if char == "(":
                depth += 1
            elif char == ")":
                if depth == 0:
                    return offset if self.text.startswith("))", offset) else None
                depth -= 1
            elif char == "\\":
                offset += 1
            elif char in "'\"":
                close = self.text.find(char, offset + 1, self.limit)
                if close < 0:
                    return None
                offset = close
            offset += 1
        return None

    def _arithmetic(self, start: int, first: int, last: int, end: int, *, quoted: bool) -> ArithmeticPart:
        expression = self.arithmetic_word(first, last)
        self.offset = end
        return ArithmeticPart(self.source.start(start), self.source.end(end), expression, quoted)

    def arithmetic_word(self, first: int, last: int) -> Word:
        """The characters ``[first, last)`` as an arithmetic expression, which expands as in double quotes."""
        inner = self.nested(self.source, offset=first, limit=last)
        parts: list[Part] = []
        while inner.offset < last:
            inner.quoted_parts(parts, stop='"')
            inner.offset += 1  # a double quote has no meaning here
        return Word(self.source.start(first), self.source.end(last), tuple(parts))

    def _bracketed(self, *, quoted: bool) -> Part:
        start = self.offset
        close = self.text.find("]", start, self.limit)
        if close < 0:
            raise self.fail("$[ is not closed", start)
        return self._arithmetic(start, start + 2, close, close + 1, quoted=quoted)

    def _backquoted(self, parts: list[Part], *, quoted: bool) -> None:
        start = self.offset
        close = start + 1
        while close < self.limit and self.text[close] != "`":
            close += 2 if self.text[close] == "\\" else 1
        if close >= self.limit:
            raise self.fail("a backquote is not closed", start)
        inner = self._unescaped(start + 1, close, '$`\\"' if quoted else "$`\\")
        body = inner.sequence(until="")
        self.offset = close + 1
        parts.append(CommandPart(self.source.start(start), self.source.end(self.offset), body, quoted))

    def _unescaped(self, first: int, last: int, escapable: str) -> WordParser:
        """A parser for ``[first, last)`` after one level of backslashes is gone."""
        if "\\" not in self.text[first:last]:
            return self.nested(self.source, offset=first, limit=last)
        kept: list[int] = []
        offset = first
        while offset < last:
            if self.text[offset] == "\\" and offset + 1 < last and self.text[offset + 1] in escapable:
                offset += 1
            kept.append(offset)
            offset += 1
        return self.nested(self.picked(kept))

    def picked(self, offsets: list[int]) -> Source:
        """A source of some characters of this one."""
        return Source(
            self.source.origin,
            "".join(self.text[offset] for offset in offsets),
            self.source.inserted,
            [self.source.start(offset) for offset in offsets],
            [self.source.end(offset + 1) for offset in offsets],
            exact=self.source.exact,
        )

    def _process_substitution(self, direction: str) -> ProcessPart:
        start = self.offset
        self.offset += 2
        body = self._substituted_commands(start)
        return ProcessPart(self.source.start(start), self.source.end(self.offset), direction, body)

    def _extended_glob(self, parts: list[Part]) -> None:
        start = self.offset
        self.offset += 1
        self.add(parts, start, self.offset, "(", quoted=False)
        while self.offset < self.limit and not self.peek(")"):
            char = self.text[self.offset]
            at = self.offset
            if char in "|&;<>( \t\n" and not (char == "(" and _ends_with_glob_operator(parts[-1])):
                self.offset += 1
                self.add(parts, at, self.offset, char, quoted=False)
            elif not self._word_part(parts, char, plain=True):
                break
        if not self.peek(")"):
            raise self.fail("a pattern is not closed", start)
        self.offset += 1
        self.add(parts, self.offset - 1, self.offset, ")", quoted=False)

    def _braced(self, *, quoted: bool) -> Parameter:
        start = self.offset
        self.offset += 2
        operator = ""
        indirect = False
        if (
            (self.peek("#") and not re.match(r"#[}:#%/+=?-]", self.text[self.offset : self.offset + 2]))
            or self.peek("#-}")
            or self.peek("#?}")
            or self.peek("##}")
        ):
            operator = "length"
            self.offset += 1
        elif self.peek("!") and not self.peek("!}"):
            indirect = True
            self.offset += 1
        match = _PARAMETER.match(self.text, self.offset, self.limit)
        if match is None:
            raise self.fail("bad substitution", start)
        name = match.group()
        self.offset = match.end()
        subscript = self._subscript() if self.peek("[") else None
        arguments: tuple[Word, ...] = ()
        if not self.peek("}"):
            operator, arguments = self._operation(start, indirect=indirect, quoted=quoted)
        if not self.peek("}"):
            raise self.fail("bad substitution", start)
        self.offset += 1
        return Parameter(
            self.source.start(start),
            self.source.end(self.offset),
            name,
            quoted,
            subscript=subscript,
            operator=operator,
            arguments=arguments,
            indirect=indirect,
        )

    def _operation(self, start: int, *, indirect: bool, quoted: bool) -> tuple[str, tuple[Word, ...]]:
        if indirect and (self.peek("*}") or self.peek("@}")):
            self.offset += 1
            return "names", ()
        match = _OPERATOR.match(self.text, self.offset, self.limit)
        if match is None:
            raise self.fail("bad substitution", start)
        operator = match.group()
        self.offset = match.end()
        if operator[0] == "@":
            return operator, ()
        if operator == ":":
            first = self._brace_word(":}", quotes=True)
            if self.peek(":"):
                self.offset += 1
                return operator, (first, self._brace_word("}", quotes=True))
            return operator, (first,)
        if operator[0] == "/":
            pattern = self._brace_word("/}", quotes=True)
            if self.peek("/"):
                self.offset += 1
                return operator, (pattern, self._brace_word("}", quotes=not quoted))
            return operator, (pattern,)
        return operator, (self._brace_word("}", quotes=not quoted or operator[0] in "#%^,~"),)

    def _brace_word(self, stop: str, *, quotes: bool) -> Word:
        """The word after an operator, up to one of *stop*; *quotes*: whether single quotes quote."""
        first = self.offset
        parts: list[Part] = []
        while self.offset < self.limit:
            start = self.offset
            char = self.text[start]
            if char in stop:
                break
            match = _IN_BRACES.match(self.text, start, self.limit)
            if match is not None:
                self.offset = match.end()
                self.add(parts, start, self.offset, match.group(), quoted=False)
            elif char in '"\\$`' or (char == "'" and quotes):
                self._word_part(parts, char, plain=False)
            else:
                self.offset += 1
                self.add(parts, start, self.offset, char, quoted=False)
        return Word(self.source.start(first), self.source.end(self.offset), tuple(parts))

    def _subscript(self) -> Word:
        """Reads ``[…]``."""
        first = self.offset
        self.offset += 1
        parts: list[Part] = []
        depth = 0
        while self.offset < self.limit:
            start = self.offset
            char = self.text[start]
            if char == "]" and depth == 0:
                self.offset += 1
                return Word(self.source.start(first), self.source.end(self.offset), tuple(parts))
            if char in "'\"\\$`":
                self._word_part(parts, char, plain=False)
                continue
            depth += {"[": 1, "]": -1}.get(char, 0)
            self.offset += 1
            self.add(parts, start, self.offset, char, quoted=False)
        raise self.fail("a subscript is not closed", first)


def _ends_with_glob_operator(part: Part) -> bool:
    return isinstance(part, Literal) and not part.quoted and _EXTENDED_GLOB.search(part.text) is not None
