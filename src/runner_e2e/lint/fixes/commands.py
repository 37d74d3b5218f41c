"""Commands that do the same when they are written in another way: which, and how."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from runner_e2e.lint.fixes.scripts import statements
from runner_e2e.lint.shell.ir import FunctionDefinition, Literal, Parameter, Pipeline
from runner_e2e.lint.shell.tables import builtins

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.fixes.scripts import Program
    from runner_e2e.lint.shell.ir import Simple, Word

    Piece = tuple[int, int, str]
    """The text that comes in place of ``[start, end)`` of a program."""

__all__ = ["CHANGES", "Rewriting"]

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=")
_PLAIN_PROGRAM = re.compile(r"[\w./+-]+")
_PATTERN = re.compile(r"[*?\[~{]")
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewriting:
    """*title* says what is done; *safe*, whether the program does the same.

    *needs_descriptors*: bash makes a file of a substitution, which programs of Windows cannot open.
    """

    title: str
    safe: bool
    pieces: list[Piece]
    needs_descriptors: bool = False


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
        safe=program.bash or name in {"test", "["},
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
    if any(_reads(word, name) for word in words[1:last] for name in names if name is not None):
        return None
    if any(name is None or _OBEYED.fullmatch(name) for name in names):
        return None
    return Rewriting(
        title="set the variable before the command, without the program `env`",
        safe=not any(_is_split(word) for word in words[1:last]) and (program.bash or tool not in _LIKE_PROGRAMS),
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
    word = words[number]
    raw = program.text[word.start : word.end]
    lead = len("--env=") if raw.startswith("--env=") else 0
    found = re.match(r"(?P<quote>\"?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)=", raw[lead:])
    if found is None or _OBEYED.fullmatch(found["name"]):
        return None
    name, quote = found["name"], found["quote"]
    given_twice = any(each.name == name for each in command.assignments) or any(
        _gives(words[position], name) for position in range(1, len(words)) if position != number
    )
    if given_twice or (quote and raw.count('"') != 2) or (quote and not raw.endswith('"')):
        return None
    value = quote + raw[lead + found.end() :]
    start = word.start + lead
    return Rewriting(
        title=f"give the variable `{name}` to the client, and only its name to the command line",
        safe=not _is_split(word) and not any(_reads(other.value, name) for other in command.assignments if other.value),
        pieces=[(command.start, command.start, f"{name}={value} "), (start, word.end, name)],
    )


@cache
def _container_options() -> tuple[frozenset[str], frozenset[str]]:
    table = json.loads(files("runner_e2e.lint").joinpath("data", "container_options.json").read_text("utf-8"))
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
    return re.fullmatch(rf"(?:--env=)?{name}(?:=.*)?", text, re.DOTALL) is not None


def _login(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``docker login -p "$S"`` becomes ``printf '%s' "$S" | docker login --password-stdin``."""
    words = command.words
    if words[0].static not in _CONTAINER_CLIENTS or words[1].static != "login":
        return None
    word = words[number]
    raw = program.text[word.start : word.end]
    if words[number - 1].static in {"-p", "--password"}:
        start, value = words[number - 1].start, raw
    elif raw.startswith("--password="):
        start, value = word.start, raw.removeprefix("--password=")
    else:
        return None
    safe = value.startswith('"') and not _is_split(word)
    if _has_input(program, command) or not (safe or _is_variable(word)):
        return None
    if not safe:
        value = f'"{value}"'
    return Rewriting(
        title="write the password to the standard input",
        safe=safe,
        pieces=[(command.start, command.start, f"printf '%s' {value} | "), (start, word.end, "--password-stdin")],
    )


def _has_input(program: Program, command: Simple) -> bool:
    """Whether something is written to the standard input of the command already."""
    if any(each.operator.startswith("<") or each.descriptor == 0 for each in command.redirections):
        return True
    pipelines = (node for node in statements(program.commands) if isinstance(node, Pipeline))
    return any(node is command for line in pipelines for later in line.commands[1:] for node in statements(later))


def _header(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``curl -H "…$S"`` becomes ``curl -H @<(printf '%s' "…$S")``: bash gives the name of a file in its place."""
    words = command.words
    if words[0].static != "curl" or not program.bash or words[number - 1].static not in {"-H", "--header"}:
        return None
    word = words[number]
    raw = program.text[word.start : word.end]
    if _is_split(word) or not raw.startswith('"') or raw.startswith('"@') or "\n" in raw:
        return None
    return Rewriting(
        title="let curl read the header from a file that bash makes of `printf`",
        safe=True,
        pieces=[(word.start, word.end, f"@<(printf '%s\\n' {raw})")],
        needs_descriptors=True,
    )


def _assigned(word: Word) -> str | None:
    """``X`` for a word ``X=…`` whose name is written plainly."""
    first = word.parts[0] if word.parts else None
    found = _ASSIGNMENT.match(first.text) if isinstance(first, Literal) and not first.quoted else None
    return found["name"] if found is not None else None


def _is_split(word: Word) -> bool:
    """Whether the shell may make several words of it, or other ones by the names of files."""
    return any(
        not part.quoted and (not isinstance(part, Literal) or _PATTERN.search(part.text) is not None)
        for part in word.parts
    )


def _is_variable(word: Word) -> bool:
    """Whether the word is one variable, or an option with ``=`` and one variable, without quotes."""
    last = word.parts[-1] if word.parts else None
    rest = [part for part in word.parts if part is not last]
    plain = isinstance(last, Parameter) and not last.operator and not last.quoted
    return plain and all(isinstance(part, Literal) and part.text == "--password=" for part in rest)


def _reads(word: Word, name: str) -> bool:
    return any(isinstance(part, Parameter) and part.name == name for part in statements(word))


CHANGES: tuple[Callable[[Program, Simple, int], Rewriting | None], ...] = (
    _builtin,
    _assignment,
    _container_variable,
    _login,
    _header,
)
"""Each takes a program, a simple command, and which of its words has the value."""
