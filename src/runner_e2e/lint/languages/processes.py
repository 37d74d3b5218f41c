"""Processes that a program of another language starts: what becomes of an argument vector, or of a shell's text.

The shell's interpreter runs them, so that ``sudo``, ``env``, ``bash -c``, interpreters and scripts of the repository
mean here what they mean in a shell script.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.command_files import entries, lines
from runner_e2e.lint.shell.filesystem import put_file, read_file, resolve
from runner_e2e.lint.shell.interpreter import Interpreter
from runner_e2e.lint.shell.ir import Sequence as Commands
from runner_e2e.lint.shell.machine import ExhaustedError, Invocation, Recorder, ShellStart
from runner_e2e.lint.shell.results import Files, ShellOptions, ShellResult
from runner_e2e.lint.shell.state import LOG, NULL, Channel, CommandFile, Field, FileKey, State
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import EMPTY, Origin, Text, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

__all__ = ["Place", "Processes", "Start", "World"]


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a program's text."""

    origin: Origin = field(compare=False)
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class World:
    """What outlives a process: files by path, and what was written to the runner's command files."""

    files: Mapping[FileKey, Value] = field(default_factory=dict)
    command_files: Mapping[str, CommandFile] = field(default_factory=dict)

    def joined(self, other: World) -> World:
        """Either world."""
        if self is other or self == other:
            return self
        files = dict(self.files)
        for key, value in other.files.items():
            files[key] = files[key] | value if key in files else value
        written = dict(self.command_files)
        for name, content in other.command_files.items():
            written[name] = written[name].joined(content) if name in written else content
        return World(files, written)


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """How a process is started: at which *place*, with which environment, input and working directory.

    *captured*: the program reads its output; else the log gets it.
    """

    place: Place
    environment: Mapping[str, Value]
    directory: Value
    stdin: Value = EMPTY
    captured: bool = False


