"""The entry: one script, its environment and its files, to findings."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.process import Argument
from runner_e2e.lint.shell.command_files import entries, lines
from runner_e2e.lint.shell.interpreter import Interpreter
from runner_e2e.lint.shell.machine import ExhaustedError
from runner_e2e.lint.shell.processes import ShellProcess, run_process
from runner_e2e.lint.shell.results import Files, ShellOptions, ShellResult
from runner_e2e.lint.shell.state import Field, State, Variable
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import Hole, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.values import Script

__all__ = ["analyse"]


def analyse(
    script: Script,
    *,
    environment: Mapping[str, Value],
    positional: tuple[Value, ...] = (),
    files: Files | None = None,
    options: ShellOptions | None = None,
) -> ShellResult:
    """Follows *script* and tells what it does with labelled values.

    It is a shell script, or a program of ``options.language``, which finds *positional* after its own name.
    Never raises for a bad script: what cannot be followed is listed in ``unanalysable``.
    """
    options = options or ShellOptions()
    files = files or Files()
    source = Source.of_script(script)
    machine = Interpreter(options=options, files=files, source=source)
    given = {name: _with_symbol(name, value) for name, value in environment.items()}
    machine.initial_environment = given
    letters = ("e" if options.errexit else "", "pipefail" if options.pipefail else "")
    state = State(
        frames=[{name: Variable(value, exported=True) for name, value in given.items()}],
        positional=tuple(Field(value) for value in positional),
        options=frozenset(letter for letter in letters if letter),
        files=dict(files.contents.items()),
        directory=Value.literal(options.directory) if isinstance(options.directory, str) else options.directory,
    )
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 6_000))
    ended: State | None = None
    try:
        ended = _run(machine, source, state)
    except ExhaustedError as error:
        machine.source = source
        machine.give_up(0, len(source.text), str(error))
    except RecursionError:
        machine.source = source
        machine.give_up(0, len(source.text), "nested too deeply to follow")
    finally:
        sys.setrecursionlimit(limit)
    return _result(machine, ended or state, files)


def _run(machine: Interpreter, source: Source, state: State) -> State | None:
    """The state at the end of the program, run by the shell or by the interpreter of its language."""
    options = machine.options
    if not options.language:
        return machine.process(source, state)
    process = ShellProcess(machine, state, source)
    process.name = Value.literal(options.script_name)
    process.path = options.script_name
    process.arguments = tuple(Argument(one.value) for one in state.positional)
    run_process(machine, state, options.language, process)
    return state


def _with_symbol(name: str, value: Value) -> Value:
    """Gives an unknown environment variable an identity, so that a path made of it is known again."""
    if len(value.texts) != 1 or len(value.texts[0]) != 1:
        return value
    hole = value.texts[0][0]
    if not isinstance(hole, Hole) or hole.symbol:
        return value
    return Value(((Hole(hole.taints, f"${name}", hole.longest),),))


def _result(machine: Interpreter, state: State, files: Files) -> ShellResult:
    found = machine.found
    contents = {key: value for key, value in state.files.items() if isinstance(key, tuple)}
    written = state.command_files
    masks = tuple(Value((text,)) for text in sorted(state.masks.sure, key=str))
    return ShellResult(
        leaks=tuple(sorted(found.leaks.values(), key=lambda leak: (leak.origin.path, leak.start, leak.end))),
        environment_writes=entries(written.get("/github/env")),
        outputs=entries(written.get("/github/output")),
        states=entries(written.get("/github/state")),
        paths=lines(written.get("/github/path")),
        prints=tuple(found.prints.values()),
        publications=tuple(found.publications.values()),
        masks=masks,
        possible_masks=tuple(value for value in found.masks if value not in masks),
        unanalysable=tuple(found.unanalysable.values()),
        calls=tuple(found.calls.values()),
        files=replace(files, contents=contents),
        trace=tuple(found.trace),
        serial=machine.serial,
    )
