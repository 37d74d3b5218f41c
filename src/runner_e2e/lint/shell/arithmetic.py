"""Shell arithmetic: exact on known numbers, silent on the rest.

A number made from a text cannot carry the text, except that digits stay digits: such results keep the labels
with low confidence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.values import UNKNOWN, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Arithmetic", "UndecidedError"]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9A-Fa-f]+|\d+#[0-9A-Za-z@_]+|\d+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<index>\[[^]]*\])?"
    r"|(?P<operator>\*\*=?|<<=|>>=|\+\+|--|&&|\|\||[<>=!]=|<<|>>|[-+*/%&^|]=|[-+*/%&|^!~<>?:=(),]))"
)
_BINARY = {
    ",": 1,
    "||": 4,
    "&&": 5,
    "|": 6,
    "^": 7,
    "&": 8,
    "==": 9,
    "!=": 9,
    "<": 10,
    ">": 10,
    "<=": 10,
    ">=": 10,
    "<<": 11,
    ">>": 11,
    "+": 12,
    "-": 12,
    "*": 13,
    "/": 13,
    "%": 13,
    "**": 14,
}
_ASSIGNS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="})
_MASK = (1 << 64) - 1


class UndecidedError(Exception):
    """The expression depends on something that is not known. Stays inside the interpreter."""


def _wrapped(number: int) -> int:
    number &= _MASK
    return number - (1 << 64) if number >> 63 else number


class Arithmetic:
    """Evaluates one expression; variables are read and set through *read* and *write*."""

    def __init__(
        self, text: str, *, read: Callable[[str], Value | None], write: Callable[[str, Value], None], depth: int = 0
    ) -> None:
        self.tokens: list[tuple[str, str]] = []
        offset = 0
        text = text.strip()
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None or match.end() == offset:
                raise UndecidedError
            kind = match.lastgroup or ""
            if match["name"]:
                self.tokens.append(("name", match["name"] + (match["index"] or "")))
            else:
                self.tokens.append((kind, match[kind]))
            offset = match.end()
        self.at = 0
        self.read = read
        self.write = write
        self.depth = depth
        self.silent = 0  # in a branch that is not taken

    def result(self) -> int:
        """The value of the whole expression. Raises :class:`UndecidedError`."""
        if not self.tokens:
            return 0
        number = self._binary(1)
        if self.at < len(self.tokens):
            raise UndecidedError
        return number

    def _peek(self) -> str:
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "operator":
            return self.tokens[self.at][1]
        return ""

    def _take(self, operator: str) -> bool:
        if self._peek() == operator:
            self.at += 1
            return True
        return False

    def _binary(self, level: int) -> int:
        if level == 2:
            return self._assignment()
        if level == 3:
            return self._conditional()
        left = self._binary(2) if level == 1 else self._unary()
        while (operator := self._peek()) in _BINARY and _BINARY[operator] >= level:
            own = _BINARY[operator]
            self.at += 1
            if operator in ("&&", "||"):
                skip = (left != 0) == (operator == "||")
                self.silent += skip
                right = self._binary(own + 1)
                self.silent -= skip
                left = int(bool(left) and bool(right)) if operator == "&&" else int(bool(left) or bool(right))
            else:
                right = self._binary(2) if own == 1 else self._binary(own if operator == "**" else own + 1)
                left = self._apply(operator, left, right)
            if level == 1 and own != 1:
                continue
        return left

    def _assignment(self) -> int:
        if self.at + 1 < len(self.tokens) and self.tokens[self.at][0] == "name":
            kind, operator = self.tokens[self.at + 1]
            if kind == "operator" and operator in _ASSIGNS:
                name = self.tokens[self.at][1]
                self.at += 2
                right = self._assignment()
                value = right if operator == "=" else self._apply(operator[:-1], self._number(name), right)
                self._store(name, value)
                return value
        return self._conditional()

    def _conditional(self) -> int:
        condition = self._binary(4)
        if not self._take("?"):
            return condition
        self.silent += condition == 0
        yes = self._assignment()
        self.silent -= condition == 0
        if not self._take(":"):
            raise UndecidedError
        self.silent += condition != 0
        no = self._assignment()
        self.silent -= condition != 0
        return yes if condition else no

    def _unary(self) -> int:
        for operator, function in _PREFIX.items():
            if self._take(operator):
                return _wrapped(function(self._unary()))
        for operator, change in (("++", 1), ("--", -1)):
            if self._take(operator):
                name = self._name()
                value = self._number(name) + change
                self._store(name, value)
                return value
        return self._primary()

    def _name(self) -> str:
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "name":
            self.at += 1
            return self.tokens[self.at - 1][1]
        raise UndecidedError

    def _primary(self) -> int:
        if self._take("("):
            number = self._binary(1)
            if not self._take(")"):
                raise UndecidedError
            return number
        if self.at >= len(self.tokens):
            raise UndecidedError
        kind, text = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            return _literal(text)
        name = self._name()
        number = self._number(name)
        for operator, change in (("++", 1), ("--", -1)):
            if self._take(operator):
                self._store(name, number + change)
        return number

    def _number(self, name: str) -> int:
        value = self.read(name)
        if value is None:
            return 0
        text = value.constant
        if text is None or self.depth > 8:
            raise UndecidedError
        if re.fullmatch(r"\s*-?\d+\s*", text):
            return int(text) if not re.match(r"\s*-?0\d", text) else _literal(text.strip())
        return Arithmetic(text, read=self.read, write=self.write, depth=self.depth + 1).result()

    def _store(self, name: str, value: int) -> None:
        if not self.silent:
            self.write(name, Value.literal(str(_wrapped(value))))

    def _apply(self, operator: str, left: int, right: int) -> int:
        if operator in ("/", "%"):
            if right == 0:
                if self.silent:
                    return 0
                raise UndecidedError
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        if operator == "**":
            if not 0 <= right <= 64:
                raise UndecidedError
            return _wrapped(left**right)
        if operator in ("<<", ">>"):
            right &= 63
        return _wrapped(_OPERATIONS[operator](left, right))


_PREFIX: dict[str, Callable[[int], int]] = {
    "!": lambda x: int(not x),
    "~": lambda x: ~x,
    "-": lambda x: -x,
    "+": lambda x: x,
}
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    ",": lambda _, b: b,
}


def _literal(text: str) -> int:
    try:
        if "#" in text:
            base, digits = text.split("#", 1)
            return int(digits, int(base))
        if text[:2] in ("0x", "0X"):
            return int(text, 16)
        return int(text, 8) if len(text) > 1 and text.lstrip("-").startswith("0") else int(text)
    except ValueError:
        raise UndecidedError from None


def unknown_number(*parts: Value) -> Value:
    """A number calculated from *parts*, which are not known."""
    taints = [taint for part in parts for taint in part.taints]
    return Value.of(taints).weakened(Confidence.LOW) if taints else UNKNOWN


__all__ += ["unknown_number"]
