"""Programs that copy, move and remove files and folders: ``cp``, ``mv``, ``install``, ``ln``, ``rsync``, ``rm``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.archives import below
from runner_e2e.lint.shell.command_lines import Grammar, read_line
from runner_e2e.lint.shell.filesystem import path_keys, put_file, read_file
from runner_e2e.lint.values import Value, normal

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.values import Text

__all__ = ["MODELS"]

_COPY = Grammar(letters="tSmog", names=frozenset({"target-directory", "suffix", "mode", "owner", "group"}))
_RSYNC = Grammar(
    letters="efTBM",
    names=frozenset({"rsh", "filter", "exclude", "include", "exclude-from", "include-from", "files-from", "temp-dir"})
    | {"compare-dest", "copy-dest", "link-dest", "chmod", "chown", "out-format", "log-file", "password-file", "port"},
)
_REMOTE = re.compile(r"[^/]+:")


def _copy(machine: Machine, call: Invocation) -> None:
    line = read_line(call, _COPY)
    paths = [one.value for one, _ in line.operands]
    target = line.last("t", "target-directory")
    if target is None:
        if len(paths) < 2:
            return
        target = paths.pop()
    _place(machine, call, paths, target, contents=False)
    if call.name == "mv":
        for source in paths:
            for key in path_keys(source, call.state):
                _drop(call, key)


def _rsync(machine: Machine, call: Invocation) -> None:
    line = read_line(call, _RSYNC)
    paths = [one.value for one, _ in line.operands]
    if len(paths) > 1 and not any(_REMOTE.match(str(path)) for path in paths):
        _place(machine, call, paths[:-1], paths[-1], contents=True)


def _place(machine: Machine, call: Invocation, sources: list[Value], target: Value, *, contents: bool) -> None:
    """Copies *sources* to *target*; *contents*: of a folder whose path ends with a slash, what is in it."""
    for source in sources:
        content = read_file(machine, call.state, source, call.environment)
        content = machine.step(content, *call.span, "copied")
        base = (source.constant or "").rsplit("/", 1)[-1]
        for key in path_keys(target, call.state):
            put_file(call.state, key, content, append_to=False)
            # The target may be a directory: the file keeps its name then.
            if base and content.taints:
                for inside in path_keys(target + Value.literal("/" + base), call.state):
                    put_file(call.state, inside, content, append_to=False)
        _place_folder(machine, call, source, target, contents=contents)


def _place_folder(machine: Machine, call: Invocation, source: Value, target: Value, *, contents: bool) -> None:
    """Copies what is below *source*: into *target* itself where that is new, else into a folder of the same name."""
    text = source.constant or ""
    whole = text.endswith("/.") or (contents and text.endswith("/"))
    base = text.rstrip("/").rsplit("/", 1)[-1]
    for folder in path_keys(source, call.state):
        found = [(rest, content) for rest, content in _below(call, folder) if rest and content.taints]
        for key in path_keys(target, call.state) if found else ():
            there = any(rest for rest, _ in _below(call, key))
            bases: list[Text] = [] if (there or contents) and base and not whole else [key]
            if base and not whole:
                bases.append(normal((*key, f"/{base}")))
            for rest, content in found:
                noted = machine.step(content, *call.span, "copied")
                for new in bases:
                    put_file(call.state, normal((*new, "/", *rest)), noted, append_to=False)


def _below(call: Invocation, folder: Text) -> list[tuple[Text, Value]]:
    return [(rest, content) for key, content in call.state.files.items() if (rest := below(key, folder)) is not None]


def _drop(call: Invocation, path: Text) -> None:
    """Takes away the file or the folder at *path*."""
    for key in [one for one in call.state.files if below(one, path) is not None]:
        del call.state.files[key]


def _remove(_m: Machine, call: Invocation) -> None:
    into = any(re.match(r"--recursive$|-[a-zA-Z]*[rR]", one.value.constant or "") for one in call.fields[1:])
    for one in call.fields[1:]:
        if one.kind == "one" and len(keys := path_keys(one.value, call.state)) == 1:
            call.state.files.pop(keys[0], None)
            if into:
                _drop(call, keys[0])


MODELS: dict[str, Callable[[Machine, Invocation], None]] = {
    **dict.fromkeys(("cp", "mv", "install", "ln"), _copy),
    "rsync": _rsync,
    "rm": _remove,
}
