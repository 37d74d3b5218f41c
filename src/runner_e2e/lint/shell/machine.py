"""What all parts of the interpreter share: the text being run, the budget, the findings; and who runs what.

:class:`Machine` is the lower half: expansion, builtins and programs are written against it, and
:mod:`interpreter` completes it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.command_files import append
from runner_e2e.lint.shell.console import changes_reading, has_commands, read_console
from runner_e2e.lint.shell.ir import OUT_OF_TIME, ExhaustedError, Foreign
from runner_e2e.lint.shell.results import (
    ArgvLeak,
    Call,
    Files,
    Print,
    Publication,
    ShellOptions,
    TracePoint,
    Unanalysable,
    new_serial,
)
from runner_e2e.lint.shell.state import READING, CommandFile
from runner_e2e.lint.values import Hole, Step, Taint, Value, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.lint.masks import Masks
    from runner_e2e.lint.shell.ir import Assignment, Command, Redirection, Sequence
    from runner_e2e.lint.shell.results import PrintTarget
    from runner_e2e.lint.shell.state import Channel, Field, FileKey, State
    from runner_e2e.lint.source import Source
    from runner_e2e.lint.values import Text

__all__ = ["DISTINCTIVE", "ExhaustedError", "Invocation", "Machine", "Recorder", "ShellStart", "visible_taints"]

DISTINCTIVE = 8
"""Characters of a value that give it away."""

_MAX_FINDINGS = 2_000


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command about to run: its arguments (name first), the state it changes, its place, its environment."""

    fields: tuple[Field, ...]
    state: State
    at: Command
    environment: Mapping[str, Value]

    @property
    def name(self) -> str:
        """The last part of the path of the program; empty when it is not known."""
        return (self.fields[0].value.constant or "").rsplit("/", 1)[-1]

    @property
    def span(self) -> tuple[int, int]:
        """Where the whole command stands."""
        return self.at.start, self.at.end

    def running(self, fields: Iterable[Field], environment: Mapping[str, Value] | None = None) -> Invocation:
        """Another command at the same place."""
        given = self.environment if environment is None else environment
        return Invocation(tuple(fields), self.state, self.at, given)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellStart:
    """How a shell process is started: dialect (``bash`` or ``sh``), options, parameters; *span* of its program.

    *name*: the path of a script as it was given, which is ``$0``; empty for a program that is no file.
    """

    dialect: str
    name: str = ""
    flags: frozenset[str] = frozenset()
    positional: tuple[Field, ...] = ()
    span: tuple[int, int]


def visible_taints(value: Value) -> frozenset[Taint]:
    """The labels of *value* of which a distinctive piece can stand in it."""
    found = {
        taint
        for piece in value.pieces()
        if isinstance(piece, Hole) and piece.taints and (piece.longest is None or piece.longest >= DISTINCTIVE)
        for taint in piece.taints
    }
    if not found:
        return frozenset()
    return value.taints & found if len(found) == len(value.taints) else frozenset(_surest(found))


def _surest(taints: set[Taint]) -> list[Taint]:
    best: dict[object, Taint] = {}
    for taint in taints:
        known = best.get(taint.label)
        if known is None or taint.confidence > known.confidence:
            best[taint.label] = taint
    return list(best.values())


class Recorder:
    """Collects findings, each place once."""

    def __init__(self) -> None:
        self.leaks: dict[tuple[int, int, int], ArgvLeak] = {}
        self.prints: dict[tuple[int, int, int, str], Print] = {}
        self.publications: dict[tuple[int, int, int, str], Publication] = {}
        self.unanalysable: dict[tuple[int, int, str], Unanalysable] = {}
        self.masks: dict[Value, None] = {}
        self.calls: dict[tuple[int, int, int, str], Call] = {}
        self.trace: list[TracePoint] = []

    def leak(self, found: ArgvLeak) -> None:
        """Adds a leak; the surer one of two at the same place stays."""
        key = (id(found.origin), found.start, found.end)
        known = self.leaks.get(key)
        if known is None and len(self.leaks) < _MAX_FINDINGS:
            self.leaks[key] = found
        elif known is not None:
            best: dict[object, Taint] = {taint.label: taint for taint in known.taints}
            for taint in found.taints:
                other = best.get(taint.label)
                if other is None or taint.confidence > other.confidence:
                    best[taint.label] = taint
            merged = frozenset(best.values())
            if merged != known.taints:
                surer = max(t.confidence for t in found.taints) > max(t.confidence for t in known.taints)
                base = found if surer else known
                self.leaks[key] = ArgvLeak(
                    origin=base.origin,
                    start=base.start,
                    end=base.end,
                    command_start=base.command_start,
                    command_end=base.command_end,
                    command=base.command,
                    argument=base.argument,
                    taints=merged,
                    advice=base.advice,
                )


