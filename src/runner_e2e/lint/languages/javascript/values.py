"""What a JavaScript expression may be: text with labels, constants, objects, functions.

A :class:`Js` is immutable; what changes in a running program (variables, properties) are :class:`Cell` objects, which
only :mod:`.machine` writes, so that ways that part can be undone and joined.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from runner_e2e.lint.expression_data import number_text
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Taint, Value, join, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner_e2e.lint.tree import Node

__all__ = [
    "ANY",
    "BOOLEAN",
    "FALSE",
    "NULL",
    "NUMBER",
    "TRUE",
    "UNDEFINED",
    "Any",
    "Atom",
    "Cell",
    "Closure",
    "Constant",
    "Js",
    "Native",
    "Thing",
    "any_with",
    "constant",
    "either",
    "joined_elements",
    "literal",
    "of_text",
    "of_thing",
    "taints_of",
    "text_of",
    "truth_of",
]

_MAX_THINGS = 8


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a boolean, ``null`` (None) or ``undefined``; ``kind`` keeps ``true`` and ``1`` apart."""

    kind: Literal["number", "boolean", "null", "undefined"]
    value: float | bool | None = None
    known: bool = True
    """Whether ``value`` is the value; else any of the kind. Such a value carries no text."""


@dataclass(frozen=True, slots=True)
class Any:
    """Data of any kind, with the labels that may be in it."""

    taints: frozenset[Taint] = frozenset()


class Cell:
    """A variable or a property: *value* is None where it does not exist. ``[start, end)``: where it was written.

    Nothing reaches a *dead* one any more.
    """

    __slots__ = ("dead", "end", "start", "value")

    def __init__(self, value: Js | None = None, start: int = 0, end: int = 0) -> None:
        self.value = value
        self.start = start
        self.end = end
        self.dead = False


class Thing:
    """An object. *kind* says of which sort; *cells* are its properties, *others* those whose names are not known.

    An array has its elements under ``0``, ``1``, …; elements of unknown number are in *others*.
    *data* belongs to the kind: the closure of a function, the entries of a map.
    """

    __slots__ = ("cells", "data", "getters", "kind", "native", "others", "prototype")

    def __init__(self, kind: str = "object", *, native: Native | None = None, data: object = None) -> None:
        self.kind = kind
        self.cells: dict[str, Cell] = {}
        self.others = Cell()
        self.native = native
        self.data = data
        self.prototype: Thing | None = None
        self.getters: dict[str, Thing] = {}

    @property
    def is_function(self) -> bool:
        """Whether it can be called."""
        return self.kind in {"function", "class"}

    def elements(self) -> list[Js]:
        """The elements of an array whose places are known."""
        return [cell.value for name, cell in self.cells.items() if cell.value is not None and name.isdigit()]

    def put(self, name: str, value: Js) -> None:
        """Sets a property of an object that nobody else has seen yet."""
        self.cells[name] = Cell(value)


Native: TypeAlias = "Callable[..., Js]"
"""A function that is built in: it takes the call, a :class:`~.machine.Call`."""

Atom: TypeAlias = "Constant | Any | Thing"


@dataclass(frozen=True, slots=True)
class Js:
    """Any of: a *text* (None: it is none), one of *atoms*."""

    text: Value | None = None
    atoms: tuple[Atom, ...] = ()

    @property
    def thing(self) -> Thing | None:
        """The object, when it can be nothing else."""
        if self.text is None and len(self.atoms) == 1 and isinstance(self.atoms[0], Thing):
            return self.atoms[0]
        return None

    @property
    def things(self) -> tuple[Thing, ...]:
        """The objects it may be."""
        return tuple(atom for atom in self.atoms if isinstance(atom, Thing))

    @property
    def constant(self) -> str | None:
        """The text, when it can be nothing else."""
        return self.text.constant if self.text is not None and not self.atoms else None

    @property
    def number(self) -> float | None:
        """The number, when it can be nothing else."""
        if self.text is None and len(self.atoms) == 1:
            atom = self.atoms[0]
            if isinstance(atom, Constant) and atom.kind == "number" and atom.known:
                return float(atom.value or 0)
        return None


UNDEFINED = Js(None, (Constant("undefined"),))
NULL = Js(None, (Constant("null"),))
TRUE = Js(None, (Constant("boolean", value=True),))
FALSE = Js(None, (Constant("boolean", value=False),))
BOOLEAN = Js(None, (Constant("boolean", known=False),))
NUMBER = Js(None, (Constant("number", known=False),))
ANY = Js(None, (Any(),))


def literal(text: str) -> Js:
    """The text *text*."""
    return Js(Value.literal(text))


def of_text(value: Value) -> Js:
    """A text."""
    return Js(value)


def of_thing(thing: Thing) -> Js:
    """An object."""
    return Js(None, (thing,))


