"""Programs that are read for what they may do, word by word, and not run: the common half of perl and ruby.

Texts, variables and calls are recognised, control flow is not: an assignment counts wherever it stands. So nothing
that is found is surer than medium; what goes through a function of the program or through one that is not known is low.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.source import PLACEHOLDER
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner_e2e.lint.languages.process import Process

__all__ = ["CLOSING", "Kind", "Scanner", "Token", "closing"]

_ROUNDS = 3
_META = re.compile(r"[\s$&*(){}\[\]'\";\\|?<>~`\n]")
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}

Kind = Literal["text", "raw", "command", "words", "variable", "environment", "name", "sign", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a program. *text* is the content of a string, the name of a variable, or the word itself."""

    kind: Kind
    text: str
    start: int
    end: int


class Scanner(ABC):
    """Reads one program. Subclasses know the words of their language."""

    functions_of_processes: frozenset[str]
    """Functions that take a command line, or an argument vector."""
    facts: frozenset[str]
    """Functions whose result holds nothing of what they are given."""
    carriers: frozenset[str]
    """Functions whose result holds what they are given."""
    printers: frozenset[str]

    def __init__(self, process: Process) -> None:
        self.process = process
        self.text = process.source.text
        self.variables: dict[str, Value] = {}
        self.handles: dict[str, Value] = {}
        self.environment = process.environment()
        self.reporting = False

    def run(self) -> None:
        """Reads the program until nothing new is known of its variables, then tells what it does."""
        statements = list(self.statements(self.tokens()))
        for _ in range(_ROUNDS):
            before = dict(self.variables)
            for statement in statements:
                self.process.tick()
                if len(statement) > 2 and statement[0].kind == "environment" and statement[1].text == "=":
                    self._set_environment(statement)
                else:
                    self.assignment(statement)
            if before == self.variables:
                break
        self.reporting = True
        for statement in statements:
            self.process.tick()
            self.effects(statement)

    # --- completed by the language

    @abstractmethod
    def tokens(self) -> list[Token]:
        """The words of the program, without comments."""

    @abstractmethod
    def assignment(self, statement: Sequence[Token]) -> None:
        """Notes the variables that a statement sets."""

    @abstractmethod
    def interpolated(self, token: Token) -> Value:
        """The text of a string in which variables are put in."""

    # --- shared

    def statements(self, tokens: Iterable[Token]) -> Iterable[list[Token]]:
        """The words between two ends of statements."""
        current: list[Token] = []
        for token in tokens:
            if token.kind == "end":
                if current:
                    yield current
                current = []
            else:
                current.append(token)
        if current:
            yield current

    def variable_of_environment(self, name: str) -> Value:
        """An environment variable."""
        return self.environment.get(name, UNKNOWN)

    def assign(self, name: str, value: Value, statement: Sequence[Token]) -> None:
        """One more value that a variable may have."""
        noted = self.process.step(value, statement[0].start, statement[-1].end, f"assigned to {name}")
        before = self.variables.get(name)
        self.variables[name] = noted if before is None else before | noted

    def _set_environment(self, statement: Sequence[Token]) -> None:
        name = statement[0].text
        value = self.value(statement[2:])
        noted = self.process.step(value, statement[0].start, statement[-1].end, f"put into the environment as {name}")
        self.environment[name] = noted
        self.process.set_variable(name, noted)

    def value(self, tokens: Sequence[Token]) -> Value:
        """What an expression may be: texts and variables put together; for anything else, what it mentions."""
        if not tokens:
            return EMPTY
        if tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
            return self.value(tokens[1:-1])
        parts = list(_split_at(tokens, (".", "+", "<<")))
        if all(len(part) == 1 and part[0].kind != "sign" for part in parts):
            total = EMPTY
            for part in parts:
                total = total + self.single(part[0])
            return total
        return self.mentioned(tokens)

    def single(self, token: Token) -> Value:
        """The value of one word."""
        if token.kind == "raw":
            return self.process.source.value_in(token.text)
        if token.kind == "text":
            return self.interpolated(token)
        if token.kind == "command":
            return self.shell(token)
        if token.kind == "environment":
            value = self.variable_of_environment(token.text)
            note = f"read from the environment variable {token.text}"
            return self.process.step(value, token.start, token.end, note).weakened(Confidence.MEDIUM)
        if token.kind == "variable":
            return self.variables.get(token.text, UNKNOWN)
        return self.process.source.value_in(token.text) if PLACEHOLDER.search(token.text) else UNKNOWN

    def mentioned(self, tokens: Sequence[Token]) -> Value:
        """Text made of everything that an expression names, without what only facts are told of."""
        found: list[Value] = []
        weak = False
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.kind == "name" and token.text in self.facts:
                behind = index + 1
                if behind < len(tokens) and tokens[behind].text == "(":
                    index = closing(tokens, behind) + 1
                else:
                    index += 2
                continue
            called = index + 1 < len(tokens) and tokens[index + 1].text == "("
            if token.kind == "name" and called and token.text not in self.carriers:
                weak = True
            value = self.single(token)
            if value.taints:
                found.append(value.opaque())
            index += 1
        if not found:
            return UNKNOWN
        return join([UNKNOWN, *found]).weakened(Confidence.LOW if weak else Confidence.MEDIUM)

    def effects(self, statement: Sequence[Token]) -> None:
        """Tells the process what a statement does."""
        for index, token in enumerate(statement):
            if token.kind == "command":
                self.shell(token)
            elif token.kind == "name" and token.text in self.functions_of_processes:
                self.command(statement, index)
            elif token.kind == "name" and token.text in self.printers:
                self.printed(statement, index)
            else:
                self.other_effect(statement, index)

    @abstractmethod
    def other_effect(self, statement: Sequence[Token], index: int) -> None:
        """What else the word at *index* may do."""

    def arguments(self, statement: Sequence[Token], index: int) -> list[list[Token]]:
        """The arguments of the call at *index*: in parentheses, or up to the end of the statement."""
        start = index + 1
        if start < len(statement) and statement[start].text == "(":
            inner = statement[start + 1 : closing(statement, start)]
        else:
            inner = _before_modifier(statement[start:])
        return [list(part) for part in _split_at(inner, (",", "=>")) if part]

    def command(self, statement: Sequence[Token], index: int) -> None:
        """A function that starts a program."""
        launch = Launch(start=statement[index].start, end=statement[-1].end)
        given: list[Argument] = []
        for part in self.arguments(statement, index):
            given += self.words(part)
        self.start(given, launch)

    def words(self, part: Sequence[Token]) -> list[Argument]:
        """The arguments that one expression gives."""
        if len(part) == 1 and part[0].kind == "words":
            return [Argument(Value.literal(word), part[0].start, part[0].end) for word in part[0].text.split()]
        value = self.value(part).weakened(Confidence.MEDIUM)
        return [Argument(value, part[0].start, part[-1].end, many=part[0].text.startswith("@"))]

    def start(self, given: list[Argument], launch: Launch) -> Value:
        """One text is read by a shell when it has anything for a shell in it; several are an argument vector."""
        if not self.reporting or not given:
            return UNKNOWN
        if len(given) > 1 or given[0].many:
            return self.process.start(given, launch)
        known = given[0].value.constant
        if known is not None and not _META.search(known.strip()):
            return self.process.start(given, launch)
        return self.process.start_shell(given[0], launch)

    def shell(self, token: Token) -> Value:
        """Backticks: a shell runs the text, and its output is the value."""
        program = Argument(self.interpolated(token).weakened(Confidence.MEDIUM), token.start, token.end)
        if not self.reporting:
            return UNKNOWN | program.value.opaque() if program.value.taints else UNKNOWN
        return self.process.start_shell(program, Launch(start=token.start, end=token.end, output="capture"))

    def printed(self, statement: Sequence[Token], index: int) -> None:
        """A function that writes to standard output, or to the file that is named first."""
        parts = self.arguments(statement, index)
        target: Value | None = None
        error = False
        if parts:
            first = parts[0]
            if first[0].text == "{" and len(first) > 2:
                first = [first[1], *first[3:]]
            if len(first) > 1 and first[1].kind != "sign" and first[0].text in (*self.handles, "STDERR", "STDOUT"):
                target, error = self.handles.get(first[0].text), first[0].text == "STDERR"
                parts[0] = first[1:]
        total = EMPTY
        for part in parts:
            total = total + self.value(part)
        self.write(total + Value.literal("\n"), target, (statement[index].start, statement[-1].end), error=error)

    def write(self, text: Value, target: Value | None, span: tuple[int, int], *, error: bool = False) -> None:
        """Writes to a file, or (None) to a standard stream."""
        start, end = span
        if target is not None:
            self.process.write_file(target, text, append=True, start=start, end=end)
        elif error:
            self.process.print_error(text, start, end)
        else:
            self.process.print(text, start, end)


