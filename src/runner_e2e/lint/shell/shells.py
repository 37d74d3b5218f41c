"""Shells started by a script: ``bash -c``, ``sh file``, ``bash < file``, and scripts called by their path."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.filesystem import path_keys, read_channel, read_file, repository_script
from runner_e2e.lint.shell.machine import ShellStart
from runner_e2e.lint.shell.options import LETTERS
from runner_e2e.lint.shell.state import NULL, Field, exact
from runner_e2e.lint.source import Source

if TYPE_CHECKING:
    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.values import Value

__all__ = ["NAMES", "run", "run_file", "run_program", "shell_of"]

NAMES = {"bash": "bash", "sh": "sh", "dash": "sh", "zsh": "bash", "ksh": "bash", "ash": "sh", "rbash": "bash"}
"""Shells, and the dialect they are followed in."""

_VALUED = frozenset({"--rcfile", "--init-file", "-O", "+O"})
_SHEBANG = re.compile(r"#!\s*(?:/usr/bin/env\s+(?:-S\s+)?)?(?:\S*/)?(?P<name>\w+)(?P<flags>[^\n]*)")


def run(machine: Machine, call: Invocation) -> None:
    """Runs ``bash …`` and the like."""
    arguments = list(call.fields[1:])
    flags = _options(arguments)
    dialect = NAMES[call.name]
    followed = frozenset(flag for flag in flags if flag not in ("c", "s", "i", "l"))
    span = (arguments[0].start, arguments[0].end) if arguments and arguments[0].end else call.span
    start = ShellStart(dialect=dialect, flags=followed, positional=tuple(arguments[1:]), span=span)
    if "c" in flags:
        if arguments:
            run_program(machine, arguments[0].value, call, _without_name(start))
    elif arguments and "s" not in flags:
        _run_operand(machine, arguments[0].value, call, start)
    else:
        channel = call.state.descriptors.get(0, NULL)
        span = machine.input_spans.get(channel.key, call.span) if channel.kind == "stream" else call.span
        program = read_channel(call.state, channel)
        run_program(machine, program, call, replace(start, positional=tuple(arguments), span=span))


def _without_name(start: ShellStart) -> ShellStart:
    """The first argument after the program of ``-c`` is ``$0``."""
    if start.positional and exact(start.positional[:1]):
        return replace(start, positional=start.positional[1:])
    return start


def _options(arguments: list[Field]) -> set[str]:
    """Takes the options off *arguments*: letters, and names given with ``-o``."""
    flags: set[str] = set()
    while arguments:
        text = arguments[0].value.constant if arguments[0].kind == "one" else None
        if text is None or not re.match(r"[-+].", text):
            break
        arguments.pop(0)
        if text == "--":
            break
        if text in _VALUED:
            del arguments[:1]
        elif text == "--posix":
            flags.add("posix")
        elif not text.startswith("--"):
            letters = set(text[1:])
            if "o" in letters and arguments:
                letters.discard("o")
                option = arguments.pop(0).value.constant or ""
                letters.add(LETTERS.get(option, option))
            flags = flags | letters if text[0] == "-" else flags - letters
    return flags


def run_program(machine: Machine, program: Value, call: Invocation, start: ShellStart) -> None:
    """Runs the text *program*, unless nothing of it is known."""
    unknown = program.constants is None and not program.taints and all(len(text) == 1 for text in program.texts)
    if unknown:
        call.state.status = None
    else:
        machine.run_shell(program, call, start)


def _run_operand(machine: Machine, path: Value, call: Invocation, start: ShellStart) -> None:
    found = repository_script(machine, path, call.state)
    if found is not None:
        machine.run_shell(Source.of_script(found[1]), call, replace(start, name=found[0]))
    else:
        content = read_file(machine, call.state, path, call.environment)
        run_program(machine, content, call, replace(start, name=path.constant or ""))


def shell_of(line: str) -> ShellStart | None:
    """How the shell starts that the first *line* of a script names; None where that is no shell."""
    match = _SHEBANG.match(line)
    if match is None or match["name"] not in NAMES:
        return None
    flags = frozenset(re.sub(r"[^a-z]", "", match["flags"]))
    return ShellStart(dialect=NAMES[match["name"]], flags=flags, span=(0, 0))


def run_file(machine: Machine, call: Invocation) -> bool:
    """Runs the shell script that the command names, written before or of the repository; False: it is none."""
    path = call.fields[0].value
    keys = path_keys(path, call.state)
    content = call.state.files.get(keys[0]) if len(keys) == 1 else None
    found = repository_script(machine, path, call.state) if content is None else None
    if content is None and found is None:
        return False
    text: object = found[1].text if found is not None else ""
    if content is not None and content.texts[0]:
        text = content.texts[0][0]
    match = _SHEBANG.match(text) if isinstance(text, str) else None
    if match is not None and match["name"] not in NAMES:
        return False
    flags = frozenset(re.sub(r"[^a-z]", "", match["flags"])) if match is not None else frozenset[str]()
    start = ShellStart(
        dialect=NAMES[match["name"]] if match is not None else "bash",
        flags=flags,
        name=found[0] if found is not None else path.constant or "",
        positional=call.fields[1:],
        span=(call.fields[0].start, call.fields[0].end),
    )
    if found is not None:
        machine.run_shell(Source.of_script(found[1]), call, start)
    elif content is not None:
        run_program(machine, content, call, start)
    return True
