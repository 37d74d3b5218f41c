"""Shells started by a script: ``bash -c``, ``sh file``, ``bash < file``, and scripts called by their path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.filesystem import path_keys, read_channel, read_file
from runner_e2e.lint.shell.options import LETTERS
from runner_e2e.lint.shell.source import Source
from runner_e2e.lint.shell.state import NULL, Field, exact
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.shell.ir import Command
    from runner_e2e.lint.shell.machine import Machine
    from runner_e2e.lint.shell.state import State

__all__ = ["NAMES", "run", "run_file", "run_program"]

NAMES = {"bash": "bash", "sh": "sh", "dash": "sh", "zsh": "bash", "ksh": "bash", "ash": "sh", "rbash": "bash"}
"""Shells, and the dialect they are followed in."""

_VALUED = frozenset({"--rcfile", "--init-file", "-O", "+O"})
_SHEBANG = re.compile(r"#!\s*(?:/usr/bin/env\s+(?:-S\s+)?)?(?:\S*/)?(?P<name>\w+)(?P<flags>[^\n]*)")


def run(
    machine: Machine,
    name: str,
    fields: tuple[Field, ...],
    state: State,
    at: Command,
    environment: Mapping[str, Value],
) -> None:
    """Runs ``bash …`` and the like."""
    arguments = list(fields[1:])
    flags: set[str] = set()
    inline = stdin = False
    while arguments:
        text = arguments[0].value.constant if arguments[0].kind == "one" else None
        if text is None or not re.match(r"[-+].", text):
            break
        arguments.pop(0)
        if text in _VALUED:
            arguments = arguments[1:]
        elif text.startswith("--"):
            if text == "--":
                break
        else:
            letters = set(text[1:])
            inline = inline or ("c" in letters and text[0] == "-")
            stdin = stdin or "s" in letters
            if "o" in letters and arguments:
                letters.discard("o")
                option = arguments.pop(0).value.constant or ""
                letters.add(LETTERS.get(option, option))
            flags = flags | letters if text[0] == "-" else flags - letters
    dialect = NAMES[name]
    if inline:
        if arguments:
            run_program(machine, dialect, arguments[0], tuple(arguments[1:]), state, at, environment, flags, named=True)
        return
    if arguments and not stdin:
        _run_operand(machine, dialect, arguments, state, at, environment, flags)
        return
    text_value = read_channel(state, state.descriptors.get(0, NULL))
    program = Field(text_value, "one", at.start, at.end)
    run_program(machine, dialect, program, tuple(arguments), state, at, environment, flags, named=False)


def run_program(
    machine: Machine,
    dialect: str,
    program: Field,
    arguments: tuple[Field, ...],
    state: State,
    at: Command,
    environment: Mapping[str, Value],
    flags: set[str],
    *,
    named: bool,
) -> None:
    """Runs the text of *program*; with *named*, the first of *arguments* is ``$0``."""
    if program.value.constants is None and not program.value.taints and len(program.value.texts) == 1:
        text = program.value.texts[0]
        if len(text) == 1:
            state.status = None  # nothing of the text is known
            return
    positional = arguments
    if named and arguments:
        positional = arguments[1:] if exact(arguments[:1]) else arguments
    if named and not arguments:
        positional = ()
    machine.run_shell(
        program.value,
        state,
        at,
        span=(program.start, program.end) if program.end else (at.start, at.end),
        environment=environment,
        positional=positional,
        name=dialect,
        flags="".join(sorted(flags - {"c", "s", "i", "l"})) if all(len(flag) == 1 for flag in flags) else "e",
    )


def _run_operand(
    machine: Machine,
    dialect: str,
    arguments: list[Field],
    state: State,
    at: Command,
    environment: Mapping[str, Value],
    flags: set[str],
) -> None:
    operand = arguments[0]
    positional = tuple(arguments[1:])
    path = operand.value.constant
    letters = "".join(sorted(flag for flag in flags - {"c", "s", "i", "l"} if len(flag) == 1))
    written = any(key in state.files for key in path_keys(operand.value, state))
    if path is not None and not written and machine.files.find_script is not None:
        script = machine.files.find_script(path)
        if script is not None:
            machine.run_shell(
                EMPTY,
                state,
                at,
                span=(operand.start, operand.end),
                environment=environment,
                positional=positional,
                name=dialect,
                flags=letters,
                source=Source.of_script(script),
            )
            return
    content = read_file(machine, state, operand.value, environment)
    program = Field(content, "one", operand.start, operand.end)
    run_program(machine, dialect, program, positional, state, at, environment, flags, named=False)


def run_file(
    machine: Machine,
    path: str,
    fields: tuple[Field, ...],
    state: State,
    at: Command,
    environment: Mapping[str, Value],
) -> bool:
    """Runs the shell script at *path*, written before or of the repository; False when it is none."""
    keys = path_keys(fields[0].value, state)
    content = state.files.get(keys[0]) if len(keys) == 1 else None
    positional = tuple(fields[1:])
    if content is not None:
        first = content.texts[0][0] if content.texts and content.texts[0] else ""
        match = _SHEBANG.match(first) if isinstance(first, str) else None
        if match is not None and match["name"] not in NAMES:
            return False
        dialect = NAMES[match["name"]] if match is not None else "bash"
        flags = set(re.sub(r"[^a-z]", "", match["flags"])) if match is not None else set()
        program = Field(content, "one", fields[0].start, fields[0].end)
        run_program(machine, dialect, program, positional, state, at, environment, flags, named=False)
        return True
    script = machine.files.find_script(path) if machine.files.find_script is not None else None
    if script is None:
        return False
    match = _SHEBANG.match(script.text)
    if match is not None and match["name"] not in NAMES:
        return False
    flags = set(re.sub(r"[^a-z]", "", match["flags"])) if match is not None else set()
    machine.run_shell(
        EMPTY,
        state,
        at,
        span=(fields[0].start, fields[0].end),
        environment=environment,
        positional=positional,
        name=NAMES[match["name"]] if match is not None else "bash",
        flags="".join(sorted(flags)),
        source=Source.of_script(script),
    )
    return True
