"""What a program of ``jq`` lets through: its input, its environment, its arguments, or only facts about them.

The program is parsed and run on *flows*: for each filter the names of the sources whose text can be in its results. A
length, a type and a comparison have none. A program that uses what is not known here has no answer.
Source: https://jqlang.org/manual.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.package_data import load_table
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.state import exact
from runner_e2e.lint.values import Hole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.shell.state import Field
    from runner_e2e.lint.values import Text

    Filter: TypeAlias = "Callable[[Flow, Mapping[str, Flow]], Flow]"

__all__ = ["ARGUMENTS", "ENCODED", "ENVIRONMENT", "INPUT", "TOLD", "CommandLine", "Flow", "flow_of", "read_command"]

Flow: TypeAlias = "frozenset[str]"
"""Sources: :data:`INPUT`, ``$name`` of an argument, ``env.NAME``, :data:`ENVIRONMENT`, :data:`ARGUMENTS`, and ``#1``
for the second hole of the program; behind :data:`ENCODED` where the text is encoded, and behind :data:`TOLD` where it
goes to standard error."""

INPUT = "."
ENVIRONMENT = "env"
ARGUMENTS = "$ARGS"
ENCODED = "~"
TOLD = "!"

NOTHING: Flow = frozenset()

_FIRST_HOLE = 0xE000
_MAX_DEPTH = 60


@cache
def _functions() -> Mapping[str, str]:
    """What each function gives.

    ``facts``: numbers, names of types, true or false, or nothing. ``select``: a part of its input, of which the
    arguments only say which. ``apply``: what its only argument makes. ``carry``: of its input and its arguments.
    """
    return {name: kind for kind, names in load_table("jq").items() for name in names}


_FAILS = frozenset({"error", "halt_error"})
_TELLS = frozenset({"debug", "stderr"})
_ENCODES = frozenset({"@base64", "@base32", "@base64d", "@base32d"})

_SPACE = re.compile(r"(?:\s|#[^\n]*)+")
_TOKEN = re.compile(
    r"(?P<format>@[a-z0-9]+)|(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<variable>\$[A-Za-z_]\w*)"
    r"|(?P<field>\.[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*(?:::\w+)*)"
    r"|(?P<sign>\?//|\|=|//=|//|==|!=|<=|>=|\+=|-=|\*=|/=|%=|\.\.|[.|,<>=+\-*/%()\[\]{}:;?\"])"
)
_LITERAL = re.compile(r"[^\"\\]+")
_ASSIGNS = ("=", "|=", "+=", "-=", "*=", "/=", "%=", "//=")
_COMPARES = ("==", "!=", "<=", ">=", "<", ">")
_STOPS = frozenset({"then", "else", "elif", "end", "as", "and", "or", "catch", "reduce", "foreach", "def", "label"})


class _UnknownError(Exception):
    """The program is not one that is understood here. Stays in this module."""


def flow_of(program: Text, arguments: Mapping[str, Flow], given: Flow) -> Flow | None:
    """The sources of what *program* gives for an input of *given*; None when it is not understood.

    *arguments*: what ``$name`` stands for, where that is known.
    """
    marks = iter(range(_FIRST_HOLE, 0xF8FF))
    text = "".join(chr(next(marks)) if isinstance(piece, Hole) else piece for piece in program)
    try:
        parser = _Parser(text)
        whole = parser.program()
        return whole(given, dict(arguments))
    except (_UnknownError, RecursionError):
        return None


def _given(given: Flow, _known: Mapping[str, Flow]) -> Flow:
    return given


def _constant(flow: Flow = NOTHING) -> Filter:
    return lambda _given, _known: flow


def _encoded(flow: Flow) -> Flow:
    return frozenset(ENCODED + one.removeprefix(ENCODED) for one in flow)


class _Parser:
    """A parser of recursive descent, which makes of each filter a function from flows to flows."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.depth = 0
        self.word = ""
        self.kind = ""
        self.start = 0
        self._next()

    def _next(self) -> str:
        before = self.word
        space = _SPACE.match(self.text, self.offset)
        self.start = space.end() if space else self.offset
        match = _TOKEN.match(self.text, self.start)
        if match is None and self.start < len(self.text):
            raise _UnknownError
        self.word, self.kind = (match[0], match.lastgroup or "") if match else ("", "end")
        self.offset = match.end() if match else self.start
        return before

    def _take(self, *tokens: str) -> bool:
        if self.word not in tokens or self.kind == "end":
            return False
        self._next()
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise _UnknownError

    def program(self) -> Filter:
        """The whole text; an empty one is ``.``."""
        if self.kind == "end":
            return _given
        whole = self._pipe()
        if self.kind != "end":
            raise _UnknownError
        return whole

    def _pipe(self) -> Filter:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _UnknownError
        left = self._comma()
        if self._take("|"):
            left = _after(left, self._pipe())
        self.depth -= 1
        return left

    def _binding(self, source: Filter) -> Filter:
        names = self._pattern()
        self._expect("|")
        body = self._pipe()
        return lambda given, known: body(given, {**known, **dict.fromkeys(names, source(given, known))})

    def _pattern(self) -> list[str]:
        """The variables of a destructuring: each may get any part."""
        names: list[str] = []
        depth = 0
        while True:
            if self.kind == "variable":
                names.append(self.word)
            elif self.word in ("[", "{"):
                depth += 1
            elif self.word in ("]", "}"):
                depth -= 1
            elif not depth or (self.word not in (",", ":") and self.kind != "name"):
                raise _UnknownError
            self._next()
            if not depth and not self._take("?//"):
                return names

    def _comma(self) -> Filter:
        return self._both(self._alternative, (",",))

    def _alternative(self) -> Filter:
        left = self._assignment()
        if self._take("//", "?//"):
            return _either(left, self._alternative())
        return left

    def _assignment(self) -> Filter:
        left = self._logic()
        if self.word in _ASSIGNS:
            self._next()
            right = self._alternative()
            return lambda given, known: given | left(given, known) | right(given, known)
        return left

    def _logic(self) -> Filter:
        left = self._comparison()
        while self._take("or", "and"):
            self._comparison()
            left = _constant()
        return left

    def _comparison(self) -> Filter:
        left = self._both(self._product, ("+", "-"))
        if self._take(*_COMPARES):
            self._both(self._product, ("+", "-"))
            return _constant()
        return left

    def _product(self) -> Filter:
        return self._both(self._postfix, ("*", "/", "%"))

    def _both(self, operand: Callable[[], Filter], operators: tuple[str, ...]) -> Filter:
        left = operand()
        while self._take(*operators):
            left = _either(left, operand())
        return left

    # --- terms

    def _postfix(self, *, binds: bool = True) -> Filter:
        """A term with what stands behind it; *binds*: ``as $name | …`` too."""
        term = self._term()
        while True:
            if self.word == "[":
                self._next()
                self._index()
            elif self.kind == "field":
                term = _member(term, self._next()[1:])
            elif self.word == "." and self.text[self.start + 1 : self.start + 2] in ('"', "["):
                self._next()
                if self.word == '"':
                    self._string("")
            elif binds and self._take("as"):
                return self._binding(term)
            elif not self._take("?"):
                return term

    def _index(self) -> None:
        """``[1]``, ``[2:5]``, ``[]``: what is taken is a part of the same."""
        while not self._take("]"):
            if not self._take(":"):
                self._pipe()

    def _term(self) -> Filter:
        kind, word = self.kind, self.word
        if word == '"':
            return self._string("")
        if kind == "name":
            return self._named(word)
        self._next()
        if kind == "number":
            return _constant()
        if kind == "format":
            return self._string(word) if self.word == '"' else _formatted(word)
        if kind == "variable":
            return _variable(word)
        if kind == "field" or word in (".", ".."):
            if word == "." and self.word == '"':
                self._string("")
            return _given
        return self._postfix() if word == "-" else self._group(word)

    def _group(self, opened: str) -> Filter:
        if opened == "{":
            return self._object()
        close = {"(": ")", "[": "]"}.get(opened)
        if close is None:
            raise _UnknownError
        if close == "]" and self._take(close):
            return _constant()
        inner = self._pipe()
        self._expect(close)
        return inner

    def _string(self, form: str) -> Filter:
        """A text, from its quote on: the program's own characters, and what is put in."""
        parts: list[Filter] = []
        self.offset = self.start + 1
        while self.offset < len(self.text):
            character = self.text[self.offset]
            if character == '"':
                self.offset += 1
                self._next()
                return _all(parts, form)
            if self.text.startswith("\\(", self.offset):
                self.offset += 2
                self._next()
                parts.append(self._pipe())
                if self.word != ")":
                    raise _UnknownError
                self.offset = self.start + 1
            elif character == "\\":
                self.offset += 2
            else:
                match = _LITERAL.match(self.text, self.offset)
                assert match is not None
                holes = [f"#{ord(one) - _FIRST_HOLE}" for one in match[0] if _FIRST_HOLE <= ord(one) < 0xF8FF]
                parts.append(_constant(frozenset(holes)))
                self.offset = match.end()
        raise _UnknownError

    def _object(self) -> Filter:
        parts: list[Filter] = []
        while not self._take("}"):
            kind, word = self.kind, self.word
            if word == "(":
                self._next()
                parts.append(self._pipe())
                self._expect(")")
            elif word == '"':
                parts.append(self._string(""))
            elif kind in ("name", "number", "variable", "format"):
                self._next()
            else:
                raise _UnknownError
            if self._take(":"):
                parts.append(self._value())
            elif kind == "variable":
                parts.append(_variable(word))
            else:
                parts.append(_given)
            if self.word != "}":
                self._expect(",")
        return _all(parts, "")

    def _value(self) -> Filter:
        """The value of an entry: terms joined by ``|``, without commas."""
        left = self._alternative()
        while self._take("|"):
            first, second = left, self._alternative()
            left = _after(first, second)
        return left

    def _named(self, name: str) -> Filter:
        self._next()
        if name == "if":
            return self._condition()
        if name in ("reduce", "foreach"):
            return self._fold()
        if name == "try":
            tried = self._postfix()
            return _caught(tried, self._postfix() if self._take("catch") else _constant())
        if name in _STOPS:
            raise _UnknownError
        arguments = self._arguments(name)
        if name in ("env", "strenv") and arguments is not None and isinstance(arguments, str):
            return _constant(frozenset({f"{ENVIRONMENT}.{arguments}"}))
        if name == "env":
            return _constant(frozenset({ENVIRONMENT}))
        if name in ("input", "inputs"):
            return _constant(frozenset({INPUT}))
        if isinstance(arguments, str):
            raise _UnknownError
        return _called(name, arguments or [])

    def _arguments(self, name: str) -> list[Filter] | str | None:
        """The arguments of a call; of ``env(NAME)``, which ``yq`` has, the name."""
        if not self._take("("):
            return None
        if name in ("env", "strenv"):
            variable = self._next()
            self._expect(")")
            return variable
        arguments = [self._pipe()]
        while self._take(";"):
            arguments.append(self._pipe())
        self._expect(")")
        return arguments

    def _condition(self) -> Filter:
        results: list[Filter] = []
        self._pipe()
        self._expect("then")
        results.append(self._pipe())
        while self._take("elif"):
            self._pipe()
            self._expect("then")
            results.append(self._pipe())
        if self._take("else"):
            results.append(self._pipe())
        else:
            results.append(_given)
        self._expect("end")
        return _all(results, "")

    def _fold(self) -> Filter:
        source = self._postfix(binds=False)
        self._expect("as")
        names = self._pattern()
        self._expect("(")
        first = self._pipe()
        self._expect(";")
        updates = [self._pipe()]
        while self._take(";"):
            updates.append(self._pipe())
        self._expect(")")

        def run(given: Flow, known: Mapping[str, Flow]) -> Flow:
            inner = {**known, **dict.fromkeys(names, source(given, known))}
            total = first(given, known)
            for _ in range(len(known) + 3):
                total = total.union(*(update(total, inner) for update in updates))
            return total

        return run


