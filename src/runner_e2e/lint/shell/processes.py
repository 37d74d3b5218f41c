"""Programs in other languages as processes of the abstract machine that runs the shell.

A program is run in a state of its own, as a shell process is: it shares files with the script that starts it, has the
environment it is given, and what it starts in turn is run by the same machine.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.languages import ANALYSERS
from runner_e2e.lint.languages.process import Process, Saved
from runner_e2e.lint.shell import shells
from runner_e2e.lint.shell.filesystem import (
    absolute_path,
    path_keys,
    put_file,
    read_channel,
    read_file,
    resolve,
    tainted_names,
    write_channel,
    written,
)
from runner_e2e.lint.shell.ir import Foreign, Simple
from runner_e2e.lint.shell.machine import Invocation, ShellStart
from runner_e2e.lint.shell.state import NULL, UNCAPTURED, Channel, Field, State, Variable
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Taint, Value, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from runner_e2e.lint.languages.process import Argument, Launch
    from runner_e2e.lint.shell.machine import Machine

__all__ = ["run_process"]

_MAX_NESTED = 12


class _Saved(Saved):
    __slots__ = ("state",)

    def __init__(self, state: State) -> None:
        self.state = state


class ShellProcess(Process):
    """A process on *machine*; *state* has its files, its streams and its environment."""

    def __init__(self, machine: Machine, state: State, source: Source) -> None:
        self.machine = machine
        self.state = state
        self.source = source
        self.language = ""

    # --- budget

    def tick(self, cost: int = 1) -> None:
        """See :meth:`Process.tick`."""
        self.machine.tick(cost)

    def identity(self, what: str) -> str:
        """See :meth:`Process.identity`."""
        return self.machine.identity(what)

    @property
    def in_reach(self) -> bool:
        """See :attr:`Process.in_reach`."""
        artifacts = self.machine.files.artifacts
        return (
            (artifacts is not None and artifacts.version > 0)
            or any(value.taints for value in self.source.inserted)
            or any(one.value.taints for one in self.arguments)
            or any(value.taints for value in self.state.files.values())
            or any(value.taints for value in self.state.exported().values())
        )

    # --- texts

    def step(self, value: Value, start: int, end: int, note: str) -> Value:
        """See :meth:`Process.step`."""
        if not value.taints:
            return value
        return self.machine.step(value, *self._span(start, end), note)

    @contextmanager
    def within(self, source: Source) -> Iterator[None]:
        """See :meth:`Process.within`."""
        saved = self.source, self.machine.source
        self.source = self.machine.source = source
        try:
            yield
        finally:
            self.source, self.machine.source = saved

    def source_of(self, text: Value, start: int, end: int) -> tuple[Source, ...]:
        """See :meth:`Process.source_of`."""
        span = self._span(start, end)
        return tuple(self.machine.source_of(one, span) for one in text.texts)

    # --- environment and files

    def environment(self) -> dict[str, Value]:
        """See :meth:`Process.environment`."""
        return self.state.exported()

    def variable(self, name: str) -> Value | None:
        """See :meth:`Process.variable`."""
        found = self.state.lookup(name)
        if found is None or (found.unset and found.value == EMPTY):
            return None
        return found.plain()

    def set_variable(self, name: str, value: Value | None) -> None:
        """See :meth:`Process.set_variable`."""
        if value is None:
            self.state.remove(name)
        else:
            self.state.assign(name, Variable(value, exported=True))

    @property
    def directory(self) -> Value:
        """See :attr:`Process.directory`."""
        return self.state.directory

    def change_directory(self, path: Value) -> None:
        """See :meth:`Process.change_directory`."""
        self.state.directory = Value.any_of(resolve(text, self.state.directory) for text in path.texts)

    def read_file(self, path: Value) -> Value:
        """See :meth:`Process.read_file`."""
        return read_file(self.machine, self.state, path, self.state.exported())

    def write_file(self, path: Value, content: Value, *, append: bool, start: int, end: int) -> None:
        """See :meth:`Process.write_file`."""
        keys = path_keys(path, self.state)
        at = self._span(start, end)
        noted = self.machine.step(content, *at, written(keys[0]) if len(keys) == 1 else "written to a file")
        for key in keys:
            if key == ("/github/summary",):
                self.machine.print(content, self.state, start=at[0], end=at[1], target="summary")
            # One of several files is written: the others keep what they hold.
            before = EMPTY if len(keys) == 1 else self.state.files.get(key, EMPTY)
            put_file(self.state, key, noted | before if before != EMPTY else noted, append_to=append)

    def remove_file(self, path: Value) -> None:
        """See :meth:`Process.remove_file`."""
        keys = path_keys(path, self.state)
        if len(keys) == 1:
            self.state.files.pop(keys[0], None)

    def file_names(self) -> Value:
        """See :meth:`Process.file_names`."""
        return tainted_names(self.state)

    def program_at(self, path: str) -> Source | None:
        """See :meth:`Process.program_at`."""
        key = resolve((path,), self.state.directory)
        written = self.state.files.get(key)
        if written is not None:
            sources = self.source_of(written, 0, len(self.source.text)) if len(written.texts) == 1 else ()
            return sources[0] if sources else None
        find = self.machine.files.find_script
        script = find(absolute_path(path, self.state)) if find is not None else None
        return Source.of_script(script) if script is not None else None

    # --- standard streams

    def read_input(self) -> Value:
        """See :meth:`Process.read_input`."""
        return read_channel(self.state, self.state.descriptors.get(0, NULL))

    def print(self, text: Value, start: int, end: int) -> None:
        """See :meth:`Process.print`."""
        write_channel(self.machine, self.state, 1, text, self._span(start, end))

    def print_error(self, text: Value, start: int, end: int) -> None:
        """See :meth:`Process.print_error`."""
        write_channel(self.machine, self.state, 2, text, self._span(start, end))

    def print_title(self, title: Value, start: int, end: int) -> None:
        """See :meth:`Process.print_title`."""
        if title.taints:
            shown = title if self.tests is None or self.tests.titled else title.weakened(Confidence.LOW)
            number = UNCAPTURED if UNCAPTURED in self.state.descriptors else 1
            write_channel(self.machine, self.state, number, shown + Value.literal("\n"), self._span(start, end))

    def publish(self, value: Value, start: int, end: int, subject: str) -> None:
        """See :meth:`Process.publish`."""
        first, last = self._span(start, end)
        self.machine.publish(value, start=first, end=last, subject=subject)

    # --- other processes

    def start(self, arguments: Sequence[Argument], launch: Launch) -> Value:
        """See :meth:`Process.start`."""
        if not arguments:
            return EMPTY
        at = self._command(launch)
        fields = tuple(self._field(one, at) for one in arguments)
        if fields[0].kind == "list":  # the program is one of them
            fields = (Field(UNKNOWN, "one", at.start, at.end), *fields)
        inner, buffer = self._child(launch)
        environment = self._environment(launch)
        if launch.program is None:
            self.machine.start(Invocation(fields, inner, at, environment))
        else:
            program = replace(fields[0], value=launch.program)
            self.machine.start(Invocation((program, *fields[1:]), inner, at, environment))
            self.leak(arguments[0], launch, command=_shown(launch.program))
        return self._ended(inner, buffer)

    def start_shell(self, program: Argument, launch: Launch) -> Value:
        """See :meth:`Process.start_shell`."""
        at = self._command(launch)
        field = self._field(program, at)
        inner, buffer = self._child(launch)
        shell = Field(launch.program or Value.literal("sh"), "one", at.start, at.end)
        fields = (shell, Field(Value.literal("-c"), "one", at.start, at.end), field)
        call = Invocation(fields, inner, at, self._environment(launch))
        self.machine.tick()
        self.machine.leak(field, call, command=_shown(shell.value), advice="environment")
        start = ShellStart(dialect=shells.NAMES.get(_shown(shell.value), "sh"), span=(field.start, field.end))
        if field.value.constants is not None:
            shells.run_program(self.machine, field.value, call, start)
            return self._ended(inner, buffer)
        ends: list[State] = []
        for text in field.value.texts:
            one = replace(call, state=inner.copy())
            # It is put together by the program: no part of it is the argument of a command where it stands.
            source = Source.of_text(text, self.source.origin, field.start, field.end)
            if any(isinstance(piece, str) for piece in text):
                self.machine.run_shell(source, one, start)
            ends.append(one.state)
        self.machine.settle(inner, ends)
        return self._ended(inner, buffer)

    def leak(self, argument: Argument, launch: Launch, *, command: str, advice: str = "environment") -> None:
        """See :meth:`Process.leak`."""
        at = self._command(launch)
        field = self._field(argument, at)
        self.machine.leak(field, Invocation((field,), self.state, at, {}), command=command, advice=advice)

    def give_up(self, start: int, end: int, reason: str) -> None:
        """See :meth:`Process.give_up`."""
        possible = merged(Taint(one.label, Confidence.LOW, one.trail) for one in self.labels())
        self.machine.give_up(*self._span(start, end), reason, possible)

    def _environment(self, launch: Launch) -> Mapping[str, Value]:
        return self.state.exported() if launch.environment is None else launch.environment

    def _child(self, launch: Launch) -> tuple[State, int | None]:
        """The state that a started program has, and the buffer that gets its output when that is captured."""
        inner = self.state.copy()
        inner.descriptors = {number: self.state.descriptors.get(number, NULL) for number in (0, 1, 2)}
        if launch.standard_input is not None:
            inner.descriptors[0] = self.machine.stream(launch.standard_input, inner)
        buffer: int | None = None
        if launch.output == "capture":
            buffer = self.machine.fresh()
            inner.files[buffer] = EMPTY
            inner.descriptors[1] = Channel("file", buffer)
        elif launch.output == "discard":
            inner.descriptors[1] = NULL
        if launch.directory is not None:
            inner.directory = Value.any_of(resolve(text, inner.directory) for text in launch.directory.texts)
        return inner, buffer

    def _ended(self, inner: State, buffer: int | None) -> Value:
        self.state.files, self.state.command_files = inner.files, inner.command_files
        self.state.listen(inner)
        return inner.files.pop(buffer, EMPTY) if buffer is not None else EMPTY

    def _span(self, start: int, end: int) -> tuple[int, int]:
        first = self.source.start(start)
        return first, max(self.source.end(end), first)

    def _command(self, launch: Launch) -> Simple:
        return Foreign(*self._span(launch.start, launch.end), (), (), (), language=self.language)

    def _field(self, argument: Argument, at: Simple) -> Field:
        span = self._span(argument.start, argument.end) if argument.end > argument.start else (at.start, at.end)
        return Field(argument.value, "list" if argument.many else "one", *span)

    # --- branches

    def save(self) -> Saved:
        """See :meth:`Process.save`."""
        return _Saved(self.state.copy())

    def restore(self, saved: Saved) -> None:
        """See :meth:`Process.restore`."""
        assert isinstance(saved, _Saved)
        self.state.become(saved.state.copy())

    def merge(self, others: Iterable[Saved]) -> None:
        """See :meth:`Process.merge`."""
        joined = self.state
        for other in others:
            assert isinstance(other, _Saved)
            joined = joined.joined(other.state)
        self.state.become(joined)


def _shown(program: Value) -> str:
    return (program.constant or "a program").rsplit("/", 1)[-1]


def run_process(machine: Machine, state: State, language: str, process: ShellProcess) -> None:
    """Runs the analyser of *language* on *process*; *state* takes over the files that it leaves."""
    saved, machine.source = machine.source, process.source
    sited, machine.site = machine.site, None
    machine.process_depth += 1
    process.language = language
    try:
        if machine.process_depth > _MAX_NESTED:
            machine.give_up(*_whole(process.source), "nested too deeply to follow")
        else:
            ANALYSERS[language](process)
    finally:
        machine.process_depth -= 1
        machine.source, machine.site = saved, sited
    state.files, state.command_files = process.state.files, process.state.command_files
    state.listen(process.state)


def _whole(source: Source) -> tuple[int, int]:
    return source.start(0), source.end(len(source.text))
