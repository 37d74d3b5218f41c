"""What is known about a running PowerShell program, and how ways part and join."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.powershell.values import Ps, either, elements, shown, taints_of, text_of
from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from runner_e2e.lint.languages.powershell.syntax import Block, Expression, Node, Statement
    from runner_e2e.lint.languages.process import Process, Saved
    from runner_e2e.lint.source import Source

__all__ = ["Bound", "Machine", "State", "Word"]

MAX_CALLS = 24
"""Functions that call functions are followed so deep."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything that is known at one point."""

    frames: tuple[dict[str, Ps], ...]
    world: Saved


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command: its value, where it stands, and the name of the parameter that it gives.

    *places*: where the elements of a list stand that is written in it.
    """

    value: Ps | None
    start: int
    end: int
    parameter: str = ""
    splat: bool = False
    places: tuple[tuple[int, int], ...] = ()

    def arguments(self) -> list[Argument]:
        """The arguments that the value becomes for a program: a list several."""
        if self.value is None:
            return []
        items, others = elements(self.value)
        places = self.places if len(self.places) == len(items) else ((self.start, self.end),) * len(items)
        found = [Argument(text_of(item), *place) for item, place in zip(items, places, strict=True)]
        if others is not None:
            found.append(Argument(others, self.start, self.end, many=True))
        return found


@dataclass(slots=True)
class Bound:
    """The words of a cmdlet by parameter (lower case), and the input of the pipeline."""

    named: dict[str, Word] = field(default_factory=dict)
    rest: list[Word] = field(default_factory=list)
    given: list[Ps] | None = None

    def get(self, *names: str) -> Ps | None:
        """The value of the first of the parameters *names* that is there."""
        word = self.word(*names)
        return word.value if word is not None else None

    def word(self, *names: str) -> Word | None:
        """The word of the first of the parameters *names* that is there."""
        return next((self.named[name] for name in names if name in self.named), None)

    def has(self, name: str) -> bool:
        """Whether a switch is given."""
        return name in self.named


class Machine(ABC):
    """The shared half of the interpreter."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.frames: list[dict[str, Ps]] = [{}]
        self.functions: dict[str, tuple[Block, Source]] = {}
        self.live = True
        self.sinks: list[list[Ps] | None] = [None]
        self.returns: list[list[State]] = [[]]
        self.loops: list[list[State]] = []
        self.ends: list[Saved] = []
        self.depth = 0
        self.locations: list[Value] = []

    # --- ways

    def save(self) -> State:
        """What is known now."""
        return State(tuple(dict(frame) for frame in self.frames), self.process.save())

    def restore(self, state: State) -> None:
        """Back to what was known."""
        self.frames = [dict(frame) for frame in state.frames]
        self.process.restore(state.world)

    def join(self, states: Sequence[State]) -> None:
        """Goes on from any of *states*; from none, nothing goes on."""
        if not states:
            self.live = False
            return
        self.live = True
        self.restore(states[0])
        for other in states[1:]:
            for frame, more in zip(self.frames, other.frames, strict=False):
                for name in frame.keys() | more.keys():
                    if frame.get(name) is not more.get(name):
                        frame[name] = either(frame.get(name, EMPTY), more.get(name, EMPTY))
        if len(states) > 1:
            self.process.merge(state.world for state in states[1:])

    def split(self, ways: Iterable[Callable[[], None]]) -> None:
        """Goes each of *ways* from here, and on from wherever they end."""
        before = self.save()
        ended: list[State] = []
        for way in ways:
            self.restore(before)
            self.live = True
            way()
            if self.live:
                ended.append(self.save())
        self.restore(before)
        self.join(ended)

    # --- variables

    def lookup(self, name: str) -> Ps | None:
        """The variable *name*: functions see those of their callers."""
        for frame in reversed(self.frames):
            found = frame.get(name)
            if found is not None:
                return found
        return None

    def assign(self, name: str, value: Ps, node: Node, *, everywhere: bool = False) -> None:
        """Sets a variable here, or (*everywhere*) that of the script."""
        if isinstance(value, Value) and value.taints:
            value = self.process.step(value, node.start, node.end, f"assigned to ${name}")
        frame = self.frames[0] if everywhere else self.frames[-1]
        frame[name] = value

    # --- output

    def emit(self, value: Ps, start: int, end: int) -> None:
        """Gives a value to whatever takes the output here: the log, or what comes next."""
        sink = self.sinks[-1]
        if sink is not None:
            if len(sink) < 512:
                sink.append(value)
            return
        self.process.print(shown(value) + Value.literal("\n"), start, end)

    def captured(self, run: Callable[[], None]) -> list[Ps]:
        """What *run* gives."""
        sink: list[Ps] = []
        self.sinks.append(sink)
        try:
            run()
        finally:
            self.sinks.pop()
        return sink

    # --- what is not known

    def possible(self, command: str, words: Iterable[Word], start: int, end: int) -> None:
        """Something that is not known is given labelled values: it may start a process with them."""
        for word in words:
            taints = taints_of(word.value) if word.value is not None else frozenset()
            if taints:
                value = Value.of(taints).weakened(Confidence.LOW)
                launch = Launch(start=start, end=end)
                self.process.leak(Argument(value, word.start, word.end), launch, command=command, advice="possible")

    def given_back(self, words: Iterable[Word]) -> Value:
        """What something that is not known gives back: it may hold what it was given."""
        taints = [taint for word in words if word.value is not None for taint in taints_of(word.value)]
        return Value.of(taints).weakened(Confidence.LOW) | UNKNOWN if taints else UNKNOWN

    # --- the environment

    def environment_variable(self, name: str) -> Value:
        """``$env:name``: on Windows the case does not matter, and the machine may have set more than is known."""
        found = self.process.variable(name)
        if found is None:
            lower = name.lower()
            found = next((value for key, value in self.process.environment().items() if key.lower() == lower), None)
        return found if found is not None else UNKNOWN

    # --- completed by the interpreter

    @abstractmethod
    def run(self, statement: Statement) -> None:
        """Runs one statement."""

    @abstractmethod
    def run_all(self, statements: Sequence[Statement]) -> None:
        """Runs statements one after the other."""

    @abstractmethod
    def evaluate(self, expression: Expression) -> Ps:
        """The value of an expression."""

    @abstractmethod
    def call_block(
        self, block: Block, words: Sequence[Word], given: list[Ps] | None, *, item: Ps | None = None
    ) -> None:
        """Runs a block with arguments; *item* is ``$_``."""

    @abstractmethod
    def run_text(self, text: Value, start: int, end: int) -> None:
        """Runs program text (``Invoke-Expression``)."""