def _either(left: Filter, right: Filter) -> Filter:
    return lambda given, known: left(given, known) | right(given, known)


def _after(first: Filter, second: Filter) -> Filter:
    """A pipe: what went to standard error stays there."""

    def run(given: Flow, known: Mapping[str, Flow]) -> Flow:
        found = first(given, known)
        told = frozenset(one for one in found if one.startswith(TOLD))
        return second(found - told, known) | told

    return run


def _all(parts: list[Filter], form: str) -> Filter:
    def run(given: Flow, known: Mapping[str, Flow]) -> Flow:
        found = NOTHING.union(*(part(given, known) for part in parts))
        return _encoded(found) if form in _ENCODES else found

    return run


def _formatted(form: str) -> Filter:
    return lambda given, _known: _encoded(given) if form in _ENCODES else given


def _variable(name: str) -> Filter:
    if name == "$ENV":
        return _constant(frozenset({ENVIRONMENT}))
    if name == "$__loc__":
        return _constant()
    return lambda _given, known: known.get(name, frozenset({ARGUMENTS}))


def _member(term: Filter, name: str) -> Filter:
    """``$ENV.NAME`` and ``env.NAME``: one variable of all."""

    def run(given: Flow, known: Mapping[str, Flow]) -> Flow:
        found = term(given, known)
        return frozenset({f"{ENVIRONMENT}.{name}"}) if found == {ENVIRONMENT} else found

    return run


