"""GitHub's expression language: lexer, parser, and where ``${{ … }}`` stands in a text.

Follows ``@actions/expressions`` in what it accepts, its limits included. All offsets count characters of the text
that was given, so that a place in an expression is a place in the scalar that holds it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = [
    "CONTEXTS",
    "FUNCTIONS",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "STATUS_FUNCTIONS",
    "Access",
    "Call",
    "Comparison",
    "Constant",
    "Context",
    "Embedded",
    "Expression",
    "ExpressionError",
    "Logical",
    "Not",
    "Star",
    "embedded",
    "number_of",
    "parse",
    "walk",
]

MAX_DEPTH = 50
"""Nesting that GitHub allows in one expression."""

MAX_LENGTH = 21_000
"""Characters that GitHub allows in one expression."""

CONTEXTS = frozenset(
    ("github", "env", "vars", "job", "jobs", "steps", "runner", "secrets", "strategy", "matrix", "needs", "inputs")
)
"""The contexts of GitHub Actions (lower case: names are compared without case)."""

_MANY = 1 << 30
FUNCTIONS: dict[str, tuple[int, int]] = {
    "case": (3, _MANY),
    "contains": (2, 2),
    "endswith": (2, 2),
    "format": (1, 255),
    "fromjson": (1, 1),
    "join": (1, 2),
    "startswith": (2, 2),
    "tojson": (1, 1),
    "hashfiles": (1, 255),
    "success": (0, 255),
    "failure": (0, 255),
    "always": (0, 0),
    "cancelled": (0, 0),
}
"""Function -> least and most arguments (lower case)."""

STATUS_FUNCTIONS = frozenset(("success", "failure", "always", "cancelled"))
"""Functions that only an ``if`` may call."""


class ExpressionError(Exception):
    """An expression that GitHub would refuse; ``start`` and ``end`` count from the start of the text given."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


@dataclass(frozen=True, slots=True)
class Constant:
    """``'text'``, ``12``, ``true``, ``null``, or the name after a dot."""

    start: int
    end: int
    value: str | float | bool | None


@dataclass(frozen=True, slots=True)
class Context:
    """A context by its name, in lower case."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Star:
    """``*`` as an index."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Access:
    """``object.name``, ``object[index]``, ``object.*``."""

    start: int
    end: int
    object: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """A function, its name in lower case, and its arguments."""

    start: int
    end: int
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """``!operand``."""

    start: int
    end: int
    operand: Expression


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left operator right`` with ``== != < <= > >=``."""

    start: int
    end: int
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical:
    """Operands joined by ``&&`` or ``||``: the value is one of the operands."""

    start: int
    end: int
    operator: str
    operands: tuple[Expression, ...]


Expression: TypeAlias = Constant | Context | Star | Access | Call | Not | Comparison | Logical


class _Token(NamedTuple):
    kind: str  # an operator, or "name", "number", "string", "literal", "end"
    text: str
    start: int
    end: int
    value: str | float | bool | None = None


_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_BOUNDARY = rf"()\[\],!><=&|{_SPACE}"
_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r\n]+)
    |(?P<string>'(?:[^']|'')*')
    |(?P<operator>==|!=|<=|>=|&&|\|\||[()\[\],!<>*])
    |(?P<number>[-+0-9][^{_BOUNDARY}]*)
    |(?P<dot>\.)
    |(?P<name>.[^{_BOUNDARY}.]*)""",
    re.VERBOSE | re.DOTALL,
)
_REST_OF_NUMBER = re.compile(rf"[^{_BOUNDARY}]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_KEYWORDS: dict[str, str | float | bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": math.nan,
    "Infinity": math.inf,
}
_JS_NUMBER = re.compile(r"[-+]?(?:Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)")
_JS_BASED = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))


def number_of(text: str) -> float:
    """The number a string is coerced to; NaN when it is none, 0 when it is empty."""
    text = text.strip(_JS_SPACE)
    if not text:
        return 0.0
    if _JS_NUMBER.fullmatch(text):
        return float(text.replace("Infinity", "inf"))
    if _JS_BASED.fullmatch(text):
        value = int(text, 0)
        return float(value) if value.bit_length() < 1024 else math.inf
    return math.nan


def _tokens(text: str, base: int) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    before = ""
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None
        kind = found.lastgroup or ""
        end = found.end()
        if kind == "space":
            position = end
            continue
        if kind == "dot" and before in {"name", "]", ")", "*"}:
            token = _Token(".", ".", base + position, base + end)
        elif kind in {"number", "dot"}:
            token, end = _number(text, position, base)
        elif kind == "string":
            token = _Token("string", found[0], base + position, base + end, found[0][1:-1].replace("''", "'"))
        elif kind == "operator":
            token = _Token(found[0], found[0], base + position, base + end)
        else:
            token = _word(found[0], base + position, before)
        tokens.append(token)
        before = token.kind
        position = end
    tokens.append(_Token("end", "", base + len(text), base + len(text)))
    return tokens


