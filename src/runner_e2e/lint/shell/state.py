"""What is known about a shell at one point of a program, and how two such points join."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.masks import NO_MASKS, Masks
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Label, Text, Value, join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.shell.ir import Command
    from runner_e2e.lint.source import Source

__all__ = [
    "ERRORS",
    "LOG",
    "NULL",
    "READING",
    "UNCAPTURED",
    "Channel",
    "CommandFile",
    "Field",
    "FileKey",
    "Function",
    "Items",
    "Reading",
    "State",
    "Variable",
    "exact",
    "join_fields",
    "nth",
    "sources",
]

FileKey: TypeAlias = "Text | int"
"""A file by its path (a text, perhaps with holes), or a pipe or buffer of the interpreter by number."""


@dataclass(frozen=True, slots=True)
class Field:
    """One argument, or (``list``, ``split``) a number of them that is not known.

    ``split`` is an unquoted expansion: most likely one field. ``list`` is an array of unknown length.
    """

    value: Value
    kind: str = "one"
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


def exact(fields: Iterable[Field]) -> bool:
    """Whether the number of *fields* is known."""
    return all(one.kind == "one" for one in fields)


def nth(fields: tuple[Field, ...], index: int) -> Value | None:
    """The field at *index*, from 0; None when there is none for sure."""
    if exact(fields):
        return fields[index].value if index < len(fields) else None
    lists = [one.value for one in fields[: index + 1] if one.kind == "list"]
    weak = [one.value.weakened(Confidence.LOW) for one in fields[: index + 1] if one.kind == "split"]
    if index < len(fields):
        first = next(i for i, one in enumerate(fields) if one.kind != "one")
        if index < first or (index == first and fields[index].kind == "split"):
            return fields[index].value
        if lists:  # any of those that follow a list of unknown length can be the one
            return join([*lists, *(one.value for one in fields[first:]), EMPTY])
        return join([fields[index].value, *weak])
    if len(fields) == 1 and weak:
        return join([EMPTY, fields[0].value.opaque().weakened(Confidence.MEDIUM)])
    return join([EMPTY, *lists, *weak])


def join_fields(left: tuple[Field, ...], right: tuple[Field, ...]) -> tuple[Field, ...]:
    """Either list of fields."""
    if left == right:
        return left
    if len(left) == len(right) and all(a.kind == b.kind for a, b in zip(left, right, strict=True)):
        return tuple(replace(a, value=a.value | b.value) for a, b in zip(left, right, strict=True))
    values = [one.value for one in (*left, *right)]
    return (Field(join(values), "list"),) if values else ()


@dataclass(frozen=True, slots=True)
class Items:
    """The elements of an array: those whose keys are known, and any others as one value (None: no others)."""

    known: tuple[tuple[str, Value], ...] = ()
    others: Value | None = None
    other_keys: Value = UNKNOWN

    def get(self, key: str) -> Value | None:
        """The element at *key*; None when there is none for sure."""
        found = dict(self.known).get(key)
        if self.others is None:
            return found
        return self.others | EMPTY if found is None else found | self.others

    def put(self, key: str, value: Value) -> Items:
        """With one element set."""
        known = dict(self.known)
        known[key] = value
        return Items(tuple(known.items()), self.others, self.other_keys)

    def put_somewhere(self, value: Value, key: Value = UNKNOWN) -> Items:
        """With one element set at a *key* that is not known."""
        return Items(self.known, value if self.others is None else self.others | value, self.other_keys | key)

    def without(self, key: str) -> Items:
        """With one element gone."""
        return Items(tuple(item for item in self.known if item[0] != key), self.others, self.other_keys)

    def everything(self) -> Value:
        """Any element."""
        values = [value for _, value in self.known]
        return join(values if self.others is None else [*values, self.others])

    def next_index(self) -> int | None:
        """The index after the last one of an indexed array; None when it is not known."""
        if self.others is not None:
            return None
        return max((int(key) for key, _ in self.known if key.isdigit()), default=-1) + 1

    def joined(self, other: Items) -> Items:
        """Either array."""
        if self == other:
            return self
        left, right = dict(self.known), dict(other.known)
        if left.keys() == right.keys():
            known = tuple((key, value | right[key]) for key, value in left.items())
            others = [value for value in (self.others, other.others) if value is not None]
            return Items(known, join(others) if others else None, self.other_keys | other.other_keys)
        keys = [Value.literal(key) for key, _ in (*self.known, *other.known)]
        return Items((), self.everything() | other.everything(), join([self.other_keys, other.other_keys, *keys]))


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: its value, whether it may be unset, its elements when it is an array, its attributes."""

    value: Value = EMPTY
    unset: bool = False
    items: Items | None = None
    exported: bool = False
    attributes: frozenset[str] = frozenset()

    def joined(self, other: Variable) -> Variable:
        """Either variable."""
        if self is other or self == other:
            return self
        arrays = self.items is not None or other.items is not None
        items = self.as_items().joined(other.as_items()) if arrays else None
        if self.unset and self.value == EMPTY and self.items is None:
            value = other.value
        elif other.unset and other.value == EMPTY and other.items is None:
            value = self.value
        else:
            value = self.value | other.value
        return Variable(
            value,
            self.unset or other.unset,
            items,
            self.exported or other.exported,
            self.attributes | other.attributes,
        )

    def as_items(self) -> Items:
        """The elements; a plain variable is its own element 0."""
        if self.items is not None:
            return self.items
        return Items() if self.unset and self.value == EMPTY else Items((("0", self.value),))

    def plain(self) -> Value:
        """What ``$name`` gives: the value, or element 0 of an array."""
        if self.items is None:
            return self.value | EMPTY if self.unset else self.value
        if "A" in self.attributes:
            return self.items.get("0") or EMPTY
        return self.items.get("0") or EMPTY


