"""The syntax of PowerShell that is followed: statements, commands and expressions, each with its place.

Offsets are character offsets in the text of the program. What the parser cannot read is a :class:`Gap`. Nodes are
compared by identity: most of what a data class would make for them is left out, for it costs at start-up.
"""

from __future__ import annotations

from typing import TypeAlias

from runner_e2e.lint.records import dataclass

__all__ = [
    "ArrayOf",
    "Assign",
    "Binary",
    "Block",
    "Cast",
    "Command",
    "Element",
    "Exit",
    "Expandable",
    "Expression",
    "For",
    "ForEach",
    "Function",
    "Gap",
    "If",
    "Index",
    "Member",
    "Node",
    "Pair",
    "Phase",
    "Pipeline",
    "Redirection",
    "Statement",
    "Sub",
    "Switch",
    "TableOf",
    "Text",
    "Try",
    "TypeName",
    "Unary",
    "Variable",
    "While",
]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """Anything with a place."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Text(Node):
    """Known text; *bare*: it was written without quotes. Numbers are bare text."""

    text: str
    bare: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expandable(Node):
    """A text whose *parts* are put together: ``"a $b"``, or a word such as ``--id=$x``."""

    parts: tuple[Expression, ...]
    bare: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Variable(Node):
    """``$name``, ``$env:NAME`` (*drive* ``env``), ``@name`` (*splat*)."""

    name: str
    drive: str = ""
    splat: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Member(Node):
    """``owner.name`` or ``owner::name``, a call where *arguments* is not None."""

    owner: Expression
    name: Expression
    arguments: tuple[Expression, ...] | None
    static: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Index(Node):
    """``owner[index]``."""

    owner: Expression
    index: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sub(Node):
    """``$( … )``, ``( … )`` and ``@( … )`` (*listed*): what the statements give."""

    body: tuple[Statement, ...]
    listed: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrayOf(Node):
    """``a, b``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pair(Node):
    """One entry of a table."""

    key: Expression
    value: Statement


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableOf(Node):
    """``@{ key = value }``."""

    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block(Node):
    """``{ … }`` as a value; *parameters* are the names of ``param(…)`` with their defaults."""

    body: tuple[Statement, ...]
    parameters: tuple[tuple[str, Expression | None], ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(Node):
    """An operator before its operand; *operator* in lower case."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(Node):
    """An operator between two operands."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cast(Node):
    """``[type] operand``."""

    type_name: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TypeName(Node):
    """``[type]`` as a value, for its static members."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Redirection(Node):
    """``2>&1`` (*target* None), ``>> file``. *stream*: its number, or ``*``."""

    stream: str
    append: bool
    target: Expression | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Element(Node):
    """A word after the name of a command. *parameter*: the name of ``-Name``, without the dash."""

    value: Expression | None
    parameter: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Command(Node):
    """A command: *invocation* is ``&``, ``.`` or nothing."""

    name: Expression
    elements: tuple[Element, ...]
    redirections: tuple[Redirection, ...] = ()
    invocation: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pipeline(Node):
    """Commands and expressions, each fed by the one before; *chained* go on after ``&&`` or ``||``."""

    stages: tuple[Command | Expression, ...]
    chained: tuple[Pipeline, ...] = ()
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assign(Node):
    """``target = value``, ``+=`` and the like."""

    target: Expression
    operator: str
    value: Statement


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If(Node):
    """Conditions with their blocks; *otherwise* is None without ``else``."""

    branches: tuple[tuple[Statement, Block], ...]
    otherwise: Block | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForEach(Node):
    """``foreach ($variable in items) { … }``."""

    variable: Variable
    items: Statement
    body: Block


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class For(Node):
    """``for (first; condition; next) { … }``."""

    first: Statement | None
    condition: Statement | None
    following: Statement | None
    body: Block


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class While(Node):
    """``while``, ``do … while`` and ``do … until`` (*first*: the body runs before the test)."""

    condition: Statement
    body: Block
    first: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Switch(Node):
    """``switch (value) { pattern { … } }``; a pattern of None is ``default``."""

    value: Statement
    cases: tuple[tuple[Expression | None, Block], ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function(Node):
    """``function name { … }``."""

    name: str
    body: Block


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Try(Node):
    """``try``, the blocks of ``catch``, ``finally``."""

    body: Block
    handlers: tuple[Block, ...]
    last: Block | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Phase(Node):
    """``begin``, ``process``, ``end`` of a function (*word*): ``process`` runs for each input."""

    word: str
    body: Block


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exit(Node):
    """``return``, ``exit``, ``throw``, ``break``, ``continue`` (*word*), perhaps with a value."""

    word: str
    value: Statement | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gap(Node):
    """A stretch that could not be read, and why."""

    reason: str


Expression: TypeAlias = (
    Text
    | Expandable
    | Variable
    | Member
    | Index
    | Sub
    | ArrayOf
    | TableOf
    | Block
    | Unary
    | Binary
    | Cast
    | TypeName
    | Gap
)

Compound: TypeAlias = If | ForEach | For | While | Switch | Function | Try | Phase

Statement: TypeAlias = Pipeline | Assign | Compound | Exit | Gap | Block