def closing(tokens: Sequence[Token], index: int) -> int:
    """The index of the sign that closes the one at *index*."""
    opening, end = tokens[index].text, CLOSING[tokens[index].text]
    depth = 0
    for position in range(index, len(tokens)):
        if tokens[position].kind == "sign":
            if tokens[position].text == opening:
                depth += 1
            elif tokens[position].text == end:
                depth -= 1
                if depth == 0:
                    return position
    return len(tokens) - 1


def _split_at(tokens: Sequence[Token], signs: tuple[str, ...]) -> Iterable[Sequence[Token]]:
    """The parts of *tokens* between *signs* that are in no parentheses."""
    depth, start = 0, 0
    for index, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in CLOSING and token.text != "<":
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        elif token.text in signs and depth == 0:
            yield tokens[start:index]
            start = index + 1
    yield tokens[start:]


_MODIFIERS = frozenset({"if", "unless", "or", "and", "while", "until", "for", "foreach", "||", "&&", "do"})


def _before_modifier(tokens: Sequence[Token]) -> Sequence[Token]:
    """*tokens* up to ``or die``, ``if …`` and the like, or the end of the block around them."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.text in _MODIFIERS and token.kind in ("name", "sign"):
            return tokens[:index]
        if token.kind == "sign" and token.text in ("(", "[", "{"):
            depth += 1
        elif token.kind == "sign" and token.text in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                return tokens[:index]
    return tokens
