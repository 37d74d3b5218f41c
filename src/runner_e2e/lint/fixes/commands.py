"""Commands that do the same when they are written in another way: which, and how."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from runner_e2e.lint.fixes.inputs import INPUTS
from runner_e2e.lint.fixes.variables import is_name
from runner_e2e.lint.fixes.words import Rewriting, is_split, raw, reads
from runner_e2e.lint.package_data import load_table
from runner_e2e.lint.shell.ir import CommandPart, FunctionDefinition, Literal, Parameter, statements
from runner_e2e.lint.shell.tables import builtins

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.fixes.scripts import Program
    from runner_e2e.lint.shell.ir import Simple, Word

__all__ = ["CHANGES"]

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=")
_PLAIN_PROGRAM = re.compile(r"[\w./+-]+")
_BUILTIN_FILES = {
    f"{folder}/{name}": name for folder in ("/bin", "/usr/bin") for name in ("echo", "printf", "test", "[")
}
# Variables that a shell, the loader, or a client of containers obeys itself.
_OBEYED = re.compile(
    r"PATH|HOME|IFS|PS4|ENV|SHELLOPTS|BASH\w*|E?UID|PPID|LD_\w+|LC_\w+|LANG\w*|TMPDIR|SHELL|POSIXLY_CORRECT|OPTIND"
    r"|RANDOM|SECONDS|LINENO|DOCKER_\w+|BUILD(?:KIT|X)_\w+|CONTAINERS?_\w+|XDG_\w+|SSL_\w+|GO[A-Z]+|\w+_(?:PROXY|proxy)"
)
# Builtins that do the same as the program of their name.
_LIKE_PROGRAMS = frozenset({"echo", "printf", "test", "[", "true", "false"})
_RESERVED = frozenset(
    ("if", "for", "while", "until", "case", "function", "select", "coproc", "time", "{", "!", "[[", "((")
)
_CONTAINER_CLIENTS = frozenset({"docker", "podman", "nerdctl"})
_BUILDS = (["buildx", "build"], ["image", "build"], ["builder", "build"])


def _builtin(program: Program, command: Simple, number: int) -> Rewriting | None:  # noqa: ARG001 - one signature
    """``/bin/echo`` becomes ``echo``."""
    word = command.words[0]
    name = _BUILTIN_FILES.get(word.static or "")
    first = command.words[1].static
    if name is None or program.text[word.start : word.end] != word.static or (first or "").startswith("--"):
        return None
    return Rewriting(
        title=f"use the builtin `{name}`, which starts no process",
        # The builtins of dash know other options, and its `echo` takes backslashes for escapes.
        safe="xpg_echo" not in program.text and (program.bash or name in {"test", "["}),
        pieces=[(word.start, word.end, name)],
    )


def _assignment(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``env X="$S" tool`` becomes ``X="$S" tool``."""
    words = command.words
    if words[0].static not in {"env", "/usr/bin/env"}:
        return None
    last = next((position for position in range(1, len(words)) if _assigned(words[position]) is None), len(words))
    if not number < last < len(words):
        return None
    names = [_assigned(word) for word in words[1:last]]
    tool = words[last].static or ""
    if not _PLAIN_PROGRAM.fullmatch(tool) or tool.startswith("-") or _is_of_the_shell(program, tool):
        return None
    # Assignments are made from left to right, and each sees those before it; arguments of `env` see none.
    if any(reads(words[at], name) for at in range(1, last) for name in names[: at - 1] if name is not None):
        return None
    if any(name is None or _OBEYED.fullmatch(name) for name in names) or "readonly" in program.text:
        return None
    return Rewriting(
        title="set the variable before the command, without the program `env`",
        safe=not any(is_split(word) for word in words[1:last]) and (program.bash or tool not in _LIKE_PROGRAMS),
        pieces=[(words[0].start, words[1].start, "")],
    )


def _is_of_the_shell(program: Program, name: str) -> bool:
    """Whether the shell takes *name* for something else than the program that ``env`` would start."""
    if name in _RESERVED or (name in builtins("bash") and name not in _LIKE_PROGRAMS):
        return True
    return any(isinstance(node, FunctionDefinition) and node.name == name for node in statements(program.commands))


