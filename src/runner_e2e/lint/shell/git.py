"""``git``: messages of commits, tags and notes, names of branches, and files that are added are public when pushed.

What was written to the repository is kept as the content of files of ``.git``, which stay there for later steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.shell.command_files import split_line
from runner_e2e.lint.shell.filesystem import path_keys, put_file, read_channel, read_file, write_channel
from runner_e2e.lint.shell.state import NULL, Field
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.values import Text

__all__ = ["holds_copies", "run"]

_INDEX = ".git/index"
_OBJECTS = ".git/objects"
_MESSAGES = ".git/logs/HEAD"
_BRANCHES = ".git/refs/heads"
_TAGS = ".git/refs/tags"
# Options of git itself that take the next word.
_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env"})
_ADD_ALL = frozenset({".", "-A", "--all", "*", ":/", "-u"})
_IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
_MAKES_COMMIT = frozenset({"commit", "merge", "revert", "cherry-pick", "am", "commit-tree"})
_WRITES_MESSAGE = _MAKES_COMMIT | {"tag", "notes"}
_SHOWS = frozenset({"log", "show", "reflog", "whatchanged", "shortlog", "format-patch", "diff", "cat-file"})
_SHOWS_FILES = frozenset({"show", "format-patch", "cat-file"})
_NO_PATCH = frozenset(
    {"-s", "--no-patch", "--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--quiet", "--summary"}
)
# Of placeholders only those of hashes and dates: https://git-scm.com/docs/pretty-formats.
_NO_MESSAGE = re.compile(
    r"--(?:format|pretty)=(?!oneline|short|medium|full|reference|email|mboxrd|raw)(?:t?format:)?"
    r"(?:[^%]|%(?:[HhTtPpnm%]|[ac][dDrtiIs]|x[0-9a-f]{2}))*"
)
_NEW_NAME = {
    "checkout": re.compile(r"-[a-z]*[bB]|--orphan"),
    "switch": re.compile(r"-[a-z]*[cC]|--(?:force-)?create|--orphan"),
}
_QUIET = re.compile(r"--quiet$|-[a-ln-zA-EG-Z]*q")
_ALL_CHANGED = re.compile(r"--all|-[b-ln-zA-EG-Z]*a")
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
    if command in ("add", "stage"):
        _add(call, directory, operands)
    elif command in _WRITES_MESSAGE:
        output = _write(machine, call, directory, command, operands)
    elif command == "push":
        _push(machine, call, directory, operands)
    elif command in _SHOWS:
        output = _shown(machine, call, directory, command, operands)
    elif command == "rev-parse" and _words(operands) == ["--show-toplevel"] and _in_workspace(directory):
        output = Value.literal(f"{WORKSPACE}\n")
    if command in _NEW_NAME or command in ("branch", "tag"):
        _name(machine, call, directory, command, operands)
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


def _in_workspace(directory: Value) -> bool:
    return f"{directory.constant}/".startswith(f"{WORKSPACE}/")


def _words(operands: tuple[Field, ...]) -> list[str]:
    return [one.value.constant or "" for one in operands]


def _write(machine: Machine, call: Invocation, directory: Value, command: str, operands: tuple[Field, ...]) -> Value:
    """What makes a commit, a tag or a note; the output."""
    subject: Value | None = None
    for message in _messages(machine, call, operands, command):
        noted = machine.step(message, *call.span, f"into the message of `git {command}`")
        _keep(call, directory, _MESSAGES, noted)
        subject = message if subject is None else subject
    words = _words(operands)
    if command in _MAKES_COMMIT:
        for name in _IDENTITY:
            _keep(call, directory, _MESSAGES, call.environment.get(name, EMPTY))
        for content in _changed(machine, call, directory, operands) if command == "commit" else ():
            _keep(call, directory, _OBJECTS, content)
        _keep(call, directory, _OBJECTS, _read(call, directory, _INDEX))
        call.state.files.pop(_in(directory, _INDEX), None)
    if command == "commit" and subject is not None and not any(map(_QUIET.match, words)):
        return Value.literal("[branch 0123456] ") + _first_line(subject) + Value.literal("\n")
    return UNKNOWN


def _first_line(value: Value) -> Value:
    return Value.any_of(split_line(text)[0] or () for text in value.texts)


def _changed(machine: Machine, call: Invocation, directory: Value, operands: tuple[Field, ...]) -> Iterator[Value]:
    """Labelled files that git has already, and takes as they are now: those that are named, or all."""
    everything = any(map(_ALL_CHANGED.match, _words(operands)))
    named = [key for one in operands for key in path_keys(one.value, call.state)]
    folder = directory.constant or ""
    for key, content in list(call.state.files.items()):
        if isinstance(key, int) or not content.taints or len(key) != 1 or not isinstance(key[0], str):
            continue
        find, below = machine.files.find_text, bool(folder) and key[0].startswith(f"{folder}/")
        if (key in named or (everything and below)) and find is not None and find(key[0]) is not None:
            yield content


def _name(machine: Machine, call: Invocation, directory: Value, command: str, operands: tuple[Field, ...]) -> None:
    """A new branch or tag: git tells the name of a branch, and ``git push`` publishes it."""
    words = _words(operands)
    if command in _NEW_NAME:
        at = next((index + 1 for index, word in enumerate(words) if _NEW_NAME[command].fullmatch(word)), len(words))
        names = operands[at : at + 1]
    else:
        names = tuple(one for one in operands if not _begins(one.value).startswith("-"))
    for one in names:
        noted = machine.step(one.value, *call.span, f"the name of a {'tag' if command == 'tag' else 'branch'}")
        _keep(call, directory, _TAGS if command == "tag" else _BRANCHES, noted)
        if command in _NEW_NAME and not any(map(_QUIET.match, words)):
            told = Value.literal("Switched to a new branch '") + one.value + Value.literal("'\n")
            write_channel(machine, call.state, 2, told, call.span)


def _begins(value: Value) -> str:
    first = value.texts[0][0] if value.texts[0] else ""
    return first if isinstance(first, str) else ""


def _shown(machine: Machine, call: Invocation, directory: Value, command: str, operands: tuple[Field, ...]) -> Value:
    """What a command prints of messages and files."""
    words = _words(operands)
    patch = command in _SHOWS_FILES or {"-p", "-u", "--patch"} & set(words)
    parts: list[Value] = []
    if command == "diff":
        staged = {"--cached", "--staged"} & set(words)
        everything = (Field(Value.literal("--all")),)
        parts += [_read(call, directory, _INDEX)] if staged else _changed(machine, call, directory, everything)
    elif patch:
        parts += [_read(call, directory, name) for name in (_OBJECTS, _INDEX)]
    if _NO_PATCH & set(words):
        parts.clear()
    if command not in ("diff", "cat-file") and not any(map(_NO_MESSAGE.fullmatch, words)):
        parts.append(_read(call, directory, _MESSAGES))
    found = [one for one in parts if one.taints]
    return join(found).opaque() if found else UNKNOWN


def _messages(machine: Machine, call: Invocation, operands: tuple[Field, ...], command: str) -> Iterator[Value]:
    """Texts of ``-m`` and contents of ``-F``; ``commit-tree`` and ``am`` read standard input without them."""
    if command in ("commit-tree", "am") and not any(word.startswith(("-m", "-F")) for word in _words(operands)):
        yield read_channel(call.state, call.state.descriptors.get(0, NULL))
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


def _push(machine: Machine, call: Invocation, directory: Value, operands: tuple[Field, ...]) -> None:
    start, end = call.span
    words = _words(operands)
    named = [one for one in operands if not _begins(one.value).startswith("-")][1:]
    published = [(_MESSAGES, "a message"), (_OBJECTS, "a file")]
    if not named or "HEAD" in words or {"--all", "--mirror", "--branches"} & set(words):
        published.append((_BRANCHES, "a name"))
    if {"--tags", "--follow-tags", "--mirror"} & set(words):
        published.append((_TAGS, "a name"))
    names = [one.value for one in named]
    for name, what in published:
        content = _read(call, directory, name)
        names += [content] if what == "a name" else []
        machine.publish(content, start=start, end=end, subject=f"{what} that `git push` publishes")
    for one in named:
        machine.publish(one.value, start=one.start, end=one.end, subject="a name that `git push` publishes")
    told = [one for one in names if one.taints]
    if told and not any(map(_QUIET.match, words)):
        write_channel(machine, call.state, 2, join(told) + Value.literal("\n"), call.span)
