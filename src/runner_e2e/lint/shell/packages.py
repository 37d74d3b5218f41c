"""Runners of packages: ``npm run`` and its like (scripts of ``package.json``), ``npx``, ``uv run``, ``poetry run``.

A script of ``package.json`` is a shell program; the arguments of the command are put behind it, quoted. ``npm`` also
runs the scripts whose names have ``pre`` and ``post`` before that of the script.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.filesystem import path_keys, write_channel
from runner_e2e.lint.shell.machine import ShellStart
from runner_e2e.lint.shell.state import Field
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import Origin, Value, join

if TYPE_CHECKING:
    from runner_e2e.lint.shell.machine import Invocation, Machine

__all__ = ["RUNNERS", "run"]

RUNNERS = frozenset(
    {
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "npx",
        "pnpx",
        "bunx",
        "uv",
        "uvx",
        "poetry",
        "pipenv",
        "pdm",
        "rye",
        "hatch",
        "pipx",
    }
)
"""Programs that :func:`run` knows."""

_SHORT = {"test": "test", "t": "test", "tst": "test", "start": "start", "stop": "stop", "restart": "restart"}
_DIRECTORY = frozenset({"--prefix", "-C", "--cwd", "--dir", "--directory", "--project"})
_VALUES = {
    "npm": frozenset({"-w", "--workspace", "--prefix", "-C", "--script-shell", "--loglevel"}),
    "pnpm": frozenset({"-F", "--filter", "-C", "--dir", "--loglevel"}),
    "npx": frozenset({"-p", "--package", "-w", "--workspace"}),
    "uv": frozenset(
        {"-p", "--python", "--with", "--extra", "--group", "--only-group", "--env-file", "--directory", "--project"}
        | {"--with-requirements", "--with-editable", "--index-url", "--index", "--default-index", "-m"}
    ),
    "uvx": frozenset({"--from", "--with", "-p", "--python"}),
    "pipx": frozenset({"--spec", "--python"}),
    "poetry": frozenset({"-C", "--directory", "-P", "--project"}),
    "pdm": frozenset({"-p", "--project"}),
}
_STRING = r'"(?:[^"\\]|\\.)*"'
_BLOCK = re.compile(r'"scripts"\s*:\s*\{')
_ENTRY = re.compile(rf"\s*({_STRING})\s*:\s*({_STRING})\s*,?")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SILENT = frozenset({"-s", "--silent", "--loglevel=silent", "--reporter=silent"})
_MAX_NESTED = 6


def run(machine: Machine, call: Invocation) -> bool:
    """Follows what a runner of packages executes; False when the command does something else."""
    name = call.name
    arguments = list(call.fields[1:])
    directory = _options(name, arguments)
    verb = _text(arguments[0]) if arguments else ""
    if name in ("npx", "pnpx", "bunx", "uvx") or (name in ("npm", "pnpm", "yarn") and verb in ("exec", "x", "dlx")):
        rest = arguments if name.endswith("x") else arguments[1:]
        return _execute(machine, call, name, rest)
    if name == "bun" and verb == "test":  # no script of this name
        machine.start(call.running((replace(call.fields[0], value=Value.literal("bun test")), *arguments[1:])))
        return True
    if name in ("npm", "pnpm", "yarn", "bun"):
        return _script(machine, call, name, arguments, directory)
    if verb == "run":
        return _execute(machine, call, name, arguments[1:])
    return False


def _text(field: Field) -> str:
    return (field.value.constant or "") if field.kind == "one" else ""


def _options(name: str, arguments: list[Field]) -> str:
    """Takes the options before the verb off *arguments*; the directory that they name."""
    directory = ""
    while arguments and (text := _text(arguments[0])).startswith("-") and text not in ("--", "-c", "--call"):
        arguments.pop(0)
        option, equals, value = text.partition("=")
        if option in _DIRECTORY and equals:
            directory = value
        elif option in _VALUES.get(name, ()) and arguments:
            following = arguments.pop(0)
            directory = _text(following) if option in _DIRECTORY else directory
    return directory


def _execute(machine: Machine, call: Invocation, name: str, arguments: list[Field]) -> bool:
    """Runs the command in *arguments*, behind the runner's own options."""
    if any(_text(one) in ("-c", "--call") for one in arguments[:4]) and name in ("npx", "npm"):
        at = next(index for index, one in enumerate(arguments) if _text(one) in ("-c", "--call"))
        if at + 1 < len(arguments):
            program = arguments[at + 1]
            start = ShellStart(dialect="sh", span=(program.start, program.end))
            machine.run_shell(program.value, call.running(call.fields), start)
        return True
    _options(name, arguments)
    if arguments and _text(arguments[0]) == "--":
        arguments.pop(0)
    if not arguments:
        return False
    command = _text(arguments[0])
    if name in ("uv", "rye", "pdm", "hatch") and command.endswith(".py"):
        program = Field(Value.literal("python3"), "one", arguments[0].start, arguments[0].end)
        arguments.insert(0, program)
    machine.start(call.running(arguments))
    return True


# --- scripts of package.json