def _called(name: str, arguments: list[Filter]) -> Filter:
    kind = "tells" if name in _FAILS | _TELLS else _functions().get(name)
    if kind is None:
        raise _UnknownError
    if kind == "facts":
        return _constant()

    def run(given: Flow, known: Mapping[str, Flow]) -> Flow:
        made = NOTHING.union(*(argument(given, known) for argument in arguments))
        if name in _FAILS:
            return _told(made or given)
        if name in _TELLS:
            return given | _told(made or given)
        if kind == "select":
            return given
        if kind == "apply":
            return made if arguments else given
        return made if name in ("limit", "skip", "nth") and len(arguments) > 1 else given | made

    return run


def _told(flow: Flow) -> Flow:
    return frozenset(TOLD + one.removeprefix(TOLD) for one in flow)


def _caught(tried: Filter, handler: Filter) -> Filter:
    """``try``: a message of an error may have anything of what was tried in it."""

    def run(given: Flow, known: Mapping[str, Flow]) -> Flow:
        found = tried(given, known)
        return frozenset(one for one in found if not one.startswith(TOLD)) | handler(
            given | frozenset(one.removeprefix(TOLD) for one in found), known
        )

    return run


# --- the command line

_TWO_VALUES = {"--arg": "text", "--argjson": "text", "--slurpfile": "file", "--rawfile": "file", "--argfile": "file"}
_ONE_VALUE = {
    "jq": frozenset({"--indent", "-L", "--library-path"}),
    "yq": frozenset({"-o", "--output-format", "-p", "--input-format", "-I", "--indent", "--front-matter"}),
}
_SUBCOMMANDS = frozenset({"e", "eval", "ea", "eval-all"})


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """What a call of ``jq`` or ``yq`` says. *named*: ``$name`` to the text, or to the file that has it."""

    program: Field
    from_file: bool = False
    named: tuple[tuple[str, str, Field], ...] = ()
    files: tuple[Field, ...] = ()
    operands: tuple[Field, ...] = ()
    null_input: bool = False
    in_place: bool = False
    """Whether the result takes the place of what the file holds."""


