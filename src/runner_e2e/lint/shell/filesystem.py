"""Files as the interpreter sees them: written and read again, named by values, ``/proc``, pipes, descriptors."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.archives import is_member
from runner_e2e.lint.shell.command_files import COMMAND_FILES, append
from runner_e2e.lint.shell.console import LINE_BEGUN, begins_line
from runner_e2e.lint.shell.patterns import text_matches
from runner_e2e.lint.shell.state import LOG, NULL, Channel, CommandFile
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Text, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.state import FileKey, State
    from runner_e2e.lint.values import Script

__all__ = [
    "absolute_path",
    "environment_block",
    "environment_lines",
    "known_paths",
    "matching_files",
    "named_channel",
    "path_keys",
    "peek_channel",
    "put_file",
    "read_channel",
    "read_content",
    "read_file",
    "repository_script",
    "resolve",
    "tainted_names",
    "write_channel",
    "write_content",
    "written",
]

_FIRST_HOLE = 0x100000
_ENVIRON = re.compile("/proc/(?P<who>self|thread-self|\\d+|[\U00100000-\U0010fffd]|\\*)/environ")
_DESCRIPTOR = re.compile(r"/(?:dev/fd|proc/self/fd)/(?P<number>\d+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def _encoded(text: Text, holes: list[Hole]) -> str:
    out: list[str] = []
    for piece in text:
        if isinstance(piece, Hole):
            holes.append(piece)
            out.append(chr(_FIRST_HOLE + len(holes) - 1))
        else:
            out.append(piece)
    return "".join(out)


def resolve(text: Text, directory: Value) -> Text:
    """The path *text* made absolute and simple, as far as *directory* is known."""
    holes: list[Hole] = []
    encoded = _encoded(text, holes)
    if not encoded.startswith("/") and not (holes and ord(encoded[0]) >= _FIRST_HOLE):
        base = directory.texts[0] if len(directory.texts) == 1 else (Hole(frozenset(), "cwd"),)
        encoded = (_encoded(base, holes) or ".") + "/" + encoded
    if "//" in encoded or "/." in encoded or encoded.endswith("/"):
        encoded = posixpath.normpath(encoded)
    if not holes:
        return (encoded,)
    return normal(
        holes[ord(piece) - _FIRST_HOLE] if ord(piece[0]) >= _FIRST_HOLE else piece
        for piece in re.split("([\U00100000-\U0010fffd])", encoded)
        if piece
    )


def path_keys(path: Value, state: State) -> list[Text]:
    """The files that *path* may name."""
    return [resolve(text, state.directory) for text in path.texts]


def absolute_path(path: str, state: State) -> str:
    """*path* from the working directory, where that is known; else as it is."""
    key = resolve((path,), state.directory)
    return key[0] if len(key) == 1 and isinstance(key[0], str) else path


def known_paths(path: Value) -> tuple[str, ...]:
    """The possible paths that are known, but for an empty one."""
    return tuple(text[0] for text in path.texts if len(text) == 1 and isinstance(text[0], str) and text[0])


def repository_script(machine: Machine, path: Value, state: State) -> tuple[str, Script] | None:
    """The script of the repository at *path*, and the path, unless the file was written here.

    Of several paths that are possible, most often one is what a command would give that failed: those with no script
    do not count.
    """
    find = machine.files.find_script
    if find is None or any(key in state.files for key in path_keys(path, state)):
        return None
    found = ((one, find(absolute_path(one, state))) for one in known_paths(path))
    return next(((one, script) for one, script in found if script is not None), None)


def environment_block(environment: Mapping[str, Value]) -> Value:
    """The content of ``/proc/…/environ``."""
    total = EMPTY
    for name, value in environment.items():
        total = total + Value.literal(f"{name}=") + value + Value.literal("\0")
    return total


def environment_lines(environment: Mapping[str, Value]) -> Value:
    """What ``env`` prints."""
    return Value.any_of(
        normal(piece.replace("\0", "\n") if isinstance(piece, str) else piece for piece in text)
        for text in environment_block(environment).texts
    )


def read_file(machine: Machine, state: State, path: Value, environment: Mapping[str, Value] | None) -> Value:
    """What the file at *path* may hold. *environment*: of the reading program (None: the shell itself reads)."""
    return join(_read_one(machine, state, key, environment) for key in path_keys(path, state))


def _read_one(machine: Machine, state: State, key: Text, environment: Mapping[str, Value] | None) -> Value:
    known = state.files.get(key)
    if known is not None:
        return known
    if len(key) == 1 and isinstance(key[0], str):
        name = key[0]
        if name == "/dev/null":
            return EMPTY
        if name in COMMAND_FILES:
            return _command_file_text(state.command_files.get(name))
        number = _STANDARD.get(name)
        if number is None and (match := _DESCRIPTOR.fullmatch(name)):
            number = int(match["number"])
        if number is not None:
            return read_channel(state, state.descriptors.get(number, NULL))
        script = machine.files.find_script(_relative(name, machine)) if machine.files.find_script else None
        if script is not None and not script.interpolations:
            return Value.literal(script.text)
    encoded = _encoded(key, [])
    match = _ENVIRON.fullmatch(encoded)
    if match is not None:
        own = match["who"] in ("self", "thread-self")
        return environment_block(environment if own and environment is not None else machine.initial_environment)
    return _aliased(state, key)


def _relative(name: str, machine: Machine) -> str:
    directory = machine.options.directory
    prefix = directory.rstrip("/") + "/" if isinstance(directory, str) else "/github/workspace/"
    workspace = "/github/workspace/"
    for start in (prefix, workspace):
        if name.startswith(start):
            return name[len(workspace) :] if name.startswith(workspace) else name[len(start) :]
    return name


def _command_file_text(content: CommandFile | None) -> Value:
    if content is None:
        return EMPTY
    total = EMPTY
    for name, value in content.entries:
        total = total + Value.literal(f"{name}=") + value + Value.literal("\n")
    return total + content.pending


def _aliased(state: State, key: Text) -> Value:
    """A file that was not written under this very name, but may be one that was."""
    holes = [piece for piece in key if isinstance(piece, Hole)]
    symbolic = all(hole.symbol for hole in holes)
    found: list[Value] = [UNKNOWN]
    for other, content in state.files.items():
        if isinstance(other, int) or not content.taints or is_member(other):
            continue
        if other == ("/github/event.json",) and holes and symbolic:
            continue
        if _may_be_same(key, other):
            found.append(content.opaque().weakened(Confidence.LOW if symbolic else Confidence.MEDIUM))
    return join(found)


def _may_be_same(left: Text, right: Text) -> bool:
    if not any(isinstance(piece, Hole) for piece in (*left, *right)):
        return left == right
    for one, other in ((left, right), (right, left)):
        expression = "".join(re.escape(piece) if isinstance(piece, str) else "(?s:.*)" for piece in one)
        if text_matches(other, expression) is not False:
            continue
        return False
    return True


def peek_channel(state: State, channel: Channel) -> Value:
    """What can be read from *channel*, left there: most programs that are given input do not read it."""
    return state.files.get(channel.key, EMPTY) if channel.kind == "stream" else EMPTY


def read_channel(state: State, channel: Channel) -> Value:
    """Everything that can still be read from *channel*; nothing remains in a stream."""
    if channel.kind != "stream":
        return EMPTY
    content = state.files.get(channel.key, EMPTY)
    state.files[channel.key] = EMPTY
    return content


def named_channel(path: Text, state: State) -> Channel | None:
    """The channel that a device name means, None for an ordinary file."""
    if len(path) != 1 or not isinstance(path[0], str):
        return None
    name = path[0]
    if name in ("/dev/null", "/dev/zero"):
        return NULL
    if name == "/dev/tty":
        return LOG
    number = _STANDARD.get(name)
    if number is None and (match := _DESCRIPTOR.fullmatch(name)):
        number = int(match["number"])
    return state.descriptors.get(number, NULL) if number is not None else None


def written(key: Text) -> str:
    """What happens to a value that is written to the file *key*, as a way tells it."""
    name = key[0] if len(key) == 1 else ""
    if name in COMMAND_FILES:
        return f"written to `$GITHUB_{'ENV' if name == '/github/env' else str(name).removeprefix('/github/').upper()}`"
    return "written to a file"


def put_file(state: State, key: FileKey, value: Value, *, append_to: bool) -> None:
    """Writes *value* to a file or buffer."""
    if isinstance(key, tuple) and len(key) == 1 and key[0] in COMMAND_FILES:
        name = str(key[0])
        before = state.command_files.get(name, CommandFile()) if append_to else CommandFile()
        state.command_files[name] = append(before, value)
        return
    before_value = state.files.get(key, EMPTY) if append_to else EMPTY
    state.files[key] = before_value + value


def write_channel(machine: Machine, state: State, number: int, value: Value, span: tuple[int, int]) -> None:
    """Writes *value* to the descriptor *number*; *span* is the command that writes."""
    channel = state.descriptors.get(number, NULL)
    start, end = span
    if channel.kind == "log":
        begun = channel.key in state.reading.begun
        text = LINE_BEGUN + value if begun else value
        machine.print(text, state, start=start, end=end, target="log")
        # What a program that is not known prints ends its last line, most likely.
        going_on = any(isinstance(piece, str) for piece in value.pieces()) and begins_line(text)
        if value != EMPTY and going_on is not begun:
            state.reading = replace(state.reading, begun=state.reading.begun ^ {channel.key})
    elif channel.kind == "file":
        if channel.key == ("/github/summary",):
            machine.print(value, state, start=start, end=end, target="summary")
        note = "pipe" if isinstance(channel.key, int) else written(channel.key)
        put_file(state, channel.key, machine.step(value, start, end, note), append_to=True)


def matching_files(state: State, expression: str) -> list[Text]:
    """The files written so far whose absolute path matches the regular *expression*."""
    return [
        key
        for key in state.files
        if isinstance(key, tuple) and key and not is_member(key) and text_matches(key, expression) is not False
    ]


def tainted_names(state: State) -> Value:
    """Text of the names of files that carry labels in their names; empty when there are none."""
    values = [Value((key,)) for key in state.files if isinstance(key, tuple) and not is_member(key)]
    taints = [taint for value in values for taint in value.taints]
    return Value.of(taints) if taints else EMPTY


def read_content(machine: Machine, call: Invocation, path: Value | None) -> Value:
    """What a program reads from the file at *path*, or from standard input: for ``-``, or where none is named."""
    if path is None or path.constant == "-":
        return read_channel(call.state, call.state.descriptors.get(0, NULL))
    return read_file(machine, call.state, path, call.environment)


def write_content(machine: Machine, call: Invocation, path: Value | None, content: Value) -> None:
    """Makes a program write the file at *path*, or to standard output: for ``-``, or where none is named."""
    if path is None or path.constant == "-":
        if content != EMPTY:
            write_channel(machine, call.state, 1, content, call.span)
        return
    for key in path_keys(path, call.state):
        channel = named_channel(key, call.state)
        if channel is None:
            put_file(call.state, key, machine.step(content, *call.span, written(key)), append_to=False)
        elif channel.kind == "log":
            machine.print(content, call.state, start=call.at.start, end=call.at.end, target="log")
