"""Variables and objects of a running program, and the ways that part and meet again.

Everything that can change is an entry of one store: a variable (its scope and name) or a cell (its number). A
:class:`Region` is a stretch of the program whose ways part: it notes the old value of what is written, takes down what
holds at each end of a way, goes back for the next way, and joins the ends. The cost is that of what was written.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.languages.python.objects import (
    Cell,
    Class,
    Constant,
    Dictionary,
    Instance,
    Items,
    Object,
    Opaque,
    Text,
    Union,
    join_all,
    join_cells,
    join_objects,
)
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import UNKNOWN, Value

if TYPE_CHECKING:
    from runner_e2e.lint.languages.process import Process, Saved

__all__ = ["Memory", "Region"]

_Key: TypeAlias = "tuple[int, str] | int"
_Entry: TypeAlias = "Object | Cell | None"
_MAX_ENDS = 64


@dataclass(slots=True)
class _End:
    changed: dict[_Key, _Entry]
    process: Saved


@dataclass(slots=True)
class Region:
    """A stretch whose ways part. *ends* are what held where a way left it."""

    before: dict[_Key, _Entry] = field(default_factory=dict)
    ends: list[_End] = field(default_factory=list)
    process: Saved | None = None
    values: list[Object] = field(default_factory=list)


class Memory:
    """The store. ``alive`` is False where no way leads on."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.alive = True
        self._store: dict[_Key, _Entry] = {}
        self._regions: list[Region] = []
        self._number = 0

    # --- entries

    def new(self, cell: Cell) -> int:
        """The number of a new cell."""
        self._number += 1
        self._put(self._number, cell)
        return self._number

    def scope(self) -> int:
        """The number of a new scope."""
        self._number += 1
        return self._number

    def cell(self, number: int) -> Cell:
        """The cell *number*."""
        found = self._store[number]
        assert isinstance(found, _CELLS)
        return found

    def put_cell(self, number: int, cell: Cell) -> None:
        """Changes a cell."""
        self._put(number, cell)

    def variable(self, scope: int, name: str) -> Object | None:
        """The variable *name* of *scope*; None when it is not set."""
        found = self._store.get((scope, name))
        assert not isinstance(found, Dictionary | Instance | Class)
        return found

    def set_variable(self, scope: int, name: str, value: Object | None) -> None:
        """Sets a variable, or removes it."""
        self._put((scope, name), value)

    def variables(self, scope: int) -> list[tuple[str, Object]]:
        """All variables of a scope."""
        names = [key[1] for key in self._store if isinstance(key, tuple) and key[0] == scope]
        return [(name, value) for name in names if (value := self.variable(scope, name)) is not None]

    def _put(self, key: _Key, entry: _Entry) -> None:
        if self._regions:
            before = self._regions[-1].before
            if key not in before:
                before[key] = self._store.get(key)
        self._store[key] = entry

    # --- ways

    def open(self) -> Region:
        """Begins a region here."""
        region = Region(process=self.process.save())
        self._regions.append(region)
        return region

    def record(self, region: Region, value: Object | None = None) -> None:
        """Takes down what holds here as one end of *region*."""
        if not self.alive:
            return
        if value is not None:
            region.values.append(value)
        changed: dict[_Key, _Entry] = {}
        self.process.tick(len(region.before) // 32)
        for inner in reversed(self._regions):
            for key in inner.before:
                changed[key] = self._store.get(key)
            if inner is region:
                break
        if len(region.ends) >= _MAX_ENDS:  # one more way: joined with the last one
            last = region.ends[-1]
            for key in last.changed.keys() | changed.keys():
                old = region.before.get(key)
                last.changed[key] = _joined(last.changed.get(key, old), changed.get(key, old))
            return
        region.ends.append(_End(changed, self.process.save()))

    def rewind(self, region: Region) -> None:
        """Back to the beginning of *region*, the innermost one."""
        assert self._regions[-1] is region
        assert region.process is not None
        self._store.update(region.before)
        self.process.restore(region.process)
        self.alive = True

    def close(self, region: Region) -> bool:
        """Goes on from the joined ends of *region*; whether anything differs from its beginning."""
        assert self._regions.pop() is region
        self.alive = bool(region.ends)
        different = False
        if region.ends:
            keys = dict.fromkeys(key for end in region.ends for key in end.changed)
            for key, old in region.before.items():
                keys.setdefault(key, None)
                self._store[key] = old
            for key in keys:
                old = region.before.get(key) if key in region.before else self._store.get(key)
                entries = [end.changed.get(key, old) for end in region.ends]
                joined = entries[0]
                for entry in entries[1:]:
                    joined = _joined(joined, entry)
                different = different or joined != old
                self._put(key, joined)
            self.process.restore(region.ends[0].process)
            self.process.merge(end.process for end in region.ends[1:])
        else:
            for key, old in region.before.items():
                self._store[key] = old
        return different

    def widen(self, keys: Region) -> None:
        """Gives up texts that still change at the beginning of a loop, so that it ends."""
        for key, old in keys.before.items():
            now = self._store.get(key)
            if now is not None and now != old:
                self._put(key, _widened(now))


def _joined(left: _Entry, right: _Entry) -> _Entry:
    if left is right or left == right:
        return left
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, _CELLS) and isinstance(right, _CELLS):
        return join_cells(left, right)
    return join_objects(left, right)  # type: ignore[arg-type]


_CELLS = (Dictionary, Instance, Items, Class)


def _widened(entry: Object | Cell) -> Object | Cell:
    """*entry* with less known of it: what is written again and again soon says the same."""
    if isinstance(entry, Text):
        taints = entry.value.taints
        return Text(Value.of(taints) if taints else UNKNOWN, entry.kind)
    if isinstance(entry, Constant):
        return Opaque() if entry.name in ("int", "float") else entry
    if isinstance(entry, Items):
        held = [*entry.items, *([entry.rest] if entry.rest is not None else [])]
        return Items((), join_all(_object(one) for one in held), entry.kind) if held else entry
    if isinstance(entry, Dictionary):
        entries = tuple((key, _object(value)) for key, value in entry.entries)
        return Dictionary(entries, _object(entry.others) if entry.others is not None else None, entry.keys)
    if isinstance(entry, Instance):
        return Instance(entry.kind, tuple((name, _object(value)) for name, value in entry.attributes))
    if isinstance(entry, Union):
        return join_all(_object(option) for option in entry.options)
    return entry


def _object(one: Object) -> Object:
    widened = _widened(one)
    assert not isinstance(widened, Dictionary | Instance | Class)
    return widened