class Machine(ABC):
    """The shared half of the interpreter. *source* is the text whose commands are being run."""

    def __init__(self, *, options: ShellOptions, files: Files, source: Source) -> None:
        self.options = options
        self.files = files
        self.source = source
        self.bash = options.shell == "bash"
        self.found = Recorder()
        self.steps = 0
        self.conditions = 0
        self.depth = 0
        self.starting = False  # the file that ``BASH_ENV`` names is being run
        self.process_depth = 0  # programs in other languages that start one another
        self.serial = new_serial()
        self._fresh = 0
        self._next_clock = 256
        self.initial_environment: Mapping[str, Value] = {}
        self.calls: list[str] = []
        self.exits: list[State] = []
        self.returns: list[State] = []
        self.loops: list[tuple[list[State], list[State]]] = []
        self.suspects: list[State] = []  # where an error may end the shell, when a trap waits for it
        self.defined: set[str] = set()  # names of functions, wherever they are defined
        self.trap_sites: dict[Value, Command] = {}
        self.site: tuple[Source, Command] | None = None  # the call of a function whose text was made elsewhere
        self.input_spans: dict[FileKey, tuple[int, int]] = {}  # where the text of a here-document stands
        self.declarations: list[Assignment] = []
        self.coprocesses: list[tuple[Command, int, int]] = []
        self.arguments: tuple[Field, ...] = ()
        # The ``>(…)`` of the running command: they read what was written when it has ended.
        self.readers: list[tuple[FileKey, Sequence]] = []

    # --- budget

    def tick(self, cost: int = 1) -> None:
        """Counts *cost* steps. Raises :class:`ExhaustedError`."""
        self.steps += cost
        if self.steps > self.options.max_steps:
            raise ExhaustedError("too many steps to follow")
        if self.steps >= self._next_clock and self.options.deadline is not None:
            self._next_clock = self.steps + 256
            if time.process_time() > self.options.deadline:
                raise ExhaustedError(OUT_OF_TIME)

    def fresh(self) -> int:
        """A number not given before."""
        self._fresh += 1
        return self._fresh

    def symbol(self, name: str) -> Value:
        """A text that is not known, but always the same for one *name*."""
        return Value(((Hole(frozenset(), name),),))

    def identity(self, what: str) -> str:
        """The symbol of a text, called *what*, that is made now: no other one has it, of this or another analysis.

        A place does not tell texts apart, since the same script may run again with something else.
        """
        return f"{what} {self.serial}:{self.fresh()}"

    # --- findings

    def leak(self, field: Field, call: Invocation, *, command: str, advice: str) -> None:
        """Records that *field* stands in the argument vector of *command*, which *call* starts."""
        at = call.at
        taints = frozenset(taint for taint in visible_taints(field.value) if taint.label not in call.state.absent)
        if not taints:
            return
        source = self.source
        start, end = (field.start, field.end) if field.end > field.start else (at.start, at.end)
        if self.site is not None and not source.exact:
            source, at = self.site
            start, end = at.start, at.end
        if isinstance(at, Foreign) and advice != "possible":
            advice = at.language
        text = source.origin.text[start:end]
        ended = frozenset(
            Taint(taint.label, taint.confidence, _extended(taint, source, start, end, f"argument of {command}"))
            for taint in taints
        )
        self.found.leak(
            ArgvLeak(
                origin=source.origin,
                start=start,
                end=end,
                command_start=at.start,
                command_end=at.end,
                command=command,
                argument=text,
                taints=ended,
                advice=advice,
            )
        )

    def print(self, value: Value, state: State, *, start: int, end: int, target: PrintTarget) -> None:
        """Records text that the log, an annotation or the summary shows, and carries out its workflow commands."""
        masks = state.masks
        if target == "log" and has_commands(value):
            self._print_lines(value, state, start=start, end=end)
        elif value.taints:
            self._printed(value, masks, start=start, end=end, target=target)

    def _print_lines(self, value: Value, state: State, *, start: int, end: int) -> None:
        """Records what stays in the log of text with workflow commands, and carries these out."""
        if not value.taints and state.reading == READING and not changes_reading(value):
            return
        masks = state.masks
        unsecure = state.lookup("ACTIONS_ALLOW_UNSECURE_COMMANDS") is not None
        console = read_console(value, state.reading, unsecure=unsecure)
        state.reading = console.reading
        if not value.taints:
            return
        self.found.masks.update(dict.fromkeys(console.masks))
        state.masks = masks.with_texts(console.masks)
        for name, output in console.outputs:
            self.set_output(name, self.step(output, start, end, f"into the output `{name}`"), state)
        for name, variable in console.environment:
            note = f"into the environment variable `{name}`"
            self._write_entry("/github/env", name, self.step(variable, start, end, note), state)
        for path in console.paths:
            before = state.command_files.get("/github/path", CommandFile())
            state.command_files["/github/path"] = append(before, path + Value.literal("\n"))
        target: PrintTarget = "annotation" if console.annotates else "log"
        for part in console.parts:
            self._printed(part.shown, masks.with_texts(part.masks), start=start, end=end, target=target)

    def _printed(self, value: Value, masks: Masks, *, start: int, end: int, target: PrintTarget) -> None:
        taints = visible_taints(value)
        if taints:
            source, (start, end) = self.shown_place(start, end)
            key = (id(source.origin), start, end, target)
            printed = Print(
                origin=source.origin, start=start, end=end, target=target, taints=taints, text=value, masks=masks
            )
            known = self.found.prints.get(key)
            self.found.prints[key] = printed if known is None else known.joined(printed)

    def publish(self, value: Value, *, start: int, end: int, subject: str) -> None:
        """Records what is sent to GitHub and shown there as a part of *subject*."""
        taints = visible_taints(value)
        if not taints:
            return
        source, (start, end) = self.shown_place(start, end)
        key = (id(source.origin), start, end, subject)
        known = self.found.publications.get(key)
        self.found.publications[key] = Publication(
            origin=source.origin,
            start=start,
            end=end,
            subject=subject,
            taints=taints if known is None else merged(taints | known.taints),
        )

    def shown_place(self, start: int, end: int) -> tuple[Source, tuple[int, int]]:
        """Where a person finds ``[start, end)`` of the running text: at the call, when the text was made there."""
        if self.site is None or self.source.exact:
            return self.source, (start, end)
        source, at = self.site
        return source, (at.start, at.end)

    @staticmethod
    def set_output(name: str, value: Value, state: State) -> None:
        """The old workflow command ``set-output``, which works like a line in ``$GITHUB_OUTPUT``."""
        Machine._write_entry("/github/output", name, value, state)

    @staticmethod
    def _write_entry(file: str, name: str, value: Value, state: State) -> None:
        line = Value.literal(f"{name}<<\0\n") + value + Value.literal("\n\0\n")
        state.command_files[file] = append(state.command_files.get(file, CommandFile()), line)

    def give_up(self, start: int, end: int, reason: str, taints: frozenset[Taint] = frozenset()) -> None:
        """Records a stretch that is not followed; *taints* are in its reach."""
        self.found.unanalysable.setdefault(
            (start, end, reason),
            Unanalysable(origin=self.source.origin, start=start, end=end, reason=reason, taints=taints),
        )

    def step(self, value: Value, start: int, end: int, note: str) -> Value:
        """*value* after one more place of its way."""
        if not value.taints or end <= start:
            return value
        return value.through(self.source.origin, start, end, note)

    # --- completed by the interpreter

    @abstractmethod
    def execute(self, command: Command, state: State) -> None:
        """Runs *command*, changing *state*."""

    @abstractmethod
    def branch(self, command: Command, state: State) -> tuple[State, State]:
        """Runs *command* as a condition: what holds when it succeeds, and when it fails. Either may be dead."""

    @abstractmethod
    def capture(self, body: Sequence, state: State) -> Value:
        """Standard output of *body*, run in a subshell of *state*."""

    @abstractmethod
    def expand_again(self, text: Value, state: State, at: tuple[int, int]) -> Value:
        """*text*, expanded like one in double quotes, as ``PS4`` and ``${name@P}`` are."""

    @abstractmethod
    def subshell(self, body: Command, state: State, descriptors: Mapping[int, Channel] | None = None) -> None:
        """Runs *body* so that only files outlive it."""

    @abstractmethod
    def call(self, call: Invocation) -> None:
        """Runs a command as the shell would resolve its name. ``call.environment``: only what stands before it."""

    @abstractmethod
    def start(self, call: Invocation) -> None:
        """Runs a program in a new process."""

    @abstractmethod
    def call_builtin(self, name: str, call: Invocation) -> None:
        """Runs the builtin *name*."""

    @abstractmethod
    def assign(self, assignment: Assignment, state: State) -> None:
        """Carries out one assignment."""

    @abstractmethod
    def source_of(self, text: Text, span: tuple[int, int]) -> Source:
        """A source for program text that stands, or was made, at *span*."""

    @abstractmethod
    def run_source(self, source: Source, state: State, at: tuple[int, int]) -> None:
        """Parses and runs *source* in this shell."""

    @abstractmethod
    def stream(self, value: Value, state: State) -> Channel:
        """A channel to read *value* from."""

    @abstractmethod
    def settle(self, state: State, ends: list[State]) -> None:
        """*state* becomes any of *ends*."""

    @abstractmethod
    def run_text(self, text: Value, state: State, span: tuple[int, int]) -> None:
        """Runs program text that stands at *span* in this very shell (``eval``, ``source``, a trap)."""

    @abstractmethod
    def run_shell(self, program: Value | Source, call: Invocation, start: ShellStart) -> None:
        """Runs program text in a new shell process."""

    @abstractmethod
    def redirect(self, redirections: tuple[Redirection, ...], state: State, *, external: bool = False) -> None:
        """Applies redirections to the descriptors of *state*."""


def _extended(taint: Taint, source: Source, start: int, end: int, note: str) -> Step:
    last = taint.trail
    if last is not None and last.origin is source.origin and (last.start, last.end) == (start, end):
        return last
    return Step(source.origin, start, end, note, last)
