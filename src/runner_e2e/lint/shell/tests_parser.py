"""The grammar of ``[[ … ]]``, and what all grammars of commands read: blanks, newlines, reserved words."""

from __future__ import annotations

import re

from runner_e2e.lint.shell.ir import Command, Conditional, Part, Test, Word
from runner_e2e.lint.shell.words import WordParser

__all__ = ["TestParser"]

_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")
_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|do|done|case|esac|while|until|for|select|function|time|coproc|in|\{|\}|!|\[\[|\]\])"
    r"(?=[\s;&|()<>]|$)"
)
_UNARY = re.compile(r"-[abcdefghknoprstuvwxzGLNORS](?=\s)")
_BINARY = re.compile(r"==|!=|=~|=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)(?=\s)")


class TestParser(WordParser):
    """Reads tests, and what stands between words."""

    __test__ = False  # not a test class

    # --- blanks, newlines, here-documents

    def blanks(self) -> None:
        """Skips blanks and a comment."""
        match = _BLANK.match(self.text, self.offset, self.limit)
        if match is not None:
            self.offset = match.end()
        if self.peek("#") and (self.offset == 0 or self.text[self.offset - 1] in " \t\n;&|()`\r"):
            end = self.text.find("\n", self.offset, self.limit)
            self.offset = self.limit if end < 0 else end

    def newline(self) -> bool:
        """Skips one newline and the here-documents that follow it."""
        if not self.peek("\n"):
            return False
        self.offset = self.resume.get(self.offset, self.offset + 1)
        return True

    def newlines(self) -> None:
        """Skips blank lines and comments."""
        self.blanks()
        while self.newline():
            self.blanks()

    def reserved(self) -> str:
        """The reserved word that comes next, or nothing."""
        match = _RESERVED.match(self.text, self.offset, self.limit)
        return match.group() if match is not None else ""

    def expect(self, word: str, *, of: int) -> None:
        """Skips the reserved *word*."""
        self.newlines()
        if self.reserved() != word:
            raise self.fail(f"'{word}' is missing", of)
        self.offset += len(word)

    # --- [[ … ]]

    def _conditional(self, start: int) -> Command:
        test = self._test_or()
        self.newlines()
        if self.reserved() != "]]":
            raise self.fail("']]' is missing", start)
        self.offset += 2
        return Conditional(self.source.start(start), self.source.end(self.offset), test)

    def _test_or(self) -> Test:
        left = self._test_and()
        self.newlines()
        while self.peek("||"):
            self.offset += 2
            right = self._test_and()
            left = Test(left.start, right.end, "||", inner=(left, right))
            self.newlines()
        return left

    def _test_and(self) -> Test:
        left = self._test_not()
        self.newlines()
        while self.peek("&&"):
            self.offset += 2
            right = self._test_not()
            left = Test(left.start, right.end, "&&", inner=(left, right))
            self.newlines()
        return left

    def _test_not(self) -> Test:
        self.newlines()
        start = self.source.start(self.offset)
        if self.reserved() == "!" or self.peek("!("):
            self.offset += 1
            inner = self._test_not()
            return Test(start, inner.end, "!", inner=(inner,))
        if self.peek("("):
            self.offset += 1
            inner = self._test_or()
            self.newlines()
            if not self.peek(")"):
                raise self.fail("')' is missing")
            self.offset += 1
            return inner
        return self._test_primary(start)

    def _test_primary(self, start: int) -> Test:
        unary = _UNARY.match(self.text, self.offset, self.limit)
        if unary is not None:
            self.offset = unary.end()
            self.blanks()
            operand = self.word()
            if operand is None:
                raise self.fail("a test has no operand")
            return Test(start, operand.end, unary.group(), (operand,))
        left = self.word()
        if left is None or left.static == "]]":
            raise self.fail("a test is missing")
        self.blanks()
        binary = _BINARY.match(self.text, self.offset, self.limit)
        if binary is None:
            return Test(start, left.end, "-n", (left,))
        self.offset = binary.end()
        self.blanks()
        right = self._regular_expression() if binary.group() == "=~" else self.word()
        if right is None:
            raise self.fail("a test has no second operand")
        return Test(start, right.end, binary.group(), (left, right))

    def _regular_expression(self) -> Word:
        first = self.offset
        parts: list[Part] = []
        depth = 0
        while self.offset < self.limit:
            start = self.offset
            char = self.text[start]
            if char.isspace() and depth == 0:
                break
            if char in "'\"\\$`":
                self._word_part(parts, char, plain=False)
                continue
            if char == ")" and depth == 0:
                break
            depth += {"(": 1, ")": -1}.get(char, 0)
            self.offset += 1
            self.add(parts, start, self.offset, char, quoted=False)
        return Word(self.source.start(first), self.source.end(self.offset), tuple(parts))