def _container_variable(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``docker run -e K="$S"`` becomes ``K="$S" docker run -e K``."""
    words = command.words
    if words[0].static not in _CONTAINER_CLIENTS or number not in _variable_positions(command):
        return None
    return _by_name(program, command, number, option="--env=")


def _by_name(program: Program, command: Simple, number: int, *, option: str) -> Rewriting | None:
    """``K="$S"`` before the command, and ``K`` in the place of ``K="$S"``."""
    word = command.words[number]
    text = raw(program, word)
    lead = len(option) if text.startswith(option) else 0
    found = re.match(r"(?P<quote>\"?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)=", text[lead:])
    if found is None or _OBEYED.fullmatch(found["name"]):
        return None
    name, quote = found["name"], found["quote"]
    given_twice = any(each.name == name for each in command.assignments) or any(
        _gives(other, name) for position, other in enumerate(command.words) if position and position != number
    )
    if given_twice or (quote and text.count('"') != 2) or (quote and not text.endswith('"')):
        return None
    value = quote + text[lead + found.end() :]
    start = word.start + lead
    return Rewriting(
        title=f"give the variable `{name}` to the client, and only its name to the command line",
        safe=not is_split(word) and not any(reads(other.value, name) for other in command.assignments if other.value),
        pieces=[(command.start, command.start, f"{name}={value} "), (start, word.end, name)],
    )


@cache
def _container_options() -> tuple[frozenset[str], frozenset[str]]:
    table = load_table("container_options")
    return frozenset(table["flags"]), frozenset(table["values"])


def _variable_positions(command: Simple) -> set[int]:
    """Which words of ``docker run`` set a variable: options only, for what follows the image is another command."""
    words = command.words
    first = 2 if words[1].static == "container" else 1
    if len(words) <= first or words[first].static not in {"run", "create", "exec"}:
        return set()
    flags, values = _container_options()
    found: set[int] = set()
    position = first + 1
    while position < len(words):
        head = words[position].parts[0] if words[position].parts else None
        text = words[position].static or (head.text if isinstance(head, Literal) else "")
        name, equals, _ = text.partition("=")
        if name == "--env" and equals:
            found.add(position)
        elif text in {"-e", "--env"}:
            found.add(position + 1)
            position += 1
        elif text in values:
            position += 1
        elif not (equals and name in flags | values) and text not in flags and not _is_cluster(text, flags):
            break
        position += 1
    return found


def _is_cluster(text: str, flags: frozenset[str]) -> bool:
    """Whether it is several letters of flags: ``-it``."""
    return re.fullmatch(r"-[A-Za-z]+", text) is not None and all(f"-{letter}" in flags for letter in text[1:])


def _gives(word: Word, name: str) -> bool:
    """Whether a word names the variable for the container, with a value or without."""
    first = word.parts[0] if word.parts else None
    text = first.text if isinstance(first, Literal) else ""
    return re.fullmatch(rf"(?:--env=|--build-arg=)?{name}(?:=.*)?", text, re.DOTALL) is not None


def _build_argument(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``docker build --build-arg K="$S"`` becomes ``K="$S" docker build --build-arg K``."""
    words = command.words
    verbs = [word.static for word in words[1:3]]
    if words[0].static not in _CONTAINER_CLIENTS or not (verbs[0] == "build" or verbs in _BUILDS):
        return None
    if words[number - 1].static != "--build-arg" and not raw(program, words[number]).startswith("--build-arg="):
        return None
    return _by_name(program, command, number, option="--build-arg=")


def _git_setting(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``git -c name="$S"`` becomes ``GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=name GIT_CONFIG_VALUE_0="$S" git``."""
    words = command.words
    before = [word.static for word in words[1:number]]
    if words[0].static != "git" or set(before[::2]) != {"-c"} or len(before) % 2 == 0:
        return None
    word = words[number]
    found = re.fullmatch(r'(?P<open>"?)(?P<key>[A-Za-z][\w./:-]*)=(?P<value>.*)', raw(program, word), re.DOTALL)
    if found is None or is_split(word) or not re.fullmatch(r'"[^"]*"', found["open"] + found["value"]):
        return None
    key, value = found["key"], found["open"] + found["value"]
    if number + 1 == len(words):
        return None
    first = f"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0={key} GIT_CONFIG_VALUE_0={value} "
    return Rewriting(
        title=f"give the setting `{key}` to git in its environment",
        safe=True,
        pieces=[(command.start, command.start, first), (words[number - 1].start, words[number + 1].start, "")],
        overrides="GIT_CONFIG",
    )


def _last_component(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``$(basename "$X")`` becomes ``${X##*/}``, which differs for paths that end in a slash."""
    words = command.words
    if words[0].static != "basename" or len(words) != 2 or command.assignments or command.redirections:
        return None
    parts = [part for part in words[number].parts if not (isinstance(part, Literal) and not part.text)]
    variable = parts[0] if len(parts) == 1 else None
    if not isinstance(variable, Parameter) or variable.operator or variable.subscript or not is_name(variable.name):
        return None
    for node in statements(program.commands):
        if isinstance(node, CommandPart) and node.body.commands == (command,):
            return Rewriting(
                title="let the shell take the last component",
                safe=False,
                pieces=[(node.start, node.end, f"${{{variable.name}##*/}}")],
            )
    return None


def _assigned(word: Word) -> str | None:
    """``X`` for a word ``X=…`` whose name is written plainly."""
    first = word.parts[0] if word.parts else None
    found = _ASSIGNMENT.match(first.text) if isinstance(first, Literal) and not first.quoted else None
    return found["name"] if found is not None else None


CHANGES: tuple[Callable[[Program, Simple, int], Rewriting | None], ...] = (
    _builtin,
    _assignment,
    _container_variable,
    _build_argument,
    _git_setting,
    _last_component,
    *INPUTS,
)
"""Each takes a program, a simple command, and which of its words has the value."""
