"""Reading PowerShell, the middle: words of commands, and expressions with their operators."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.powershell.syntax import (
    ArrayOf,
    Binary,
    Block,
    Cast,
    Expandable,
    Expression,
    Index,
    Member,
    Pair,
    Statement,
    Sub,
    TableOf,
    Text,
    TypeName,
    Unary,
    Variable,
)
from runner_e2e.lint.languages.powershell.words import SyntaxProblem, WordReader

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DASHED", "MAX_DEPTH", "TYPE", "ExpressionReader"]

MAX_DEPTH = 60
"""Brackets within brackets that are followed."""

TYPE = re.compile(r"\[(?P<name>[A-Za-z_][\w.+`]*(?:\[[\w.,+\[\] ]*\])*)\]")
DASHED = re.compile(r"-(?P<name>[A-Za-z]+)(?![\w-])")
_NUMBER = re.compile(r"(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?:[kmgtp]b|[ldu]l?)?(?![\w.-])", re.IGNORECASE)
_WORD_END = frozenset(" \t\r\n;|&(){},'\"<>`$\u00a0")
_BINARY = frozenset(
    (
        *("eq", "ne", "gt", "ge", "lt", "le", "like", "notlike", "match", "notmatch", "contains", "notcontains"),
        *("in", "notin", "replace", "split", "join", "f", "is", "isnot", "as", "and", "or", "xor", "band", "bor"),
        *("bxor", "shl", "shr"),
    )
)
_UNARY = frozenset({"not", "bnot", "split", "join"})
_CASES = re.compile(r"[ci]?")
_LOWEST = frozenset({"and", "or", "xor"})


class ExpressionReader(WordReader):
    """Reads words and expressions; :class:`~.parser.Parser` adds statements."""

    def statement(self) -> Statement:
        """One statement. Given by the parser."""
        raise NotImplementedError

    def block(self) -> Block:
        """``{ … }``. Given by the parser."""
        raise NotImplementedError

    # --- words

    def argument(self) -> Expression:
        """One word: a string, a variable with members, a bracket, or text with variables in it."""
        start = self.offset
        parts: list[Expression] = []
        while True:
            part = self._word_part(first=not parts)
            if part is None:
                break
            parts.append(part)
        if not parts:
            raise SyntaxProblem(start, "a word is expected")
        if len(parts) == 1:
            return parts[0]
        return Expandable(start, self.offset, tuple(parts), bare=True)

    def _word_part(self, *, first: bool) -> Expression | None:
        char = self.peek()
        if char in {"'", "\u2018", "\u2019"}:
            return self.single_quoted()
        if char in {'"', "\u201c", "\u201d"}:
            return self.double_quoted()
        if char == "@" and first:
            here = self.here_string()
            if here is not None:
                return here
            if self.peek(2) in {"@(", "@{"}:
                return self.primary()
            splat = self.variable()
            if splat is not None:
                return splat
        if char == "$":
            if self.peek(2) == "$(":
                return self.sub_expression()
            variable = self.variable()
            if variable is not None:
                return self.members(variable) if first else variable
        if first and char in {"(", "{"}:
            return self.members(self.primary())
        return self._bare(first=first)

    def _bare(self, *, first: bool) -> Expression | None:
        start = self.offset
        known: list[str] = []
        while self.offset < len(self.text):
            char = self.text[self.offset]
            if char == "`":
                if self.peek(2) in {"`\n", "`\r"}:
                    break
                known.append(self.escape())
            elif (
                (char == "$" and known == [] and self.variable_next())
                or (char in _WORD_END and not (char == "$" and not self.variable_next()))
                or (char == "#" and not known and first)
            ):
                break
            else:
                known.append(char)
                self.offset += 1
        return Text(start, self.offset, "".join(known), bare=True) if self.offset > start else None

    def variable_next(self) -> bool:
        """Whether a variable or ``$(`` is next."""
        return re.compile(r"\$[\w({?^$:]").match(self.text, self.offset) is not None

    # --- expressions

    def expression(self, *, commas: bool = True) -> Expression:
        """An expression with all its operators."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SyntaxProblem(self.offset, "nested too deeply to follow")
        left = self._binary(commas=commas)
        self.blanks()
        if self.peek() == "?" and self.peek(2) not in {"?.", "?["} and self.peek(2) != "??":
            self.offset += 1
            self.separators()
            yes = self.expression(commas=commas)
            self.separators()
            self.expect(":")
            self.separators()
            no = self.expression(commas=commas)
            left = Binary(left.start, self.offset, "?", left, ArrayOf(yes.start, no.end, (yes, no)))
        self.depth -= 1
        return left

    def _binary(self, *, commas: bool) -> Expression:
        left = self._operand(commas=commas)
        while True:
            self.blanks()
            operator = self._operator()
            if operator is None:
                return left
            self.separators()
            right = self._operand(commas=commas) if operator not in _LOWEST else self._joined(commas=commas)
            left = Binary(left.start, self.offset, operator, left, right)

    def _joined(self, *, commas: bool) -> Expression:
        """The right side of ``-and`` and the like: everything that binds more strongly."""
        left = self._operand(commas=commas)
        while True:
            self.blanks()
            before = self.offset
            operator = self._operator()
            if operator is None or operator in _LOWEST:
                self.offset = before
                return left
            self.separators()
            left = Binary(left.start, self.offset, operator, left, self._operand(commas=commas))

    def _operator(self) -> str | None:
        match = DASHED.match(self.text, self.offset)
        if match is not None:
            name = match["name"].lower()
            for plain in (name, name[1:] if name[0] in "ci" else name):
                if plain in _BINARY:
                    self.offset = match.end()
                    return plain
            return None
        if self.peek(2) == "??" and self.peek(3) != "??=":
            self.offset += 2
            return "??"
        if self.peek(2) == "..":
            self.offset += 2
            return ".."
        char = self.peek()
        if char and char in "+-*/%" and self.peek(2) not in {"+=", "-=", "*=", "/=", "%=", "++", "--"}:
            self.offset += 1
            return char
        return None

    def _operand(self, *, commas: bool) -> Expression:
        first = self.unary()
        if not commas:
            return first
        items = [first]
        while True:
            here = self.offset
            self.blanks()
            if not self.take(","):
                self.offset = here
                break
            self.separators()
            items.append(self.unary())
        return first if len(items) == 1 else ArrayOf(first.start, self.offset, tuple(items))

    def unary(self) -> Expression:
        """An operand with the operators before it."""
        self.blanks()
        start = self.offset
        match = DASHED.match(self.text, start)
        if match is not None and match["name"].lower() in _UNARY:
            self.offset = match.end()
            self.blanks()
            operand = self.unary()
            return Unary(start, self.offset, match["name"].lower(), operand)
        if self.peek() in {"!", ","} or (self.peek() in {"-", "+"} and self.peek(2) not in {"--", "++"}):
            operator = self.peek()
            self.offset += 1
            operand = self._deeper(self.unary)
            return Unary(start, self.offset, "not" if operator == "!" else operator, operand)
        if self.peek(2) in {"++", "--"}:
            self.offset += 2
            operand = self.primary()
            return Unary(start, self.offset, "++", operand)
        type_name = TYPE.match(self.text, start)
        if type_name is not None and self.text[type_name.end() : type_name.end() + 2] != "::":
            self.offset = type_name.end()
            self.blanks()
            if self.starts_expression():
                operand = self._deeper(self.unary)
                return Cast(start, self.offset, type_name["name"].lower(), operand)
            return TypeName(start, self.offset, type_name["name"])
        found = self.primary()
        if self.peek(2) in {"++", "--"}:
            self.offset += 2
            return Unary(start, self.offset, "++", found)
        return found

    def _deeper(self, read: Callable[[], Expression]) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SyntaxProblem(self.offset, "nested too deeply to follow")
        found = read()
        self.depth -= 1
        return found

    def primary(self) -> Expression:
        """A literal, a variable or something in brackets, with its members."""
        return self.members(self._atom())

    def _atom(self) -> Expression:
        start = self.offset
        char = self.peek()
        if char in {"'", "\u2018", "\u2019"}:
            return self.single_quoted()
        if char in {'"', "\u201c", "\u201d"}:
            return self.double_quoted()
        if self.peek(2) == "$(":
            return self.sub_expression()
        if self.peek(2) == "@(":
            self.offset += 2
            body = self.statements(until=")")
            self.expect(")")
            return Sub(start, self.offset, tuple(body), listed=True)
        if self.peek(2) == "@{":
            return self._table()
        if char == "(":
            self.offset += 1
            body = self.statements(until=")")
            self.expect(")")
            return Sub(start, self.offset, tuple(body))
        if char == "{":
            return self.block()
        here = self.here_string() if char == "@" else None
        if here is not None:
            return here
        variable = self.variable()
        if variable is not None:
            return variable
        return self._number_or_type()

    def _number_or_type(self) -> Expression:
        start = self.offset
        number = _NUMBER.match(self.text, start)
        if number is not None:
            self.offset = number.end()
            return Text(start, self.offset, number[0], bare=True)
        type_name = TYPE.match(self.text, start)
        if type_name is not None:
            self.offset = type_name.end()
            return TypeName(start, self.offset, type_name["name"])
        raise SyntaxProblem(start, "an expression is expected")

    def _table(self) -> Expression:
        start = self.offset
        self.offset += 2
        pairs: list[Pair] = []
        while True:
            self.separators()
            if self.take("}"):
                return TableOf(start, self.offset, tuple(pairs))
            begin = self.offset
            match = re.compile(r"[\w.-]+(?=\s*=)").match(self.text, begin)
            if match is not None:
                self.offset = match.end()
                key: Expression = Text(begin, self.offset, match[0], bare=True)
            else:
                key = self.unary()
            self.separators()
            self.expect("=")
            self.separators()
            value = self.statement()
            pairs.append(Pair(begin, self.offset, key, value))

    def members(self, owner: Expression) -> Expression:
        """See :meth:`WordReader.members`."""
        while True:
            start = self.offset
            if self.peek(2) == "::" or (self.peek() == "." and re.compile(r"\.[\w$'\"(]").match(self.text, start)):
                static = self.peek() == ":"
                self.offset += 2 if static else 1
                owner = self._member(owner, static=static)
            elif self.peek(2) in {"?.", "?["} and isinstance(owner, Variable | Member | Index):
                self.offset += 1
            elif self.peek() == "[":
                self.offset += 1
                self.separators()
                index = self._deeper(self.expression)
                self.separators()
                self.expect("]")
                owner = Index(owner.start, self.offset, owner, index)
            else:
                return owner

    def _member(self, owner: Expression, *, static: bool) -> Expression:
        start = self.offset
        match = re.compile(r"\w+").match(self.text, start)
        if match is not None:
            self.offset = match.end()
            name: Expression = Text(start, self.offset, match[0], bare=True)
        else:
            name = self._atom()
        arguments: tuple[Expression, ...] | None = None
        if self.take("("):
            found: list[Expression] = []
            while True:
                self.separators()
                if self.take(")"):
                    break
                found.append(self.expression(commas=False))
                self.separators()
                if not self.take(",") and self.peek() != ")":
                    raise SyntaxProblem(self.offset, "a ')' is missing")
            arguments = tuple(found)
        return Member(owner.start, self.offset, owner, name, arguments, static)

    def starts_expression(self) -> bool:
        """Whether an expression is next, and no command."""
        char = self.peek()
        if char in {"$", "(", "'", '"', "{", "!", "\u2018", "\u2019", "\u201c", "\u201d"} or self.peek(2) in {
            "@(",
            "@{",
            "@'",
            '@"',
            "++",
            "--",
        }:
            return True
        if char == "[":
            return TYPE.match(self.text, self.offset) is not None
        if char in {"-", "+"}:
            match = DASHED.match(self.text, self.offset)
            return (match is not None and match["name"].lower() in _UNARY) or self.text[
                self.offset + 1 : self.offset + 2
            ] in {"$", "("}
        return _NUMBER.match(self.text, self.offset) is not None
