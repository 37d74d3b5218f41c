"""Containers: ``docker run`` and its like. The program inside sees what ``-e`` gives it, and folders that are mounted.

Source: https://docs.docker.com/reference/cli/docker/container/run/.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.languages import language_of
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell import interpreters, shells
from runner_e2e.lint.shell.command_files import append, entries, lines
from runner_e2e.lint.shell.filesystem import path_keys, read_file, write_channel
from runner_e2e.lint.shell.state import NULL, Channel, CommandFile, Field, exact
from runner_e2e.lint.shell.wrappers import known_start, rest_of
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.results import Files
    from runner_e2e.lint.shell.state import FileKey

__all__ = ["run"]

Found = TypeVar("Found")

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_JOINED = re.compile(r"-e[A-Za-z_]")
_VERBS = frozenset({"run", "exec", "create"})
_FLAGS = frozenset(
    {"--detach", "--interactive", "--tty", "--rm", "--privileged", "--init", "--publish-all", "--read-only", "--quiet"}
    | {"--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--disable-content-trust", "--env-host", "--no-deps"}
    | {"--build", "--remove-orphans", "--service-ports", "--use-aliases", "--replace", "--no-TTY", "--latest", "--tls"}
)
"""Long options that take no value; so do the letters of :data:`_LETTERS`."""
_LETTERS = frozenset("ditPqTl")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Start:
    """What is started: *command* in *directory* (empty: that of the image), with *mounts*: inside -> outside."""

    command: tuple[Field, ...]
    directory: str = ""
    mounts: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_followed(self) -> bool:
        """Whether the command is in a language that is followed, or a file."""
        word = _text(self.command[0])
        name = posixpath.basename(word)
        return "/" in word or name in shells.NAMES or language_of(name) is not None


def run(machine: Machine, call: Invocation) -> None:
    """Runs ``docker``, ``podman`` or ``kubectl``: what the program in the container does, as far as it is followed."""
    start = _started(call)
    output = UNKNOWN
    if start is not None:
        output = _output_inside(machine, call, start, _variables(machine, call)) | UNKNOWN
    write_channel(machine, call.state, 1, output, call.span)


def _text(one: Field) -> str:
    return (one.value.constant or "") if one.kind == "one" else ""


# --- the command line


def _started(call: Invocation) -> _Start | None:
    """What the command line starts; None where nothing that is known."""
    arguments = call.fields[1:]
    verb = next((index for index, one in enumerate(arguments) if _text(one) in _VERBS), len(arguments))
    options: list[tuple[str, Value]] = []
    at = verb + 1
    while at < len(arguments):
        one = arguments[at]
        word = known_start(one.value)
        if not exact((one,)) or call.name == "kubectl":
            return _shell_in(arguments)
        if word == "--" or not word.startswith("-") or word == "-":
            at += word == "--"
            break
        name, value = _option(one.value, word)
        if value is None and at + 1 < len(arguments):
            value = arguments[at + 1].value
            at += 1
        options.append((name, value or EMPTY))
        at += 1
    if at >= len(arguments):
        return None
    entry = [Field(value, "one", call.at.start, call.at.end) for name, value in options if name == "--entrypoint"]
    directory = next((value.constant or "" for name, value in options if name in ("-w", "--workdir")), "")
    command = (*entry, *arguments[at + 1 :])
    start = _Start(command=command, directory=directory, mounts=_mounts(call, options)) if command else None
    if start is None or start.command[0].value.constant is None or start.is_followed:
        return start
    # Perhaps an option that is not known takes no value.
    return _shell_in(arguments) or start


def _option(word: Value, known: str) -> tuple[str, Value | None]:
    """An option and its value in the same word: empty for one that takes none, None where the next word is it."""
    if known.startswith("--"):
        name, equals, _ = known.partition("=")
        if equals:
            return name, rest_of(word, len(name) + 1)
        return name, EMPTY if name in _FLAGS else None
    letter = next((index for index, one in enumerate(known[1:], 1) if one not in _LETTERS), None)
    if letter is None:
        return known, EMPTY
    rest = rest_of(word, letter + 1)
    return f"-{known[letter]}", rest if rest != EMPTY else None


def _shell_in(arguments: tuple[Field, ...]) -> _Start | None:
    """The first word that looks like a shell with a program: the words before it are not all known."""
    for index, one in enumerate(arguments):
        if not exact(arguments[: index + 2]):
            return None
        if index and _is_program(_text(one).rsplit("/", 1)[-1], arguments[index + 1 :]):
            return _Start(command=arguments[index:])
    return None


def _mounts(call: Invocation, options: list[tuple[str, Value]]) -> dict[str, str]:
    found = {}
    for name, value in options:
        text = value.constant or ""
        outside, inside = "", ""
        if name in ("-v", "--volume"):
            outside, _, rest = text.partition(":")
            inside = rest.partition(":")[0]
        elif name == "--mount":
            named = dict(one.partition("=")[::2] for one in text.split(","))
            outside = named.get("source", named.get("src", ""))
            inside = named.get("target", named.get("destination", named.get("dst", "")))
        if inside.startswith("/") and ("/" in outside or outside == "."):  # other names are those of volumes
            key = path_keys(Value.literal(outside), call.state)[0]
            if len(key) == 1 and isinstance(key[0], str):
                found[posixpath.normpath(inside)] = posixpath.normpath(key[0])
    return found


def _variables(machine: Machine, call: Invocation) -> dict[str, Value]:
    """The variables that options give the program."""
    given: dict[str, Value] = {}
    arguments = call.fields[1:]
    for index, one in enumerate(arguments):
        text = known_start(one.value)
        value = arguments[index + 1].value if index + 1 < len(arguments) else EMPTY
        if text.startswith("--env-file"):
            file = value if text == "--env-file" else rest_of(one.value, len("--env-file="))
            given |= _file_of_variables(machine, call, file)
            continue
        if text == "--env-host":  # podman
            given |= call.environment
            continue
        if text.startswith("--env="):
            value = rest_of(one.value, len("--env="))
        elif _JOINED.match(text):
            value = rest_of(one.value, 2)
        elif text not in ("-e", "--env"):
            continue
        prefix = known_start(value)
        if match := _ASSIGNMENT.match(prefix):
            given[match[1]] = rest_of(value, match.end())
        elif prefix in call.environment:
            given[prefix] = call.environment[prefix]
    return given


def _file_of_variables(machine: Machine, call: Invocation, file: Value) -> dict[str, Value]:
    """What ``--env-file`` gives: a variable of each line, with its value, or with that which it has here."""
    text = read_file(machine, call.state, file, call.environment)
    content = append(CommandFile(), text)
    found = {name: value for name, value in entries(content).items() if name != "*"}
    if text.taints and not found:  # text that is not known line by line: most likely of `env`
        labels = {taint.label for taint in text.taints}
        found = {
            name: value.weakened(Confidence.MEDIUM)
            for name, value in call.environment.items()
            if labels & {taint.label for taint in value.taints}
        }
    for line in lines(content):
        name = line.constant or ""
        if name in call.environment:
            found[name] = call.environment[name]
    return found


# --- inside


def _is_program(name: str, operands: tuple[Field, ...]) -> bool:
    """Whether *name* is a program that is followed, and no image of this name."""
    if name in shells.NAMES or language_of(name) is not None:
        return len(operands) > 1 and _text(operands[0]).startswith("-")
    return name == "printenv"


def _output_inside(machine: Machine, call: Invocation, start: _Start, environment: Mapping[str, Value]) -> Value:
    """What the program writes, unless that goes to the log."""
    inner = replace(call, state=call.state.copy()).running(start.command, environment)
    state, buffer = inner.state, machine.fresh()
    for path, content in list(_moved(state.files, {outside: inside for inside, outside in start.mounts.items()})):
        state.files[path,] = content
    before = dict(state.files)
    state.files[buffer] = EMPTY
    if state.descriptors.get(1, NULL).kind == "file":
        state.descriptors[1] = Channel("file", buffer)
    state.directory = Value.literal(start.directory) if start.directory else machine.symbol("the folder of the image")
    saved, machine.files = machine.files, _inside(machine.files, start.mounts)
    try:
        _follow(machine, inner)
    finally:
        machine.files = saved
    written = {key: content for key, content in state.files.items() if before.get(key) != content}
    for path, content in _moved(written, start.mounts):
        call.state.files[path,] = content
    call.state.listen(state)
    return state.files.get(buffer, EMPTY)


def _follow(machine: Machine, inner: Invocation) -> None:
    name, operands = _text(inner.fields[0]), inner.fields[1:]
    if inner.name in ("printenv", "env"):
        machine.start(inner)
    elif inner.name in shells.NAMES and operands:
        shells.run(machine, inner)
    elif language_of(inner.name) is not None and operands:
        if not interpreters.run(machine, inner) and _text(operands[0]).startswith("-"):
            machine.start(inner)
    elif "/" in name and not shells.run_file(machine, inner):
        interpreters.run_file(machine, inner)


def _moved(files: Mapping[FileKey, Value], folders: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    """The *files* below one of *folders*, by their paths in the folder that is the same."""
    for key, content in files.items():
        if isinstance(key, tuple) and len(key) == 1 and isinstance(key[0], str):
            path = _translated(key[0], folders)
            if path is not None:
                yield path, content


def _translated(path: str, folders: Mapping[str, str]) -> str | None:
    for folder in sorted(folders, key=len, reverse=True):
        if path.startswith(f"{folder.rstrip('/')}/") or path == folder:
            return posixpath.normpath(f"{folders[folder]}/{path[len(folder) :]}")
    return None


def _inside(files: Files, mounts: Mapping[str, str]) -> Files:
    """The files of the repository that are mounted."""

    def seen(find: Callable[[str], Found] | None, nothing: Found) -> Callable[[str], Found] | None:
        def found(path: str) -> Found:
            outside = _translated(posixpath.join(WORKSPACE, path), mounts)
            return find(outside) if find is not None and outside is not None else nothing

        return None if find is None else found

    return replace(
        files,
        find_script=seen(files.find_script, None),
        find_text=seen(files.find_text, None),
        find_names=seen(files.find_names, ()),
    )
