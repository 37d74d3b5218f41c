"""What is known of a Python object.

Objects that a program can change (lists, dictionaries, sets, instances, modules) are cells of the interpreter's memory
and are held by :class:`Reference`; everything else is a plain value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import UNKNOWN, Value, merged

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from runner_e2e.lint.languages.python.syntax import Module
    from runner_e2e.lint.values import Taint

__all__ = [
    "FALSE",
    "NONE",
    "NOTHING",
    "TRUE",
    "UNKNOWN_TEXT",
    "Bound",
    "Cell",
    "Class",
    "Constant",
    "Dictionary",
    "Function",
    "Instance",
    "Items",
    "Named",
    "Object",
    "Opaque",
    "Reference",
    "Text",
    "Union",
    "join_all",
    "join_cells",
    "join_objects",
    "text",
]

MAX_OPTIONS = 6
"""A union of more kinds of objects becomes one that is not known."""

MAX_ITEMS = 256
"""Items of a list or a dictionary that are kept apart."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string, bytes, or a path."""

    value: Value
    kind: Literal["str", "bytes", "path"] = "str"


@dataclass(frozen=True, slots=True)
class Constant:
    """``None``, a truth value, a number or ``...``; *name* keeps ``1``, ``1.0`` and ``True`` apart."""

    value: object
    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any object, from which these labels can be read."""

    taints: frozenset[Taint] = frozenset()


@dataclass(frozen=True, slots=True)
class Reference:
    """An object in memory."""

    number: int


@dataclass(frozen=True, slots=True)
class Named:
    """Something of a library by its full name: ``subprocess.run``, ``os.environ``, ``builtins.print``."""

    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the program; *scopes* are those it sees, the innermost first."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: Module
    scopes: tuple[int, ...]
    defaults: tuple[Object, ...] = ()
    keyword_defaults: tuple[Object | None, ...] = ()
    owner: int | None = None
    """The class that a method belongs to."""
    binding: Literal["method", "static", "class", "property"] = "method"
    """How it is bound when it is found through an object."""
    foreign: bool = False
    """Whether a decorator of a library may call it in its own way."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A method of an object: a function of the program, or one of a library by its name."""

    receiver: Object
    method: Function | str


@dataclass(frozen=True, slots=True)
class Union:
    """Any of a few objects of different kinds."""

    options: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple, or the content of a list or a set: *items* in order, then any number of *rest* (None: none)."""

    items: tuple[Object, ...] = ()
    rest: Object | None = None
    kind: Literal["list", "tuple", "set"] = "list"


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The content of a dictionary: entries by known key, and values under any other key (None: none)."""

    entries: tuple[tuple[object, Object], ...] = ()
    others: Object | None = None
    keys: Object | None = None
    """What the other keys may be."""

    def get(self, key: object) -> Object | None:
        """The value at a known *key*."""
        return dict(self.entries).get(key)


@dataclass(frozen=True, slots=True)
class Instance:
    """An object with attributes, of a class of the program (its number) or of a library (its name)."""

    kind: str | int
    attributes: tuple[tuple[str, Object], ...] = ()

    def get(self, name: str) -> Object | None:
        """The attribute *name*."""
        return dict(self.attributes).get(name)


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the program: its name, the scope with its members, its bases."""

    name: str
    scope: int
    bases: tuple[Object, ...] = ()
    fields: tuple[str, ...] | None = None
    """Names of the fields of a data class, in order."""


Cell: TypeAlias = Items | Dictionary | Instance | Class
Object: TypeAlias = Text | Constant | Opaque | Reference | Named | Function | Bound | Union | Items

NOTHING = Opaque()
NONE = Constant(None, "NoneType")
TRUE = Constant(True, "bool")
FALSE = Constant(False, "bool")
UNKNOWN_TEXT = Text(UNKNOWN)


def text(content: str) -> Text:
    """The string that is exactly *content*."""
    return Text(Value.literal(content))


def _items_joined(left: Items, right: Items) -> Items:
    kind = left.kind
    rests = [one for one in (left.rest, right.rest) if one is not None]
    if len(left.items) == len(right.items):
        items = tuple(join_objects(a, b) for a, b in zip(left.items, right.items, strict=True))
        return Items(items, join_all(rests) if rests else None, kind)
    # The common beginning stays; what follows in either is somewhere behind it.
    shared = 0
    for a, b in zip(left.items, right.items, strict=False):
        if a != b:
            break
        shared += 1
    rest = join_all([*left.items[shared:], *right.items[shared:], *rests])
    return Items(left.items[:shared], rest, kind)


def _dictionaries_joined(left: Dictionary, right: Dictionary) -> Dictionary:
    if left.entries == right.entries:
        entries = dict(left.entries)
    else:
        entries, other = dict(left.entries), dict(right.entries)
        for key, value in other.items():
            entries[key] = join_objects(entries[key], value) if key in entries else value
    others = [one for one in (left.others, right.others) if one is not None]
    keys = [one for one in (left.keys, right.keys) if one is not None]
    return Dictionary(tuple(entries.items()), join_all(others) if others else None, join_all(keys) if keys else None)


def join_cells(left: Cell, right: Cell) -> Cell:
    """Either cell."""
    if left == right:
        return left
    if isinstance(left, Items) and isinstance(right, Items):
        return _items_joined(left, right)
    if isinstance(left, Dictionary) and isinstance(right, Dictionary):
        return _dictionaries_joined(left, right)
    if isinstance(left, Instance) and isinstance(right, Instance) and left.kind == right.kind:
        attributes = dict(left.attributes)
        for name, value in right.attributes:
            attributes[name] = join_objects(attributes[name], value) if name in attributes else value
        return Instance(left.kind, tuple(attributes.items()))
    return left


def join_objects(left: Object, right: Object) -> Object:
    """Either object."""
    if left is right or left == right:
        return left
    if isinstance(left, Text) and isinstance(right, Text):
        return Text(left.value | right.value, left.kind if left.kind == right.kind else "str")
    if isinstance(left, Opaque) and isinstance(right, Opaque):
        return Opaque(merged(left.taints | right.taints))
    if isinstance(left, Items) and isinstance(right, Items):
        return _items_joined(left, right)
    return join_all((left, right))


def join_all(objects: Iterable[Object]) -> Object:
    """Any of *objects*."""
    options: list[Object] = []
    for one in objects:
        for option in one.options if isinstance(one, Union) else (one,):
            _add(options, option)
    if not options:
        return NOTHING
    if len(options) == 1:
        return options[0]
    if len(options) <= MAX_OPTIONS:
        return Union(tuple(options))
    # Too many kinds: those that hold no other object become one.
    plain = [one for one in options if isinstance(one, Text | Constant | Opaque)]
    held = [one for one in options if not isinstance(one, Text | Constant | Opaque)]
    taints = merged(taint for one in plain for taint in _plain_taints(one))
    return Union((Opaque(taints), *held[: MAX_OPTIONS - 1]))


def _add(options: list[Object], option: Object) -> None:
    for index, known in enumerate(options):
        if known == option:
            return
        if isinstance(known, Text) and isinstance(option, Text):
            options[index] = Text(known.value | option.value, known.kind if known.kind == option.kind else "str")
            return
        if isinstance(known, Opaque) and isinstance(option, Opaque):
            options[index] = Opaque(merged(known.taints | option.taints))
            return
        if isinstance(known, Items) and isinstance(option, Items):
            options[index] = _items_joined(known, option)
            return
    options.append(option)


def _plain_taints(one: Object) -> frozenset[Taint]:
    if isinstance(one, Text):
        return one.value.taints
    return one.taints if isinstance(one, Opaque) else frozenset()
