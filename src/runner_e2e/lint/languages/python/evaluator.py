"""What all parts of the interpreter share: the running function, memory, and objects seen as texts or as lists."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import field, replace
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.memory import Memory
from runner_e2e.lint.languages.python.objects import (
    FALSE,
    NONE,
    NOTHING,
    TRUE,
    UNKNOWN_TEXT,
    Bound,
    Cell,
    Class,
    Constant,
    Dictionary,
    Function,
    Instance,
    Items,
    Named,
    Object,
    Opaque,
    Reference,
    Text,
    Union,
    join_all,
    text,
)
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import UNKNOWN, Confidence, Hole, Value, join, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runner_e2e.lint.languages.process import Process
    from runner_e2e.lint.languages.python.memory import Region
    from runner_e2e.lint.languages.python.syntax import Module
    from runner_e2e.lint.source import Source
    from runner_e2e.lint.values import Taint

__all__ = ["Call", "Evaluator", "Frame", "constant"]

_MAX_DEPTH = 6
_MAX_STEPS = 3
_SYSTEM = -1
_SHOWN = ("__str__", "__fspath__", "__repr__")
_NOWHERE = ast.Constant(None, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def constant(value: object) -> Object:
    """The object for a Python value that is a constant of the program text."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bytes):
        return Text(Value.literal(value.decode("latin-1")), "bytes")
    if value is None:
        return NONE
    return Constant(value, type(value).__name__)


