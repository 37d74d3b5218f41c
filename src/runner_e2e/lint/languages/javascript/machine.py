"""What all parts of the interpreter share: what is known, how ways part and join, properties, calls.

The state of the program is in cells. A journal notes what a cell held before it was written, so that a way can be
taken back; the ways that were taken are joined cell by cell. What the process itself knows (environment, files) is
kept by :class:`~runner_e2e.lint.languages.process.Process` in the same rhythm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field, replace
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.values import (
    ANY,
    UNDEFINED,
    Any,
    Cell,
    Closure,
    Js,
    Thing,
    any_with,
    either,
    of_text,
    taints_of,
    text_of,
)
from runner_e2e.lint.languages.pieces import at_most
from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import Confidence, Value, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from runner_e2e.lint.languages.process import Process, Saved
    from runner_e2e.lint.source import Source
    from runner_e2e.lint.tree import Node
    from runner_e2e.lint.values import Taint

__all__ = ["Call", "Frame", "Loop", "Machine", "Passed", "Scope", "Way"]

_MAX_CALLS = 40
_MAX_RECURSION = 3


@dataclass(frozen=True, slots=True)
class Passed:
    """An argument and where it stands; *many*: any number of them (a spread of unknown length)."""

    value: Js
    start: int
    end: int
    many: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """The call at ``[start, end)`` of the program that *machine* runs; *name* is the callee as written."""

    machine: Machine
    this: Js
    arguments: tuple[Passed, ...]
    start: int
    end: int
    name: str = ""

    def passed(self, index: int) -> Passed:
        """The argument at *index*; ``undefined`` where none is given."""
        for position, one in enumerate(self.arguments):
            if one.many:
                rest = either([UNDEFINED, *(other.value for other in self.arguments[position:])])
                return Passed(rest, one.start, one.end)
            if position == index:
                return one
        return Passed(UNDEFINED, self.start, self.end)

    def arg(self, index: int) -> Js:
        """The value of the argument at *index*."""
        return self.passed(index).value

    def text(self, index: int) -> Value:
        """The argument at *index* as a text."""
        return text_of(self.arg(index))

    def number(self, index: int) -> float | None:
        """The argument at *index*, when it is a known number."""
        return self.arg(index).number

    def given(self, index: int) -> bool:
        """Whether an argument at *index* may be given."""
        return index < len(self.arguments) or any(one.many for one in self.arguments)

    @property
    def thing(self) -> Thing | None:
        """The object whose method is called, when it is one."""
        return self.this.thing

    def thing_at(self, index: int) -> Thing | None:
        """The argument at *index*, when it is an object."""
        return self.arg(index).thing

    def with_arguments(self, *values: Js) -> Call:
        """The same call with other arguments, which stand where the call does."""
        return replace(self, arguments=tuple(Passed(value, self.start, self.end) for value in values))


class Scope:
    """Variables by name, and the scope around. *function*: a function's own, where ``var`` belongs.

    *captured*: a function that was made in it may read it later.
    """

    __slots__ = ("captured", "cells", "function", "parent")

    def __init__(self, parent: Scope | None, *, function: bool = False) -> None:
        self.cells: dict[str, Cell] = {}
        self.parent = parent
        self.function = function
        self.captured = False

    def capture(self) -> None:
        """Keeps the variables of this scope, and of those around it, for a function."""
        scope: Scope | None = self
        while scope is not None and not scope.captured:
            scope.captured = True
            scope = scope.parent

    def leave(self) -> None:
        """Ends the scope: what nobody has captured need not be joined where ways meet."""
        if not self.captured:
            for cell in self.cells.values():
                cell.dead = True

    def find(self, name: str) -> Cell | None:
        """The variable that *name* means here."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.cells.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None


@dataclass(frozen=True, slots=True)
class Way:
    """The end of one way through the program: cells that it wrote, the world then, and a value."""

    cells: dict[Cell, Js | None]
    world: Saved
    value: Js = UNDEFINED


@dataclass(slots=True)
class Frame:
    """A function that runs: where its ways end, and what it yields. *level*: its journal."""

    level: int
    this: Js
    arguments: tuple[Passed, ...] = ()
    returns: list[Way] = field(default_factory=list)
    yields: list[Js] = field(default_factory=list)
    closure: Closure | None = None


@dataclass(slots=True)
class Loop:
    """A loop or ``switch`` that runs: where ``break`` and ``continue`` lead."""

    level: int
    labels: frozenset[str]
    is_loop: bool
    breaks: list[Way] = field(default_factory=list)
    continues: list[Way] = field(default_factory=list)