def _number(text: str, position: int, base: int) -> tuple[_Token, int]:
    found = _REST_OF_NUMBER.match(text, position + 1)
    end = found.end() if found else position + 1
    lexeme = text[position:end]
    value = number_of(lexeme)
    if math.isnan(value):
        raise ExpressionError(f"`{lexeme}` is not a number", base + position, base + end)
    return _Token("number", lexeme, base + position, base + end, value), end


def _word(lexeme: str, start: int, before: str) -> _Token:
    end = start + len(lexeme)
    if lexeme.startswith("'"):
        raise ExpressionError("the string is not closed", start, end)
    if not _NAME.fullmatch(lexeme):
        hint = "; strings stand in single quotes" if lexeme.startswith('"') else ""
        raise ExpressionError(f"unexpected symbol `{lexeme}`{hint}", start, end)
    if before != "." and lexeme in _KEYWORDS:
        return _Token("literal", lexeme, start, end, _KEYWORDS[lexeme])
    return _Token("name", lexeme, start, end)


class _Parser:
    def __init__(self, tokens: list[_Token], contexts: Collection[str], *, status: bool) -> None:
        self.tokens = tokens
        self.contexts = contexts
        self.status = status
        self.offset = 0
        self.depth = 0

    @property
    def peek(self) -> _Token:
        return self.tokens[self.offset]

    def take(self, *kinds: str) -> _Token | None:
        token = self.tokens[self.offset]
        if token.kind in kinds:
            self.offset += 1
            return token
        return None

    def need(self, kind: str) -> _Token:
        token = self.take(kind)
        if token is None:
            raise self.unexpected()
        return token

    def unexpected(self) -> ExpressionError:
        token = self.peek
        if token.kind == "end":
            return ExpressionError("the expression ends too early", token.start, token.end)
        return ExpressionError(f"unexpected symbol `{token.text}`", token.start, token.end)

    def deepen(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels", self.peek.start, self.peek.end)

    def whole(self) -> Expression:
        expression = self.expression()
        if self.peek.kind != "end":
            raise self.unexpected()
        return expression

    def expression(self) -> Expression:
        self.deepen()
        found = self.either()
        self.depth -= 1
        return found

    def either(self) -> Expression:
        first = self.both()
        if self.peek.kind != "||":
            return first
        self.deepen()
        operands = [first]
        while self.take("||"):
            operands.append(self.both())
        self.depth -= 1
        return Logical(first.start, operands[-1].end, "||", tuple(operands))

    def both(self) -> Expression:
        first = self.equality()
        if self.peek.kind != "&&":
            return first
        self.deepen()
        operands = [first]
        while self.take("&&"):
            operands.append(self.equality())
        self.depth -= 1
        return Logical(first.start, operands[-1].end, "&&", tuple(operands))

    def equality(self) -> Expression:
        left = self.relation()
        while operator := self.take("==", "!="):
            right = self.relation()
            left = Comparison(left.start, right.end, operator.kind, left, right)
        return left

    def relation(self) -> Expression:
        left = self.unary()
        while operator := self.take("<", "<=", ">", ">="):
            right = self.unary()
            left = Comparison(left.start, right.end, operator.kind, left, right)
        return left

    def unary(self) -> Expression:
        if operator := self.take("!"):
            self.deepen()
            operand = self.unary()
            self.depth -= 1
            return Not(operator.start, operand.end, operand)
        return self.postfix()

    def postfix(self) -> Expression:
        grouped = self.peek.kind == "("
        found = self.primary()
        if not grouped and not isinstance(found, Context | Call):
            return found
        deeper = 0
        while opening := self.take("[", "."):
            if opening.kind == "[":
                star = self.take("*")
                index: Expression = Star(star.start, star.end) if star else self.expression()
                end = self.need("]").end
            elif name := self.take("name"):
                index, end = Constant(name.start, name.end, name.text), name.end
            elif star := self.take("*"):
                index, end = Star(star.start, star.end), star.end
            else:
                raise self.unexpected()
            self.deepen()
            deeper += 1
            found = Access(found.start, end, found, index)
        self.depth -= deeper
        return found

    def primary(self) -> Expression:
        if token := self.take("literal", "number", "string"):
            return Constant(token.start, token.end, token.value)
        if self.take("("):
            inner = self.expression()
            self.need(")")
            return inner
        if name := self.take("name"):
            return self.call(name) if self.take("(") else self.context(name)
        raise self.unexpected()

    def context(self, name: _Token) -> Context:
        lower = name.text.lower()
        if lower not in self.contexts:
            known = "`" + "`, `".join(sorted(self.contexts)) + "`"
            raise ExpressionError(f"there is no context `{name.text}`; there are {known}", name.start, name.end)
        return Context(name.start, name.end, lower)

    def call(self, name: _Token) -> Call:
        arguments: list[Expression] = []
        while not (closing := self.take(")")):
            arguments.append(self.expression())
            if self.peek.kind != ")":
                self.need(",")
        function = name.text.lower()
        if function not in FUNCTIONS:
            raise ExpressionError(f"there is no function `{name.text}`", name.start, name.end)
        if function in STATUS_FUNCTIONS and not self.status:
            raise ExpressionError(f"only an `if` may call `{name.text}`", name.start, name.end)
        least, most = FUNCTIONS[function]
        if not least <= len(arguments) <= most:
            bounds = str(least) if least == most else f"{least} or more" if most > 2 else f"{least} to {most}"
            message = f"`{name.text}` takes {bounds} arguments, here are {len(arguments)}"
            raise ExpressionError(message, name.start, closing.end)
        if function == "case" and len(arguments) % 2 == 0:
            raise ExpressionError("`case` takes pairs and a default: an odd number", name.start, closing.end)
        return Call(name.start, closing.end, function, tuple(arguments))


# Most expressions are a context and names. The bound on names keeps them far from every limit.
_PATH = re.compile(r"[ \t\r\n]*([A-Za-z_][A-Za-z0-9_-]*)((?:\.[A-Za-z_][A-Za-z0-9_-]*){1,8})[ \t\r\n]*")


def _path(found: re.Match[str], start: int) -> Expression:
    begin = start + found.start(1)
    position = start + found.end(1)
    expression: Expression = Context(begin, position, found[1].lower())
    for name in found[2].split(".")[1:]:
        end = position + 1 + len(name)
        expression = Access(begin, end, expression, Constant(position + 1, end, name))
        position = end
    return expression


def parse(
    text: str,
    *,
    start: int = 0,
    end: int | None = None,
    contexts: Collection[str] = CONTEXTS,
    status: bool = True,
) -> Expression:
    """The expression in ``text[start:end]``.

    *contexts* are the names (lower case) that may be used; *status*: whether ``success()`` and its kind may be, as
    in an ``if``.

    Raises :class:`ExpressionError` for what GitHub would refuse; its offsets count from the start of *text*.
    """
    body = text[start:end]
    simple = _PATH.fullmatch(body)
    if simple is not None and simple[1].lower() in contexts:
        return _path(simple, start)
    if len(body) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH:,} characters", start, start + len(body))
    tokens = _tokens(body, start)
    if len(tokens) == 1:
        raise ExpressionError("an expression is missing", start, start + len(body))
    return _Parser(tokens, contexts, status=status).whole()


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """``${{ … }}`` at ``[start, end)`` of a text; the expression between is ``[inner_start, inner_end)``."""

    start: int
    end: int
    inner_start: int
    inner_end: int