@dataclass(frozen=True, kw_only=True, slots=True)
class _Manifest:
    """The scripts of a ``package.json``: each with the place of its text, quotes not counted."""

    origin: Origin
    scripts: dict[str, tuple[int, int]]


def _script(machine: Machine, call: Invocation, name: str, arguments: list[Field], directory: str) -> bool:
    verb = _text(arguments[0]) if arguments else ""
    if verb in ("run", "run-script"):
        arguments = arguments[1:]
        directory = _options(name, arguments) or directory
        script = _text(arguments[0]) if arguments else ""
    elif name == "npm" or verb in _SHORT:
        script = _SHORT.get(verb, "")
    else:  # pnpm, yarn and bun take the name of a script as a verb
        script = verb
    if not script:
        return False
    manifest = _manifest(machine, call, directory)
    if manifest is None or script not in manifest.scripts:
        return False
    given = arguments[1:]
    if name == "npm":
        given = _behind_dashes(given)
    elif given and _text(given[0]) == "--":
        given = given[1:]
    _show(machine, call, given)
    before = call.state.directory
    if directory:
        call.state.directory = join(Value((key,)) for key in path_keys(Value.literal(directory), call.state))
    machine.depth += 1
    try:
        if machine.depth > _MAX_NESTED * 4:
            machine.give_up(call.at.start, call.at.end, "nested too deeply to follow")
            return True
        names = [f"pre{script}", script, f"post{script}"] if name != "yarn" else [script]
        for one in names:
            if one in manifest.scripts:
                _run_script(machine, call, manifest, one, given if one == script else [])
    finally:
        machine.depth -= 1
        call.state.directory = before
    return True


def _show(machine: Machine, call: Invocation, given: list[Field]) -> None:
    """Shows the command that is run, with what it is *given*, unless that is not wanted."""
    if given and not any(_text(one) in _SILENT for one in call.fields):
        shown = Value.literal("> ")
        for argument in given:
            shown = shown + argument.value + Value.literal(" ")
        write_channel(machine, call.state, 1, shown + Value.literal("\n"), call.span)


def _behind_dashes(arguments: list[Field]) -> list[Field]:
    """``npm run x -- a b``: what it takes itself stands before ``--``, unless it is no option."""
    texts = [_text(one) for one in arguments]
    if "--" in texts:
        at = texts.index("--")
        return [one for one in arguments[:at] if not _text(one).startswith("-")] + arguments[at + 1 :]
    return [one for one in arguments if not _text(one).startswith("-")]


def _run_script(machine: Machine, call: Invocation, manifest: _Manifest, name: str, given: list[Field]) -> None:
    start, end = manifest.scripts[name]
    source = _source(manifest.origin, start, end, bool(given))
    saved, machine.source = machine.source, source
    environment = {**call.environment, "npm_lifecycle_event": Value.literal(name)}
    positional = tuple(Field(one.value, one.kind) for one in given)
    try:
        shell = ShellStart(dialect="sh", positional=positional, span=(start, end))
        machine.run_shell(source, call.running(call.fields, environment), shell)
    finally:
        machine.source = saved


def _source(origin: Origin, start: int, end: int, given: bool) -> Source:
    """The script at ``[start, end)`` of a JSON text, its escapes taken away; *given*: arguments follow."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    offset = start
    text = origin.text
    while offset < end:
        match = _ESCAPE.match(text, offset, end)
        stop = match.end() if match else offset + 1
        raw = text[offset:stop]
        character = json.loads(f'"{raw}"') if match else raw
        for one in character:
            pieces.append(one)
            starts.append(offset)
            ends.append(stop)
        offset = stop
    if given:
        pieces.append(' "$@"')
        starts += [start] * 5
        ends += [end] * 5
    return Source(origin, "".join(pieces), (), starts, ends)


def _manifest(machine: Machine, call: Invocation, directory: str) -> _Manifest | None:
    path = posixpath.join(directory, "package.json")
    keys = path_keys(Value.literal(path), call.state)
    written = call.state.files.get(keys[0]) if len(keys) == 1 else None
    if written is not None:
        text = written.constant
        origin = Origin(path="package.json", text=text) if text is not None else None
        return _scripts(origin) if origin is not None else None
    absolute = keys[0][0] if len(keys) == 1 and len(keys[0]) == 1 else path
    if not isinstance(absolute, str) or machine.files.find_script is None:
        return None
    script = machine.files.find_script(absolute)
    return _scripts(script.origin) if script is not None else None


def _scripts(origin: Origin) -> _Manifest | None:
    """The places of the scripts; None when the text is no package manifest."""
    text = origin.text
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    scripts = data.get("scripts") if isinstance(data, dict) else None
    if not isinstance(scripts, dict):
        return None
    for block in _BLOCK.finditer(text):
        found: dict[str, tuple[int, int]] = {}
        offset = block.end()
        while (entry := _ENTRY.match(text, offset)) and scripts.get(json.loads(entry[1])) == json.loads(entry[2]):
            found[json.loads(entry[1])] = (entry.start(2) + 1, entry.end(2) - 1)
            offset = entry.end()
        if found.keys() == scripts.keys():
            return _Manifest(origin=origin, scripts=found)
    return None