class Machine(ABC):
    """The shared half of the interpreter; :mod:`.expressions` and :mod:`.statements` complete it."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.live = True
        self.journals: list[dict[Cell, Js | None]] = [{}]
        self.globals = Scope(None, function=True)
        self.scope = self.globals
        self.frames: list[Frame] = [Frame(0, UNDEFINED)]
        self.loops: list[Loop] = []
        self.tries: list[tuple[int, list[Way]]] = []
        self.ends: list[Saved] = []
        self.modules: dict[str, Js] = {}
        self.path = process.path
        self.unbounded = 0
        self.wrapped_require = False
        self.pending_labels: dict[int, frozenset[str]] = {}
        self.completion = UNDEFINED
        """The value of the expression that was run last as a statement."""

    @property
    def source(self) -> Source:
        """The text whose code runs."""
        return self.process.source

    # --- cells and ways

    def write(self, cell: Cell, value: Js | None, start: int = 0, end: int = 0) -> None:
        """Sets a variable or property (None: removes it)."""
        self.journals[-1].setdefault(cell, cell.value)
        cell.value = value
        cell.start, cell.end = start, end

    def here(self, level: int, value: Js = UNDEFINED) -> Way:
        """The way up to here, since the journal *level* was opened."""
        cells = {cell: cell.value for journal in self.journals[level:] for cell in journal}
        return Way(cells, self.process.save(), value)

    def take_back(self, world: Saved) -> None:
        """Undoes what the last journal notes, and closes it."""
        for cell, old in self.journals.pop().items():
            cell.value = old
        self.process.restore(world)

    def join(self, ways: Sequence[Way]) -> Js:
        """Goes on from any of *ways*; the values they ended with. Without a way nothing goes on."""
        if not ways:
            self.live = False
            return UNDEFINED
        self.live = True
        if len(ways) == 1:
            for cell, value in ways[0].cells.items():
                self.write(cell, value, cell.start, cell.end)
        else:
            for cell in dict.fromkeys(cell for way in ways for cell in way.cells if not cell.dead):
                values = [way.cells.get(cell, cell.value) for way in ways]
                new = None if all(value is None for value in values) else either(dict.fromkeys(values))
                if new != cell.value:
                    self.write(cell, new, cell.start, cell.end)
        self.process.restore(ways[0].world)
        if len(ways) > 1:
            self.process.merge(way.world for way in ways[1:])
        return either(dict.fromkeys(way.value for way in ways))

    def split(self, ways: Iterable[Callable[[], Js]]) -> Js:
        """Goes each of *ways* from here, and on from wherever they end."""
        before = self.process.save()
        ended: list[Way] = []
        for way in ways:
            level = len(self.journals)
            self.journals.append({})
            value = way()
            if self.live:
                ended.append(self.here(level, value))
            self.take_back(before)
            self.live = True
        return self.join(ended)

    def perhaps(self, way: Callable[[], Js]) -> Js:
        """Goes *way*, or not."""
        return self.split((lambda: UNDEFINED, way))

    def throw(self, value: Js) -> None:
        """Ends this way: what catches it goes on."""
        if self.tries:
            level, ways = self.tries[-1]
            ways.append(self.here(level, value))
        else:
            self.ends.append(self.process.save())
        self.live = False

    def exit(self) -> None:
        """Ends the process."""
        self.ends.append(self.process.save())
        self.live = False

    # --- labels

    def step(self, value: Js, start: int, end: int, note: str) -> Js:
        """*value* after one more place of its way."""
        if value.text is not None and value.text.taints:
            value = Js(self.process.step(value.text, start, end, note), value.atoms)
        if any(isinstance(atom, Any) and atom.taints for atom in value.atoms):
            atoms = tuple(
                self._step_any(atom, start, end, note) if isinstance(atom, Any) else atom for atom in value.atoms
            )
            value = Js(value.text, atoms)
        return value

    def _step_any(self, atom: Any, start: int, end: int, note: str) -> Any:
        return Any(self.process.step(Value.of(atom.taints), start, end, note).taints) if atom.taints else atom

    def _given(self, call: Call) -> frozenset[Taint]:
        """What a call may read from its arguments; from `process.env`, every variable."""
        found = {taint for one in call.arguments for taint in taints_of(one.value)}
        if any(thing.kind == "environment" for one in call.arguments for thing in one.value.things):
            found.update(taint for value in self.process.environment().values() for taint in value.taints)
        return merged(found)

    def possible(self, call: Call, reason: str) -> Js:
        """A call of something that is not known: it may do anything with what it is given."""
        taints = self._given(call)
        self.call_back(call, any_with(taints, Confidence.LOW))
        for one in call.arguments:
            found = taints_of(one.value)
            if found:
                value = Value.of(found).weakened(Confidence.LOW)
                launch = Launch(start=call.start, end=call.end)
                self.process.leak(Argument(value, one.start, one.end), launch, command=reason, advice="possible")
        return any_with(merged(taints | taints_of(call.this)), Confidence.LOW)

    def harmless(self, call: Call) -> Js:
        """A call of something that starts no process: what it gives may hold what it got."""
        taints = self._given(call)
        self.call_back(call, any_with(taints, Confidence.LOW))
        return any_with(merged(taints | taints_of(call.this)), Confidence.LOW)

    def call_back(self, call: Call, value: Js) -> None:
        """Functions given to a call may be called, with *value*."""
        for one in call.arguments:
            for thing in one.value.things:
                if thing.is_function:
                    self.perhaps(lambda thing=thing: self.call(thing, call.with_arguments(value, value)))  # type: ignore[misc]

    # --- properties

    @abstractmethod
    def get(self, value: Js, name: Value) -> Js:
        """The property *name* of *value*."""

    @abstractmethod
    def call_method(self, owner: Js, name: Value, call: Call) -> Js:
        """Calls the method *name* of *owner*."""

    @abstractmethod
    def copy_properties(self, target: Thing, value: Js) -> None:
        """``...value`` and ``Object.assign``: the properties of *value* become those of *target*."""

    @abstractmethod
    def names_of(self, value: Js) -> tuple[list[Js], Js | None]:
        """The names of the properties of *value*: those known, and any others."""

    @abstractmethod
    def run_text(self) -> Js:
        """Runs the current source in the current scope (``eval``)."""

    @abstractmethod
    def builtin(self, name: str) -> Js | None:
        """The global *name* that is built in, None when there is none."""

    @abstractmethod
    def evaluate(self, node: Node) -> Js:
        """The value of an expression."""

    @abstractmethod
    def run_body(self, node: Node) -> None:
        """Runs the statements of a function."""

    @abstractmethod
    def bind(self, pattern: Node, value: Js, *, kind: str) -> None:
        """Gives the variables of *pattern* their values."""

    def set_property(  # noqa: PLR0913 - what, where, how
        self, thing: Thing, name: Value, value: Js, start: int, end: int, *, sure: bool = True
    ) -> None:
        """Sets a property; *sure*: no other object may be meant."""
        if thing.kind == "environment":
            text = text_of(value)
            for one in name.constants or ():
                sure = sure and name.constant is not None
                before = None if sure else self.process.variable(one)
                self.process.set_variable(one, text if before is None else text | before)
            return
        key = name.constant
        value = self.step(value, start, end, f"assigned to a property{f' {key}' if key else ''}")
        if key is None or (self.unbounded and thing.kind == "array" and key.isdigit() and key not in thing.cells):
            before_others = thing.others.value
            self.write(thing.others, value if before_others is None else either([before_others, value]), start, end)
            return
        cell = thing.cells.get(key)
        if cell is None:
            cell = thing.cells[key] = Cell()
        self.write(cell, value if sure else either([cell.value, value]), start, end)

    def append_element(self, thing: Thing, value: Js, start: int, end: int) -> None:
        """Adds an element at the end of an array."""
        if self.unbounded or thing.others.value is not None:
            before = thing.others.value
            new = value if before is None else either([before, value])
            if new != before:
                self.write(thing.others, new, start, end)
            return
        count = sum(1 for name, cell in thing.cells.items() if cell.value is not None and name.isdigit())
        cell = thing.cells.setdefault(str(count), Cell())
        self.write(cell, value, start, end)

    # --- calls

    def call_value(self, callee: Js, call: Call) -> Js:
        """Calls whatever *callee* may be."""
        targets: list[Callable[[], Js]] = []
        for atom in callee.atoms:
            if isinstance(atom, Thing):
                targets.append(lambda atom=atom: self.call(atom, call))  # type: ignore[misc]
            elif isinstance(atom, Any):
                targets.append(lambda: self.possible(call, call.name or "a function that is not known"))
        if not targets:
            return self.possible(call, call.name or "a function that is not known") if callee.text is not None else ANY
        return targets[0]() if len(targets) == 1 else self.split(targets)

    def call(self, thing: Thing, call: Call) -> Js:
        """Calls an object."""
        self.process.tick()
        if thing.native is not None:
            return thing.native(call)
        if isinstance(thing.data, Closure):
            return self.call_closure(thing.data, call)
        return self.possible(call, call.name or "a function that is not known")

    def call_closure(self, closure: Closure, call: Call) -> Js:
        """Runs a function of the program."""
        same = sum(1 for frame in self.frames if frame.closure is closure)
        if len(self.frames) > _MAX_CALLS or same > _MAX_RECURSION:
            taints = merged(taint for one in call.arguments for taint in taints_of(one.value))
            if taints:
                self.process.give_up(call.start, call.end, f"the recursion of {call.name} is not followed to its end")
            return any_with(taints, Confidence.LOW)
        if closure.source is self.source:
            return self._run_closure(closure, call)
        assert closure.source is not None
        with self.process.within(closure.source):  # type: ignore[arg-type]
            return self._run_closure(closure, call)

    def _run_closure(self, closure: Closure, call: Call) -> Js:
        before = self.process.save()
        saved = self.scope, self.loops
        level = len(self.journals)
        self.journals.append({})
        this = closure.this if closure.this is not None else call.this
        frame = Frame(level, this, call.arguments, closure=closure)
        self.frames.append(frame)
        scope = closure.scope
        assert isinstance(scope, Scope)
        self.scope, self.loops = Scope(scope, function=True), []
        try:
            self._parameters(closure, call)
            body = closure.node.get("body")
            if body is None or body.kind == "statement_block":
                if body is not None:
                    self.run_body(body)
                value = UNDEFINED
            else:
                value = self.evaluate(body)
        finally:
            self.frames.pop()
            self.scope.leave()
            self.scope, self.loops = saved
        return self._returned(frame, value, before)

    def _returned(self, frame: Frame, value: Js, before: Saved) -> Js:
        if self.live and not frame.returns:
            journal = self.journals.pop()
            for cell, old in journal.items():
                self.journals[-1].setdefault(cell, old)
        else:
            if self.live:
                frame.returns.append(self.here(frame.level, value))
            self.take_back(before)
            value = self.join(frame.returns)
        if frame.yields:
            return self.array(frame.yields)
        return value

    def _parameters(self, closure: Closure, call: Call) -> None:
        node = closure.node
        single = node.get("parameter")
        parameters = node.get("parameters")
        patterns = [single] if single is not None else parameters.children if parameters is not None else []
        for index, pattern in enumerate(patterns):
            if pattern.kind == "rest_pattern":
                rest = self.array([])
                things = rest.thing
                assert things is not None
                for one in call.arguments[index:]:
                    if one.many:
                        things.others.value = either(
                            [*([things.others.value] if things.others.value else []), one.value]
                        )
                    else:
                        things.cells[str(len(things.cells))] = Cell(one.value)
                self.bind(pattern.children[0], rest, kind="let")
            else:
                self.bind(pattern, call.arg(index), kind="let")

    # --- objects

    def array(self, elements: Iterable[Js], others: Js | None = None) -> Js:
        """A new array."""
        thing = Thing("array")
        for index, value in enumerate(elements):
            thing.cells[str(index)] = Cell(value)
        thing.others.value = others
        return Js(None, (thing,))

    def object(self, entries: dict[str, Js], others: Js | None = None) -> Js:
        """A new plain object."""
        thing = Thing()
        for name, value in entries.items():
            thing.cells[name] = Cell(value)
        thing.others.value = others
        return Js(None, (thing,))

    def iterate(self, value: Js) -> tuple[list[Js], Js | None]:
        """The elements of something iterable: those known in their order, and any others."""
        thing = value.thing
        if thing is not None and thing.kind in {"array", "set"}:
            return thing.elements(), thing.others.value
        if thing is not None and thing.kind == "map":
            pairs = [
                self.array([of_text(Value.literal(name)), cell.value])
                for name, cell in thing.cells.items()
                if cell.value
            ]
            others = thing.others.value
            return pairs, None if others is None else self.array([ANY, others])
        if value.constant is not None:
            return [of_text(Value.literal(char)) for char in value.constant[:64]], None
        taints = taints_of(value)
        if value.text is not None and not value.atoms:
            return [], of_text(at_most(value.text.opaque(), 1))
        found: list[Js] = []
        for one in value.things:
            found += one.elements()
            if one.others.value is not None:
                found.append(one.others.value)
        rest = [any_with(taints)] if any(isinstance(atom, Any) for atom in value.atoms) else []
        return [], either([*found, *rest]) if found or rest else None