def constant(value: float | bool | None) -> Js:
    """A number, a boolean, or ``null``."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return Js(None, (Constant("number", float(value)),))


def any_with(taints: Iterable[Taint], confidence: Confidence | None = None) -> Js:
    """Data of any kind that may carry *taints*, no surer than *confidence*."""
    found = merged(taints)
    if confidence is not None:
        found = merged(Taint(one.label, min(one.confidence, confidence), one.trail) for one in found)
    return Js(None, (Any(found),)) if found else ANY


def either(values: Iterable[Js | None]) -> Js:
    """Any of *values*; None stands for ``undefined``."""
    text: Value | None = None
    atoms: dict[Atom, None] = {}
    anything: frozenset[Taint] | None = None
    for value in values:
        one = UNDEFINED if value is None else value
        if one.text is not None:
            text = one.text if text is None else text | one.text
        for atom in one.atoms:
            if isinstance(atom, Any):
                anything = atom.taints if anything is None else merged(anything | atom.taints)
            else:
                atoms[atom] = None
    if sum(isinstance(atom, Thing) for atom in atoms) > _MAX_THINGS:
        things = [atom for atom in atoms if isinstance(atom, Thing)]
        lost = frozenset(taint for thing in things[_MAX_THINGS:] for taint in taints_of(of_thing(thing)))
        anything = merged(lost | (anything or frozenset()))
        for thing in things[_MAX_THINGS:]:
            del atoms[thing]
    rest = tuple(atoms) if anything is None else (*atoms, Any(anything))
    return Js(text, rest) if text is not None or rest else UNDEFINED


def taints_of(value: Js) -> frozenset[Taint]:
    """Every label anywhere in *value*: in objects that it reaches, too."""
    found: set[Taint] = set()
    seen: set[int] = set()
    stack = [value]
    while stack:
        one = stack.pop()
        if one.text is not None:
            found |= one.text.taints
        for atom in one.atoms:
            if isinstance(atom, Any):
                found |= atom.taints
            elif isinstance(atom, Thing) and id(atom) not in seen and len(seen) < 500:
                seen.add(id(atom))
                stack += [cell.value for cell in (*atom.cells.values(), atom.others) if cell.value is not None]
    return merged(found) if found else frozenset()


_SHALLOW = 4


def text_of(value: Js, depth: int = 0) -> Value:
    """The text that *value* becomes in a template or a concatenation."""
    parts = [] if value.text is None else [value.text]
    parts.extend(_text_of_atom(atom, depth) for atom in value.atoms)
    return parts[0] if len(parts) == 1 else join(parts)


def _text_of_atom(atom: Atom, depth: int) -> Value:
    if isinstance(atom, Any):
        return Value.of(atom.taints)
    if isinstance(atom, Constant):
        if not atom.known:
            if atom.kind == "boolean":
                return Value.literal("true") | Value.literal("false")
            return Value(((Hole(frozenset(), "", 24),),))
        if atom.kind == "number":
            return Value.literal(number_text(float(atom.value or 0)))
        return Value.literal(
            "null" if atom.kind == "null" else "undefined" if atom.kind == "undefined" else _word(atom)
        )
    if atom.kind == "array" and depth < _SHALLOW:
        return joined_elements(atom, Value.literal(","), depth)
    if atom.kind == "text":  # a buffer, an URL, an error: it becomes the text that it was made of
        content = atom.cells.get("text")
        return text_of(content.value, depth + 1) if content is not None and content.value is not None else UNKNOWN
    return Value.literal("[object Object]") if atom.kind == "object" else UNKNOWN


def _word(atom: Constant) -> str:
    return "true" if atom.value else "false"


def joined_elements(thing: Thing, separator: Value, depth: int = 0) -> Value:
    """The text of an array's elements with *separator* between them."""
    total = EMPTY
    for index, element in enumerate(thing.elements()):
        empty = element in {UNDEFINED, NULL}
        total = (total + separator if index else total) + (EMPTY if empty else text_of(element, depth + 1))
    others = thing.others.value
    if others is not None:
        more = text_of(others, depth + 1).opaque()
        total = total + (Value.of(more.taints) if more.taints else UNKNOWN)
    return total


def truth_of(value: Js) -> bool | None:
    """Whether *value* counts as true; None when that is not known."""
    found: set[bool | None] = set()
    for text in value.text.texts if value.text is not None else ():
        sure = any(isinstance(piece, str) for piece in text)
        found.add(True if sure else None if text else False)
    for atom in value.atoms:
        if isinstance(atom, Thing):
            found.add(True)
        elif isinstance(atom, Any) or not atom.known:
            found.add(None)
        else:
            number = atom.value
            found.add(bool(number) and not (isinstance(number, float) and math.isnan(number)))
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function of the program: its syntax, the scope it was made in, and ``this`` of an arrow function."""

    node: Node
    scope: object
    source: object
    this: Js | None
