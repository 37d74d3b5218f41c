"""``git``: messages of commits, tags and notes, and files that are added, are published by ``git push``.

What was written to the repository is kept as the content of files of ``.git``, which stay there for later steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.filesystem import path_keys, put_file, read_channel, read_file, write_channel
from runner_e2e.lint.shell.state import NULL
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.state import Field
    from runner_e2e.lint.values import Text

__all__ = ["holds_copies", "run"]

_INDEX = ".git/index"
_OBJECTS = ".git/objects"
_MESSAGES = ".git/logs/HEAD"
# Options of git itself that take the next word.
_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env"})
_ADD_ALL = frozenset({".", "-A", "--all", "*", ":/", "-u"})
_IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
_MAKES_COMMIT = frozenset({"commit", "merge", "revert", "cherry-pick", "am", "commit-tree"})
_WRITES_MESSAGE = _MAKES_COMMIT | {"tag", "notes"}
_SHOWS = frozenset({"log", "show", "reflog", "whatchanged", "shortlog", "format-patch"})
_MESSAGE = re.compile(r"--message(?:=|$)|-[a-ln-zA-EG-Z]*m")
_FILE = re.compile(r"--file(?:=|$)|-[a-ln-zA-EG-Z]*F")


def holds_copies(path: Text) -> bool:
    """Whether the file at *path* only has what files that were added hold as well."""
    last = path[-1] if path else ""
    return isinstance(last, str) and last.endswith((f"/{_INDEX}", f"/{_OBJECTS}"))


def run(machine: Machine, call: Invocation) -> None:
    """Runs ``git``; its arguments are told by the caller."""
    directory, command, operands = _command(machine, call)
    output = UNKNOWN
    if command == "add":
        _add(call, directory, operands)
    elif command in _WRITES_MESSAGE:
        _write(machine, call, directory, command, operands)
    elif command == "push":
        _push(machine, call, directory)
    elif command in _SHOWS:
        messages = _read(call, directory, _MESSAGES)
        output = messages.opaque() if messages.taints else UNKNOWN
    write_channel(machine, call.state, 1, output, call.span)


def _command(machine: Machine, call: Invocation) -> tuple[Value, str, tuple[Field, ...]]:
    """The directory that ``git`` works in, its command, and what follows that."""
    directory = call.state.directory
    index = 1
    while index < len(call.fields):
        word = call.fields[index].value.constant
        if word is None:
            break
        if word in _VALUES:
            if word == "-C" and index + 1 < len(call.fields):
                directory = join(Value((key,)) for key in path_keys(call.fields[index + 1].value, call.state))
            index += 2
        elif word.startswith("-"):
            index += 1
        else:
            machine.tick()
            return directory, word, call.fields[index + 1 :]
    return directory, "", ()


def _in(directory: Value, name: str) -> Text:
    text = directory.texts[0] if len(directory.texts) == 1 else ()
    return normal((*text, f"/{name}")) if text else (name,)


def _read(call: Invocation, directory: Value, name: str) -> Value:
    return call.state.files.get(_in(directory, name), EMPTY)


def _keep(call: Invocation, directory: Value, name: str, value: Value) -> None:
    if value.taints:
        put_file(call.state, _in(directory, name), value + Value.literal("\n"), append_to=True)


def _add(call: Invocation, directory: Value, operands: tuple[Field, ...]) -> None:
    """``git add``: the files that operands name, below a folder too."""
    words = [one.value.constant for one in operands]
    named = (one for one in operands if one.value.constant not in _ADD_ALL)
    wanted = [key for one in named for key in path_keys(one.value, call.state)]
    everything = bool(_ADD_ALL & {word for word in words if word is not None})
    folder = directory.constant or ""
    for key, content in list(call.state.files.items()):
        if isinstance(key, int) or not content.taints:
            continue
        path = key[0] if len(key) == 1 and isinstance(key[0], str) else ""
        if "/.git/" in path or path.startswith(".git/"):
            continue
        folders = (f"{one[0]}/" for one in wanted if len(one) == 1 and isinstance(one[0], str))
        if key in wanted or any(path.startswith(one) for one in folders):
            _keep(call, directory, _INDEX, content)
        elif everything and folder and path.startswith(f"{folder}/"):
            # What `.gitignore` says is not read.
            _keep(call, directory, _INDEX, content.weakened(Confidence.MEDIUM))


def _write(machine: Machine, call: Invocation, directory: Value, command: str, operands: tuple[Field, ...]) -> None:
    for message in _messages(machine, call, operands):
        noted = machine.step(message, *call.span, f"into the message of `git {command}`")
        _keep(call, directory, _MESSAGES, noted)
    if command in _MAKES_COMMIT:
        for name in _IDENTITY:
            _keep(call, directory, _MESSAGES, call.environment.get(name, EMPTY))
        _keep(call, directory, _OBJECTS, _read(call, directory, _INDEX))
        call.state.files.pop(_in(directory, _INDEX), None)


def _messages(machine: Machine, call: Invocation, operands: tuple[Field, ...]) -> Iterator[Value]:
    """Texts of ``-m`` and contents of ``-F``."""
    for index, one in enumerate(operands):
        following = operands[index + 1].value if index + 1 < len(operands) else EMPTY
        first = one.value.texts[0][0] if one.value.texts[0] else ""
        word = first if isinstance(first, str) else ""
        if (match := _MESSAGE.match(word)) is not None:
            yield _rest(one.value, match.end()) if len(word) > match.end() or len(one.value.texts[0]) > 1 else following
        elif (match := _FILE.match(word)) is not None:
            named = _rest(one.value, match.end()) if len(word) > match.end() else following
            if named.constant == "-":
                yield read_channel(call.state, call.state.descriptors.get(0, NULL))
            else:
                yield read_file(machine, call.state, named, call.environment)


def _rest(value: Value, offset: int) -> Value:
    """*value* without its first characters, which are known."""
    return Value.any_of(
        (text[0][offset:], *text[1:]) if text and isinstance(text[0], str) and text[0][offset:] else text[1:]
        for text in value.texts
    )


def _push(machine: Machine, call: Invocation, directory: Value) -> None:
    start, end = call.span
    for name, what in ((_MESSAGES, "a message"), (_OBJECTS, "a file")):
        subject = f"{what} that `git push` publishes"
        machine.publish(_read(call, directory, name), start=start, end=end, subject=subject)
