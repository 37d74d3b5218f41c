"""The intermediate form of a shell program: what the parser makes and the interpreter walks.

Words are kept as the parts the shell expands; quoting survives only where it matters (``quoted`` stops field
splitting and globbing). Every node has the character offsets ``start`` and ``end`` in the text of the origin.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "OUT_OF_TIME",
    "AndOr",
    "ArithmeticCommand",
    "ArithmeticFor",
    "ArithmeticPart",
    "Assignment",
    "Background",
    "Case",
    "CaseItem",
    "Command",
    "CommandPart",
    "Conditional",
    "Coprocess",
    "Element",
    "ExhaustedError",
    "For",
    "Foreign",
    "FunctionDefinition",
    "Group",
    "If",
    "Inserted",
    "Literal",
    "Loop",
    "Parameter",
    "Part",
    "Pipeline",
    "ProcessPart",
    "Redirected",
    "Redirection",
    "Select",
    "Sequence",
    "ShellSyntaxError",
    "Simple",
    "Subshell",
    "Test",
    "Word",
    "statements",
]


OUT_OF_TIME = "the time for this file is used up"


class ExhaustedError(Exception):
    """The budget of steps or time is used up. Never leaves ``lint.shell``: it becomes a finding."""


class ShellSyntaxError(Exception):
    """The text is not a program of the dialect. Never leaves ``lint.shell``: it becomes a finding.

    *offset* is a character offset in the text of the source.
    """

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


@dataclass(frozen=True, slots=True)
class Literal:
    """Known characters, escapes already taken away."""

    start: int
    end: int
    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Inserted:
    """Text that was put into the script before the shell read it (``${{ … }}``)."""

    start: int
    end: int
    value: Value
    quoted: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """``$name`` and ``${name…}``; *operator* is the text after the name, *arguments* the words it takes."""

    start: int
    end: int
    name: str
    quoted: bool
    subscript: Word | None = None
    operator: str = ""
    arguments: tuple[Word, ...] = ()
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class CommandPart:
    """``$(…)`` or backticks."""

    start: int
    end: int
    body: Sequence
    quoted: bool


@dataclass(frozen=True, slots=True)
class ProcessPart:
    """``<(…)`` or ``>(…)``."""

    start: int
    end: int
    direction: str
    body: Sequence
    quoted: bool = True


@dataclass(frozen=True, slots=True)
class ArithmeticPart:
    """``$((…))``: the expression as a word, for the shell expands it before it calculates."""

    start: int
    end: int
    expression: Word
    quoted: bool


Part: TypeAlias = Literal | Inserted | Parameter | CommandPart | ProcessPart | ArithmeticPart


@dataclass(frozen=True, slots=True)
class Word:
    """One word. *assignment* is set for an argument ``name=value`` of ``export``, ``declare`` and the like."""

    start: int
    end: int
    parts: tuple[Part, ...]
    assignment: Assignment | None = None

    @property
    def static(self) -> str | None:
        """The text, when no expansion takes part."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Literal):
            return self.parts[0].text
        if all(isinstance(part, Literal) for part in self.parts):
            return "".join(part.text for part in self.parts if isinstance(part, Literal))
        return None


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an array literal: ``[key]=value`` or a plain word."""

    key: Word | None
    value: Word


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name=value``, ``name[key]+=value``, ``name=(…)``."""

    start: int
    end: int
    name: str
    subscript: Word | None
    append: bool
    value: Word | None
    elements: tuple[Element, ...] | None = None


@dataclass(frozen=True, slots=True)
class Redirection:
    """``2>&1``, ``<file``, ``<<EOF``: *descriptor* is a number, or the name in ``{name}>file``."""

    start: int
    end: int
    descriptor: int | str | None
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, words and redirections of one simple command."""

    start: int
    end: int
    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]


@dataclass(frozen=True, slots=True)
class Foreign(Simple):
    """A command that a program in another *language* starts."""

    language: str = ""


@dataclass(frozen=True, slots=True)
class Redirected:
    """A compound command with redirections."""

    start: int
    end: int
    body: Command
    redirections: tuple[Redirection, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Commands one after the other."""

    start: int
    end: int
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class AndOr:
    """``left && right`` or ``left || right``."""

    start: int
    end: int
    left: Command
    operator: str
    right: Command


