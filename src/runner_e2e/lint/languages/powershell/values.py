"""What a PowerShell expression may be: a text, a list, a table, a block of code."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.expression_data import number_text
from runner_e2e.lint.languages.documents import Unknown
from runner_e2e.lint.languages.pieces import joined
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, UNKNOWN, Taint, Value, join, merged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.languages.documents import Json
    from runner_e2e.lint.languages.powershell.syntax import Block

__all__ = [
    "BOOLEAN",
    "Code",
    "Items",
    "Ps",
    "Table",
    "boolean",
    "either",
    "elements",
    "from_json",
    "listed",
    "taints_of",
    "text_of",
    "truth_of",
]


@dataclass(frozen=True, slots=True)
class Items:
    """A list: known elements, and (*others*) elements of unknown number."""

    items: tuple[Ps, ...] = ()
    others: Value | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A hashtable or an object: entries by name in lower case, and what any other name gives."""

    entries: tuple[tuple[str, Ps], ...] = ()
    others: Value | None = None

    def get(self, name: str) -> Ps | None:
        """The entry called *name*."""
        return dict(self.entries).get(name.lower())

    def put(self, name: str, value: Ps) -> Table:
        """With one entry set."""
        entries = dict(self.entries)
        entries[name.lower()] = value
        return Table(tuple(entries.items()), self.others)


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """A script block, and the source it was read from."""

    block: Block
    source: object


Ps: TypeAlias = "Value | Items | Table | Code"

BOOLEAN = Value.literal("True") | Value.literal("False")


def boolean(value: bool | None) -> Value:
    """A truth value; None: either."""
    return BOOLEAN if value is None else Value.literal("True" if value else "False")


def taints_of(value: Ps) -> frozenset[Taint]:
    """Every label anywhere in *value*."""
    if isinstance(value, Value):
        return value.taints
    if isinstance(value, Code):
        return frozenset()
    inner = value.items if isinstance(value, Items) else tuple(item for _, item in value.entries)
    found = [taint for item in inner for taint in taints_of(item)]
    return merged([*found, *(value.others.taints if value.others is not None else ())])


def text_of(value: Ps) -> Value:
    """The text that *value* becomes within a string: elements of a list with blanks between them."""
    if isinstance(value, Value):
        return value
    if isinstance(value, Items):
        total = joined((text_of(item) for item in value.items), Value.literal(" "))
        return total if value.others is None else total + value.others.opaque()
    return Value.literal("System.Collections.Hashtable") if isinstance(value, Table) else UNKNOWN


def shown(value: Ps) -> Value:
    """What the log shows of *value*: every entry of a table, every element on its line."""
    if isinstance(value, Items):
        total = joined((shown(item) for item in value.items), Value.literal("\n"))
        return total if value.others is None else total + value.others.opaque()
    if isinstance(value, Table):
        return Value.of(taints_of(value))
    return text_of(value)


def elements(value: Ps) -> tuple[tuple[Ps, ...], Value | None]:
    """The elements of *value* as a pipeline sees them: anything but a list is one."""
    if isinstance(value, Items):
        return value.items, value.others
    return (value,), None


def listed(values: Iterable[Ps], others: Value | None = None) -> Ps:
    """What *values* are as one: nothing, the only one, or a list."""
    found = tuple(values)
    if others is None and len(found) == 1:
        return found[0]
    return EMPTY if others is None and not found else Items(found, others)


def either(left: Ps, right: Ps) -> Ps:
    """Any of two values."""
    if left is right or left == right:
        return left
    if isinstance(left, Value) and isinstance(right, Value):
        return left | right
    if isinstance(left, Items) and isinstance(right, Items) and len(left.items) == len(right.items):
        items = tuple(either(a, b) for a, b in zip(left.items, right.items, strict=True))
        others = [one for one in (left.others, right.others) if one is not None]
        return Items(items, join(others) if others else None)
    if isinstance(left, Table) and isinstance(right, Table):
        entries = dict(left.entries)
        for name, item in right.entries:
            entries[name] = either(entries[name], item) if name in entries else item
        others = [one for one in (left.others, right.others) if one is not None]
        return Table(tuple(entries.items()), join(others) if others else None)
    if isinstance(left, Code) or isinstance(right, Code):
        return left if isinstance(left, Code) else right
    if EMPTY in {left, right}:  # it may not be set
        return right if left == EMPTY else left
    return Items((), Value.of(merged(taints_of(left) | taints_of(right))))


def truth_of(value: Ps) -> bool | None:
    """Whether *value* counts as true; None when that is not known."""
    if not isinstance(value, Value):
        return None if isinstance(value, Items) else True
    constants = value.constants
    if constants is None:
        return None
    found = {text not in {"", "False", "0"} for text in constants}
    return found.pop() if len(found) == 1 else None


def from_json(data: Json) -> Ps:
    """The value for parsed JSON."""
    if isinstance(data, Value):
        return data
    if isinstance(data, Unknown):
        return Value.of(data.taints)
    if isinstance(data, list):
        return Items(tuple(from_json(item) for item in data))
    if isinstance(data, dict):
        entries = tuple((name.lower(), from_json(item)) for name, item in data.items() if name is not None)
        others = Value.of(taints_of(from_json(data[None]))) if None in data else None
        return Table(entries, others)
    if data is None:
        return EMPTY
    return boolean(data) if isinstance(data, bool) else Value.literal(number_text(float(data)))