UNSET = Variable(unset=True)


@dataclass(frozen=True, slots=True)
class Function:
    """A function and the text it was read from."""

    body: Command
    source: Source = field(compare=False)


@dataclass(frozen=True, slots=True)
class Channel:
    """Where a descriptor leads: ``log``, ``null``, ``file`` (written), ``stream`` (read)."""

    kind: str
    key: FileKey = 0


LOG = Channel("log")
ERRORS = Channel("log", 2)
"""Standard error is read by itself."""

UNCAPTURED = -1
"""The descriptor on which a runner of tests keeps its standard output while it captures that of the tests."""
NULL = Channel("null")


@dataclass(frozen=True, slots=True)
class CommandFile:
    """``$GITHUB_OUTPUT`` and its like: the entries that are complete, and the text that follows."""

    entries: tuple[tuple[str, Value], ...] = ()
    lines: tuple[Value, ...] = ()
    pending: Value = EMPTY

    def joined(self, other: CommandFile) -> CommandFile:
        """Either content."""
        if self == other:
            return self
        entries = dict(self.entries)
        for name, value in other.entries:
            entries[name] = entries[name] | value if name in entries else value
        lines = tuple(dict.fromkeys((*self.lines, *other.lines)))
        return CommandFile(tuple(entries.items()), lines, self.pending | other.pending)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How the runner reads what the step prints.

    *stopped* is the token that ends a stop of workflow commands (:data:`EMPTY`: they are carried out); *echoed* says
    that it shows the commands that it carries out. *begun* has the keys of the channels on which a line has begun, and
    has not ended: what follows in it is no command.
    """

    stopped: Value = EMPTY
    echoed: bool = False
    begun: frozenset[FileKey] = frozenset()

    def joined(self, other: Reading) -> Reading:
        """Either way."""
        if self == other:
            return self
        begun = self.begun & other.begun
        return Reading(stopped=self.stopped | other.stopped, echoed=self.echoed or other.echoed, begun=begun)


def sources(path: str, outer: Items = Items()) -> Variable:  # noqa: B008 - frozen
    """``BASH_SOURCE`` in the file at *path*, which the files *outer* have come to."""
    before = tuple((str(int(key) + 1), value) for key, value in outer.known if key.isdigit())
    return Variable(items=Items((("0", Value.literal(path)), *before), outer.others))


READING = Reading()


@dataclass(slots=True)
class State:
    """Everything that commands read and change. Mutable: :meth:`copy` before two ways part."""

    frames: list[dict[str, Variable]] = field(default_factory=lambda: [{}])
    positional: tuple[Field, ...] = ()
    functions: dict[str, tuple[Function, ...]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    options: frozenset[str] = frozenset()
    files: dict[FileKey, Value] = field(default_factory=dict)
    command_files: dict[str, CommandFile] = field(default_factory=dict)
    descriptors: dict[int, Channel] = field(default_factory=lambda: {0: NULL, 1: LOG, 2: ERRORS})
    directory: Value = EMPTY
    last_argument: Value = EMPTY
    status: int | None = 0
    traps: dict[str, Value] = field(default_factory=dict)
    exported_functions: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    dead: bool = False
    absent: frozenset[Label] = frozenset()
    """Labels whose value is empty on this way: a test has said so. Nothing of them can be seen."""
    masks: Masks = NO_MASKS
    """What this script has registered to be hidden in the log."""
    reading: Reading = READING
    jobs: tuple[Masks, ...] = ()
    """What each job in the background registers, until somebody waits for it."""

    def copy(self) -> State:
        """An independent state that knows the same."""
        return State(
            [dict(frame) for frame in self.frames],
            self.positional,
            dict(self.functions),
            dict(self.aliases),
            self.options,
            dict(self.files),
            dict(self.command_files),
            dict(self.descriptors),
            self.directory,
            self.last_argument,
            self.status,
            dict(self.traps),
            self.exported_functions,
            self.disabled,
            self.dead,
            self.absent,
            self.masks,
            self.reading,
            self.jobs,
        )

    def become(self, other: State) -> None:
        """Takes over what *other* knows."""
        for name in State.__slots__:
            setattr(self, name, getattr(other, name))

    def listen(self, other: State) -> None:
        """Takes over what the runner has made of the lines printed until *other*: masks, and how it reads on."""
        self.masks, self.reading = other.masks, other.reading

    # --- variables

    def lookup(self, name: str) -> Variable | None:
        """The variable that *name* means here: the innermost one (scoping is dynamic)."""
        for frame in reversed(self.frames):
            found = frame.get(name)
            if found is not None:
                return found
        return None

    def assign(self, name: str, variable: Variable) -> None:
        """Sets the innermost variable *name*, or a global one."""
        for frame in reversed(self.frames):
            if name in frame:
                frame[name] = variable
                return
        self.frames[0][name] = variable

    def remove(self, name: str) -> None:
        """Unsets the innermost variable *name*; one of a function stays local and unset."""
        for frame in reversed(self.frames):
            if name in frame:
                frame[name] = UNSET
                return
        self.frames[0][name] = UNSET

    def visible(self) -> dict[str, Variable]:
        """All variables by name."""
        if len(self.frames) == 1:
            return self.frames[0]
        merged: dict[str, Variable] = {}
        for frame in self.frames:
            merged.update(frame)
        return merged

    def exported(self) -> dict[str, Value]:
        """The environment that a program started here gets."""
        return {
            name: variable.plain()
            for name, variable in self.visible().items()
            if variable.exported and variable.items is None and not (variable.unset and variable.value == EMPTY)
        }

    # --- joining

    def joined(self, other: State) -> State:
        """What holds whichever of the two ways was taken."""
        if self.dead or other.dead:
            return other if self.dead else self
        joined = self.copy()
        joined.frames = [_join_frames(a, b) for a, b in zip(self.frames, other.frames, strict=False)]
        joined.positional = join_fields(self.positional, other.positional)
        for name, functions in other.functions.items():
            mine = joined.functions.get(name, ())
            joined.functions[name] = mine if mine == functions else tuple(dict.fromkeys((*mine, *functions)))
        joined.aliases = {**other.aliases, **self.aliases}
        joined.options = self.options | other.options
        _join_maps(joined.files, other.files)
        for path, content in other.command_files.items():
            mine_file = joined.command_files.get(path)
            joined.command_files[path] = content if mine_file is None else mine_file.joined(content)
        for number, channel in other.descriptors.items():
            if joined.descriptors.get(number, NULL).kind in ("null", "log"):
                joined.descriptors[number] = channel
        joined.directory = self.directory | other.directory
        joined.last_argument = self.last_argument | other.last_argument
        joined.status = self.status if self.status == other.status else None
        _join_maps(joined.traps, other.traps)
        joined.exported_functions = self.exported_functions | other.exported_functions
        joined.disabled = self.disabled & other.disabled
        joined.absent = self.absent & other.absent
        joined.masks = self.masks.joined(other.masks)
        joined.reading = self.reading.joined(other.reading)
        joined.jobs = self.jobs if self.jobs == other.jobs else (NO_MASKS,)
        return joined

    def widened(self, other: State) -> State:
        """Like :meth:`joined`, giving up what still changes, so that loops end."""
        joined = self.joined(other)
        for frame, before in zip(joined.frames, self.frames, strict=False):
            for name, variable in frame.items():
                if variable != before.get(name):
                    items = variable.items
                    if items is not None:
                        items = Items((), items.everything().opaque(), items.other_keys.opaque())
                    frame[name] = replace(variable, value=_blurred(variable.value), items=items)
        for key, value in joined.files.items():
            if value != self.files.get(key):
                joined.files[key] = _blurred(value)
        if joined.positional != self.positional:
            joined.positional = (Field(join(one.value for one in joined.positional).opaque(), "list"),)
        if joined.directory != self.directory:
            joined.directory = _blurred(joined.directory)
        if joined.last_argument != self.last_argument:
            joined.last_argument = _blurred(joined.last_argument)
        return joined


def _blurred(value: Value) -> Value:
    taints = value.taints
    return Value(((Hole(taints),),)) if taints else UNKNOWN


def _join_frames(left: dict[str, Variable], right: dict[str, Variable]) -> dict[str, Variable]:
    if left == right:
        return left
    joined = dict(left)
    for name, variable in right.items():
        mine = left.get(name)
        if mine is None:
            joined[name] = variable.joined(UNSET)
        elif mine is not variable:
            joined[name] = mine.joined(variable)
    for name, variable in left.items():
        if name not in right:
            joined[name] = variable.joined(UNSET)
    return joined


def _join_maps(into: dict[FileKey, Value] | dict[str, Value], other: dict[FileKey, Value] | dict[str, Value]) -> None:
    target: dict[object, Value] = into  # type: ignore[assignment]
    for key, value in other.items():
        mine = target.get(key)
        target[key] = value if mine is None else mine | value