@dataclass(frozen=True, slots=True)
class Pipeline:
    """``a | b``; *merged* tells for each command but the last whether its standard error goes along (``|&``)."""

    start: int
    end: int
    commands: tuple[Command, ...]
    merged: tuple[bool, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Background:
    """``command &``."""

    start: int
    end: int
    body: Command


@dataclass(frozen=True, slots=True)
class Group:
    """``{ …; }``."""

    start: int
    end: int
    body: Sequence


@dataclass(frozen=True, slots=True)
class Subshell:
    """``( … )``."""

    start: int
    end: int
    body: Sequence


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with their bodies, in order, and what remains."""

    start: int
    end: int
    branches: tuple[tuple[Sequence, Sequence], ...]
    otherwise: Sequence | None


@dataclass(frozen=True, slots=True)
class Loop:
    """``while`` and ``until``."""

    start: int
    end: int
    condition: Sequence
    body: Sequence
    until: bool


@dataclass(frozen=True, slots=True)
class For:
    """``for name in words``; *words* is None for the positional parameters."""

    start: int
    end: int
    name: str
    words: tuple[Word, ...] | None
    body: Sequence


@dataclass(frozen=True, slots=True)
class Select:
    """``select name in words``."""

    start: int
    end: int
    name: str
    words: tuple[Word, ...] | None
    body: Sequence


@dataclass(frozen=True, slots=True)
class ArithmeticFor:
    """``for ((first; condition; step))``."""

    start: int
    end: int
    first: Word
    condition: Word
    step: Word
    body: Sequence


@dataclass(frozen=True, slots=True)
class CaseItem:
    """Patterns, body, and ``;;``, ``;&`` or ``;;&``."""

    patterns: tuple[Word, ...]
    body: Sequence
    terminator: str


@dataclass(frozen=True, slots=True)
class Case:
    """``case word in … esac``."""

    start: int
    end: int
    word: Word
    items: tuple[CaseItem, ...]


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """``name() body``."""

    start: int
    end: int
    name: str
    body: Command


@dataclass(frozen=True, slots=True)
class Test:
    """An expression of ``[[``: *operator* with its operands; ``&&``, ``||`` and ``!`` have tests as *inner*."""

    __test__ = False  # not a test class

    start: int
    end: int
    operator: str
    operands: tuple[Word, ...] = ()
    inner: tuple[Test, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditional:
    """``[[ … ]]``."""

    start: int
    end: int
    test: Test


@dataclass(frozen=True, slots=True)
class ArithmeticCommand:
    """``((…))``."""

    start: int
    end: int
    expression: Word


@dataclass(frozen=True, slots=True)
class Coprocess:
    """``coproc NAME command``."""

    start: int
    end: int
    name: str
    body: Command


Command: TypeAlias = (
    Simple
    | Redirected
    | Sequence
    | AndOr
    | Pipeline
    | Background
    | Group
    | Subshell
    | If
    | Loop
    | For
    | Select
    | ArithmeticFor
    | Case
    | FunctionDefinition
    | Conditional
    | ArithmeticCommand
    | Coprocess
)


def statements(node: object) -> Iterator[object]:
    """*node* and everything in it that is a part of a program, in order."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack += reversed(current)
        elif is_dataclass(current) and not isinstance(current, Value):
            yield current
            kind: type = type(current)
            stack += [getattr(current, name) for name in _inner(kind)]


@cache
def _inner(kind: type) -> tuple[str, ...]:
    """Names of the fields of a part of a program that may have parts, the last first."""
    return tuple(field.name for field in reversed(fields(kind)) if field.name not in {"start", "end"})