@dataclass(slots=True)
class Frame:
    """A function, class body or module that is being run; *scopes*: those it sees, its own first."""

    module: Module
    scopes: tuple[int, ...]
    returns: Region | None = None
    declared: dict[str, int] = field(default_factory=dict)
    """Names that ``global`` or ``nonlocal`` bind in another scope."""
    loops: list[tuple[Region, Region]] = field(default_factory=list)
    handlers: list[Region] = field(default_factory=list)
    yields: list[Object] | None = None
    node: object = None
    owner: int | None = None
    """The class whose body is being run."""
    method_of: int | None = None
    """The class that the running function is a method of."""
    receiver: Object | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call as a model sees it. *nodes* are the expressions of the positional arguments, where each has its own."""

    node: ast.expr
    arguments: tuple[Object, ...] = ()
    keywords: Mapping[str, Object] = field(default_factory=dict)
    rest: Object | None = None
    """Any arguments that came of ``*x`` or ``**x`` and are not known one by one."""
    nodes: tuple[ast.expr | None, ...] = ()
    keyword_nodes: Mapping[str, ast.expr] = field(default_factory=dict)

    def get(self, index: int, name: str = "") -> Object | None:
        """The argument at *index* or called *name*; None when it was not given."""
        if 0 <= index < len(self.arguments):
            return self.arguments[index]
        if name and name in self.keywords:
            return self.keywords[name]
        return self.rest

    def node_of(self, index: int, name: str = "") -> ast.expr:
        """The expression of an argument, or the whole call."""
        if 0 <= index < len(self.nodes):
            return self.nodes[index] or self.node
        return self.keyword_nodes.get(name, self.node)

    def behind(self, count: int) -> Call:
        """The call without its first *count* arguments."""
        return replace(self, arguments=self.arguments[count:], nodes=self.nodes[count:])

    def everything(self) -> tuple[Object, ...]:
        """All arguments."""
        return (*self.arguments, *self.keywords.values(), *([self.rest] if self.rest is not None else []))


class Evaluator(ABC):
    """The lower half of the interpreter: no syntax is walked here."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.memory = Memory(process)
        self.frames: list[Frame] = []
        self.folders: list[str] = []
        """Where modules are looked for: ``sys.path``."""
        self.registered: list[Function] = []
        """Functions that a decorator of a library got: the library may call them."""
        self.entered: set[int] = set()
        """Functions that were run, by their nodes."""
        self.replays: dict[int, Callable[[Value], Value]] = {}
        """Processes that were started, by the object that stands for them: what they print for other input."""

    @property
    def frame(self) -> Frame:
        """What is being run."""
        return self.frames[-1]

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> tuple[int, int]:
        """The characters of *node* in the running program."""
        return self.frame.module.span(node)

    # --- completed by the upper half

    @abstractmethod
    def call(self, function: Object, call: Call) -> Object:
        """Calls *function*."""

    @abstractmethod
    def attribute(self, owner: Object, name: str, node: ast.expr) -> Object:
        """The attribute *name* of *owner*."""

    @abstractmethod
    def special(self, one: Object, names: tuple[str, ...]) -> Object | None:
        """What the first of the methods *names* gives that the class of *one* has; None when it has none."""

    @abstractmethod
    def import_module(self, name: str) -> Object:
        """The module *name*: of the repository, run once, or of a library."""

    @abstractmethod
    def run_text(self, source: Source, node: ast.expr, *, expression: bool) -> Object:
        """Runs program text here (``exec``, ``eval``)."""

    @abstractmethod
    def leave(self) -> None:
        """Ends the process, unless something catches the exception."""

    # --- objects

    def content(self, one: Object) -> Cell | None:
        """The cell or the tuple that *one* is, None for anything else."""
        if isinstance(one, Reference):
            return self.memory.cell(one.number)
        return one if isinstance(one, Items) else None

    def put(self, one: Object, cell: Cell) -> None:
        """Changes the object that *one* refers to."""
        if isinstance(one, Reference):
            self.memory.put_cell(one.number, cell)

    def new(self, cell: Cell) -> Reference:
        """A new object."""
        return Reference(self.memory.new(cell))

    def options(self, one: Object) -> tuple[Object, ...]:
        """The objects that *one* may be."""
        return one.options if isinstance(one, Union) else (one,)

    def taints(self, one: Object, depth: int = 0) -> frozenset[Taint]:
        """The labels that can be read from *one*."""
        if isinstance(one, Text):
            return one.value.taints
        if isinstance(one, Opaque):
            return one.taints
        if isinstance(one, Constant | Named | Function | Class) or depth > _MAX_DEPTH:
            return frozenset()
        if isinstance(one, Bound):
            return self.taints(one.receiver, depth + 1)
        found: set[Taint] = set()
        held: Iterable[Object] = one.options if isinstance(one, Union) else self._held(one)
        for inner in held:
            found |= self.taints(inner, depth + 1)
        return merged(found) if found else frozenset()

    def _held(self, one: Object) -> list[Object]:
        cell = self.content(one)
        if isinstance(cell, Items):
            return [*cell.items, *([cell.rest] if cell.rest is not None else [])]
        if isinstance(cell, Dictionary):
            held = [value for _, value in cell.entries]
            return [*held, *(each for each in (cell.others, cell.keys) if each is not None)]
        if isinstance(cell, Instance):
            return [value for _, value in cell.attributes]
        return []

    def opaque(self, objects: Iterable[Object], confidence: Confidence = Confidence.HIGH) -> Object:
        """Something made of *objects* in a way that is not followed."""
        taints = merged(taint for one in objects for taint in self.taints(one))
        if not taints:
            return NOTHING
        return Opaque(Value.of(taints).weakened(confidence).taints)

    # --- texts

    def value(self, one: Object) -> Value:
        """The text of ``str(one)``."""
        if isinstance(one, Text):
            return one.value
        if isinstance(one, Constant):
            shown = str(one.value)
            return Value.literal(shown) if len(shown) < 64 else UNKNOWN
        if isinstance(one, Union):
            return join(self.value(option) for option in one.options)
        if isinstance(one, Reference) and isinstance(cell := self.memory.cell(one.number), Instance):
            shown_as = cell.get(" text")
            if shown_as is None and isinstance(cell.kind, int):
                shown_as = self.special(one, _SHOWN)
            if shown_as is not None and shown_as != one:
                return self.value(shown_as)
        taints = self.taints(one)
        return Value.of(taints) if taints else UNKNOWN

    def as_text(self, one: Object) -> Text | None:
        """*one* as a string: None when it is surely none."""
        if isinstance(one, Text):
            return one
        if isinstance(one, Opaque):
            return Text(Value.of(one.taints)) if one.taints else UNKNOWN_TEXT
        if isinstance(one, Union):
            found = [self.as_text(option) for option in one.options]
            texts = [each for each in found if each is not None]
            return Text(join(each.value for each in texts), texts[0].kind) if texts else None
        if isinstance(one, Reference) and isinstance(cell := self.memory.cell(one.number), Instance):
            shown_as = cell.get(" text")
            if shown_as is None and isinstance(cell.kind, int):
                shown_as = self.special(one, ("__fspath__",))
            if shown_as is not None:
                return self.as_text(shown_as)
            if isinstance(cell.kind, str) and cell.kind.startswith("?"):  # of a library: it may be a text
                taints = self.taints(one)
                return Text(Value.of(taints)) if taints else UNKNOWN_TEXT
        return None

    # --- lists

    def items(self, one: Object) -> Items:
        """What a loop over *one* gets."""
        if isinstance(one, Items):
            return one
        if isinstance(one, Text):
            return self._characters(one)
        if isinstance(one, Union):
            found = [self.items(option) for option in one.options if option != NONE]
            result = found[0] if found else Items()
            for each in found[1:]:
                joined = join_all((result, each))
                assert isinstance(joined, Items)
                result = joined
            return result
        if one == Named("sys.stdin"):
            content = self.process.read_input()
            return Items((), Text(content.opaque() if content.taints else UNKNOWN))
        cell = self.content(one)
        if isinstance(cell, Items):
            return cell
        if isinstance(cell, Dictionary):
            keys = tuple(constant(key) for key, _ in cell.entries)
            others = cell.keys or (UNKNOWN_TEXT if cell.others is not None else None)
            return Items(keys, others)
        if isinstance(cell, Instance) and cell.kind == "file":
            return self.items(self.call(Bound(one, "file.readlines"), Call(node=_NOWHERE)))
        if isinstance(cell, Instance) and isinstance(cell.kind, int):
            looped = self.special(one, ("__iter__",))
            if looped is not None and looped != one:
                return self.items(looped)
            if looped is not None:
                return self._stepped(one)
        taints = self.taints(one)
        return Items((), Opaque(taints))

    def _stepped(self, one: Object) -> Items:
        """What an object gives that is its own iterator, until it ends or a few were taken."""
        region = self.memory.open()
        found: list[Object] = []
        while self.memory.alive and len(found) < _MAX_STEPS:
            following = self.special(one, ("__next__",))
            self.memory.record(region)
            found += [following] if following is not None and self.memory.alive else []
            if following is None:
                break
        self.memory.close(region)
        return Items((), join_all(found)) if found else Items()

    def _characters(self, one: Text) -> Items:
        known = one.value.constant
        if known is not None and len(known) <= 32:
            return Items(tuple(text(character) for character in known))
        # A single character gives nothing away.
        return Items((), Text(Value(((Hole(one.value.taints, "", 1),),))))

    def element(self, items: Items) -> Object:
        """Any element."""
        return join_all([*items.items, *([items.rest] if items.rest is not None else [])])

    @staticmethod
    def concatenated(left: Items, right: Items) -> Items:
        """One list behind the other."""
        if left.rest is None:
            return Items((*left.items, *right.items), right.rest, left.kind)
        rests = [left.rest, *right.items, *([right.rest] if right.rest is not None else [])]
        return Items(left.items, join_all(rests), left.kind)

    # --- dictionaries

    def with_entry(self, cell: Dictionary, key: Object, value: Object) -> Dictionary:
        """*cell* with *value* at *key*."""
        keys = self.known_keys(key)
        if keys is None:
            others = value if cell.others is None else join_all((cell.others, value))
            return Dictionary(cell.entries, others, key if cell.keys is None else join_all((cell.keys, key)))
        entries = dict(cell.entries)
        for one in keys:
            entries[one] = value if len(keys) == 1 or one not in entries else join_all((entries[one], value))
        return Dictionary(tuple(entries.items()), cell.others, cell.keys)

    def mapping(self, value: Object) -> object:
        """What *value* holds; the environment as the dictionary that it is."""
        return self.updated(Dictionary(()), value) if value == Named("os.environ") else self.content(value)

    def updated(self, cell: Dictionary, other: Object) -> Dictionary:
        """*cell* with the entries of *other* put in."""
        if other == Named("os.environ"):
            found: list[tuple[object, Object]] = [(k, Text(v)) for k, v in self.process.environment().items()]
            return Dictionary(tuple({**dict(cell.entries), **dict(found)}.items()), UNKNOWN_TEXT, cell.keys)
        content = self.content(other)
        if isinstance(content, Dictionary):
            entries = {**dict(cell.entries), **dict(content.entries)}
            others = [one for one in (cell.others, content.others) if one is not None]
            keys = [one for one in (cell.keys, content.keys) if one is not None]
            return Dictionary(
                tuple(entries.items()), join_all(others) if others else None, join_all(keys) if keys else None
            )
        if isinstance(content, Items):  # of pairs
            for pair in content.items:
                both = self.items(pair)
                if len(both.items) == 2:
                    cell = self.with_entry(cell, both.items[0], both.items[1])
            if content.rest is None:
                return cell
        if other == NONE:
            return cell
        unknown = Opaque(self.taints(other))
        others = [unknown] if cell.others is None else [cell.others, unknown]
        return Dictionary(cell.entries, join_all(others), unknown)

    @staticmethod
    def known_keys(key: Object) -> tuple[object, ...] | None:
        """What *key* may be, None when that is not known."""
        if isinstance(key, Constant):
            return (key.value,)
        if isinstance(key, Text):
            return key.value.constants
        if isinstance(key, Items) and key.rest is None:
            parts = [Evaluator.known_keys(item) for item in key.items]
            if all(part is not None and len(part) == 1 for part in parts):
                return (tuple(part[0] for part in parts if part),)
        return None

    def entry(self, cell: Dictionary, key: Object) -> Object:
        """What is at *key*."""
        keys = self.known_keys(key)
        if keys is None:
            found = [value for _, value in cell.entries]
            return join_all([*found, *([cell.others] if cell.others is not None else [])])
        known = dict(cell.entries)
        return join_all([known.get(one, cell.others or NOTHING) for one in keys])

    # --- truth

    def truth(self, one: Object) -> bool | None:
        """Whether *one* counts as true; None when that is not known."""
        if isinstance(one, Constant):
            return bool(one.value)
        if isinstance(one, Text):
            truths = {
                True if any(isinstance(piece, str) and piece for piece in each) else (None if each else False)
                for each in one.value.texts
            }
            return truths.pop() if len(truths) == 1 else None
        if isinstance(one, Named | Function | Bound):
            return None if isinstance(one, Named) and one.name.startswith("?") else True
        if isinstance(one, Union):
            answers = {self.truth(option) for option in one.options}
            return answers.pop() if len(answers) == 1 else None
        cell = self.content(one)
        if isinstance(cell, Items):
            return True if cell.items else (False if cell.rest is None else None)
        if isinstance(cell, Dictionary):
            return True if cell.entries else (False if cell.others is None else None)
        return None

    @staticmethod
    def boolean(answer: bool | None) -> Object:
        """The truth value, unknown for None."""
        if answer is None:
            return Union((TRUE, FALSE))
        return TRUE if answer else FALSE

    # --- names

    def lookup(self, name: str) -> Object | None:
        """The variable that *name* means here."""
        for scope in self.frame.scopes:
            found = self.memory.variable(scope, name)
            if found is not None:
                return found
        return None

    def lookup_system(self, name: str) -> Object | None:
        """A variable of ``sys`` that the program can change."""
        return self.memory.variable(_SYSTEM, name)

    def set_system(self, name: str, value: Object) -> None:
        """Changes a variable of ``sys``."""
        self.memory.set_variable(_SYSTEM, name, value)

    def assign_name(self, name: str, value: Object) -> None:
        """Binds *name* in the running function."""
        scope = self.frame.declared.get(name, self.frame.scopes[0])
        self.memory.set_variable(scope, name, value)

    def noted(self, value: Object, node: ast.expr | ast.stmt, note: str) -> Object:
        """*value* after one more place of its way."""
        if isinstance(value, Text) and value.value.taints:
            return Text(self.process.step(value.value, *self.span(node), note), value.kind)
        if isinstance(value, Opaque) and value.taints:
            return Opaque(self.process.step(Value.of(value.taints), *self.span(node), note).taints)
        if isinstance(value, Union):
            return join_all(self.noted(option, node, note) for option in value.options)
        return value

    # --- what is not followed

    def give_up(self, node: ast.expr | ast.stmt, reason: str) -> None:
        """Reports a stretch that is not followed."""
        self.process.give_up(*self.span(node), reason)