def read_command(name: str, fields: tuple[Field, ...]) -> CommandLine | None:
    """The command line whose words after the name are *fields*; None when it cannot be told."""
    if not exact(fields):
        return None
    dialect = "yq" if name == "yq" else "jq"
    flags: set[str] = set()
    named: list[tuple[str, str, Field]] = []
    words: list[Field] = []
    operands: list[Field] = []
    rest = iter(fields)
    taken = words
    for field in rest:
        word = field.value.constant
        if word is None or not word.startswith("-") or word == "-":
            (taken if words else words).append(field)
        elif word in _TWO_VALUES:
            variable, value = next(rest, None), next(rest, None)
            if variable is None or value is None or variable.value.constant is None:
                return None
            named.append((f"${variable.value.constant}", _TWO_VALUES[word], value))
        elif word in _ONE_VALUE[dialect]:
            next(rest, None)
        elif word in ("--args", "--jsonargs"):
            taken = operands
        else:
            flags.update([word] if word.startswith("--") else word[1:])
    if dialect == "yq" and words and words[0].value.constant in _SUBCOMMANDS:
        del words[0]
    if not words:
        return None
    return CommandLine(
        program=words[0],
        from_file=dialect == "jq" and bool(flags & {"f", "--from-file"}),
        named=tuple(named),
        files=tuple(words[1:]),
        operands=tuple(operands),
        null_input=bool(flags & {"n", "--null-input"}),
        in_place=dialect == "yq" and bool(flags & {"i", "--inplace", "--in-place"}),
    )