_OPENING = "${{"
# A string may hold `}}`; outside of strings the first `}}` closes.
_UNTIL_CLOSED = re.compile(r"(?:'(?:[^'])*'|[^'}]|\}(?!\}))*\}\}")


def embedded(text: str) -> list[Embedded]:
    """Every ``${{ … }}`` of *text*, in order.

    Raises :class:`ExpressionError` for one that never closes.
    """
    found: list[Embedded] = []
    position = text.find(_OPENING)
    while position >= 0:
        inner = position + len(_OPENING)
        closed = _UNTIL_CLOSED.match(text, inner)
        if closed is None:
            line_end = text.find("\n", position)
            raise ExpressionError("`${{` is not closed by `}}`", position, line_end if line_end > 0 else len(text))
        found.append(Embedded(start=position, end=closed.end(), inner_start=inner, inner_end=closed.end() - 2))
        position = text.find(_OPENING, closed.end())
    return found


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it, outer before inner."""
    yield expression
    inner: tuple[Expression, ...] = ()
    if isinstance(expression, Access):
        inner = (expression.object, expression.index)
    elif isinstance(expression, Call):
        inner = expression.arguments
    elif isinstance(expression, Not):
        inner = (expression.operand,)
    elif isinstance(expression, Comparison):
        inner = (expression.left, expression.right)
    elif isinstance(expression, Logical):
        inner = expression.operands
    for each in inner:
        yield from walk(each)