class Processes:
    """Starts processes for one program, and collects what was found.

    *options* give the deadline and the directory, *files* find scripts of the repository.
    """

    def __init__(self, options: ShellOptions, files: Files, origin: Origin) -> None:
        self.options = options
        self.files = files
        self._machine = Interpreter(options=options, files=files, source=Source(origin, origin.text))

    @property
    def found(self) -> Recorder:
        """Everything that was found."""
        return self._machine.found

    @property
    def machine(self) -> Interpreter:
        """The interpreter that runs the processes."""
        return self._machine

    def start(self, arguments: Sequence[Field], world: World, how: Start) -> tuple[World, Value]:
        """Starts a program with *arguments* (its name first): the world afterwards, and its output."""

        def run(call: Invocation) -> None:
            self._machine.start(call.running(arguments))

        return self._run(run, world, how)

    def shell(self, text: Field, world: World, how: Start, *, dialect: str = "sh") -> tuple[World, Value]:
        """Starts a shell with a program *text*, which stands in the shell's argument vector."""

        def run(call: Invocation) -> None:
            machine = self._machine
            machine.leak(text, call, command=dialect, advice="environment")
            span = (text.start, text.end) if text.end > text.start else call.span
            machine.run_shell(text.value, call, ShellStart(dialect=dialect, span=span))

        return self._run(run, world, how)

    def _run(self, run: Callable[[Invocation], None], world: World, how: Start) -> tuple[World, Value]:
        machine = self._machine
        place = how.place
        files = dict(world.files)
        descriptors = {0: NULL, 1: LOG, 2: LOG}
        if how.stdin != EMPTY:
            key = machine.fresh()
            files[key] = how.stdin
            descriptors[0] = Channel("stream", key)
        output = machine.fresh()
        if how.captured:
            files[output] = EMPTY
            descriptors[1] = Channel("file", output)
        state = State(
            files=files, command_files=dict(world.command_files), descriptors=descriptors, directory=how.directory
        )
        call = Invocation((), state, Commands(place.start, place.end, ()), how.environment)
        saved, machine.source = machine.source, Source(place.origin, place.origin.text)
        initial, machine.initial_environment = machine.initial_environment, how.environment
        try:
            run(call)
        except ExhaustedError as error:
            machine.give_up(place.start, place.end, str(error))
        finally:
            machine.source, machine.initial_environment = saved, initial
        written = state.files.get(output, EMPTY)
        kept: dict[FileKey, Value] = {key: value for key, value in state.files.items() if isinstance(key, tuple)}
        return World(kept, state.command_files), written

    # --- the program's own doing

    def leak(self, value: Value, place: Place, *, command: str, at: Place, advice: str = "environment") -> None:
        """Records that *value*, at *place*, stands in the argument vector of *command*, which *at* starts."""
        machine = self._machine
        saved, machine.source = machine.source, Source(place.origin, place.origin.text)
        call = Invocation((), State(), Commands(at.start, at.end, ()), {})
        machine.leak(Field(value, "one", place.start, place.end), call, command=command, advice=advice)
        machine.source = saved

    def print(self, value: Value, place: Place, target: Literal["log", "annotation", "summary", "xtrace"]) -> None:
        """Records text that the log, an annotation or the summary shows."""
        machine = self._machine
        saved, machine.source = machine.source, Source(place.origin, place.origin.text)
        machine.print(value, start=place.start, end=place.end, target=target)
        machine.source = saved

    def mask(self, value: Value) -> None:
        """Records that the log hides *value* from now on."""
        self.found.masks.setdefault(value)

    def give_up(self, place: Place, reason: str) -> None:
        """Records a stretch that is not followed."""
        machine = self._machine
        saved, machine.source = machine.source, Source(place.origin, place.origin.text)
        machine.give_up(place.start, place.end, reason)
        machine.source = saved

    def keys(self, path: Value, directory: Value) -> list[Text]:
        """The files that *path* may name."""
        return [resolve(text, directory) for text in path.texts]

    def read(self, path: Value, world: World, environment: Mapping[str, Value], directory: Value) -> Value:
        """What the file at *path* may hold."""
        state = State(files=dict(world.files), command_files=dict(world.command_files), directory=directory)
        self._machine.initial_environment = environment
        return read_file(self._machine, state, path, environment)

    def write(  # noqa: PLR0913 - what, where, how
        self, path: Value, content: Value, world: World, *, directory: Value, place: Place, append: bool
    ) -> World:
        """The world after *content* was written to the file at *path*."""
        state = State(files=dict(world.files), command_files=dict(world.command_files), directory=directory)
        keys = self.keys(path, directory)
        for key in keys:
            if key == ("/github/summary",):
                self.print(content, place, "summary")
            note = "written to a file"
            value = content.through(place.origin, place.start, place.end, note) if content.taints else content
            before = state.files.get(key)
            put_file(state, key, value, append_to=append)
            if len(keys) > 1 and before is not None and key in state.files:
                state.files[key] = state.files[key] | before
        return World(state.files, state.command_files)

    def take(self, result: ShellResult, world: World) -> World:
        """Takes over what another analysis found; the world afterwards."""
        found = self.found
        for leak in result.leaks:
            found.leak(leak)
        for printed in result.prints:
            key = (id(printed.origin), printed.start, printed.end, printed.target)
            found.prints.setdefault(key, printed)
        for mask in result.masks:
            found.masks.setdefault(mask)
        for gap in result.unanalysable:
            found.unanalysable.setdefault((gap.start, gap.end, gap.reason), gap)
        written = dict(world.command_files)
        for name, added in (
            ("/github/env", result.environment_writes),
            ("/github/output", result.outputs),
            ("/github/state", result.states),
        ):
            if added:
                written[name] = CommandFile(tuple(added.items())).joined(written.get(name, CommandFile()))
        files = dict(world.files)
        files.update(result.files.contents.items())
        return World(files, written)

    def result(self, world: World) -> ShellResult:
        """Everything that the program did."""
        found = self.found
        contents = {key: value for key, value in world.files.items() if isinstance(key, tuple)}
        written = world.command_files
        return ShellResult(
            leaks=tuple(sorted(found.leaks.values(), key=lambda leak: (leak.origin.path, leak.start, leak.end))),
            environment_writes=entries(written.get("/github/env")),
            outputs=entries(written.get("/github/output")),
            states=entries(written.get("/github/state")),
            paths=lines(written.get("/github/path")),
            prints=tuple(found.prints.values()),
            masks=tuple(found.masks),
            unanalysable=tuple(found.unanalysable.values()),
            calls=tuple(found.calls.values()),
            files=Files(contents=contents, find_script=self.files.find_script, find_text=self.files.find_text),
            trace=tuple(found.trace),
        )
