"""Programs in other languages, judged without following them.

A program that names a labelled environment variable may print it; one that also starts processes may pass it on.
That is a possible flow (medium confidence), not a proven one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.lint.shell.state import Field

__all__ = ["INTERPRETERS", "Outcome", "judge", "program_text"]

INTERPRETERS = (
    *("python", "python2", "python3", "pypy3", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua"),
    *("Rscript", "osascript", "pwsh", "powershell", "tclsh", "expect", "groovy", "jshell", "tsx", "ts-node"),
)
_INLINE = {"-c", "-e", "-E", "-p", "-pe", "-ne", "-r", "--eval", "--print", "-Command", "-lane", "-i", "eval"}
_SPAWNS = re.compile(
    r"system|popen|\bexec|spawn|subprocess|child_process|qx|check_output|check_call|\bfork\b|Process|`|\|\s*\"?getline"
    r"|Invoke-Expression|Start-Process|&\s"
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a program may do: *reads* of the environment, *output*, and what it may give to processes."""

    reads: Value
    output: Value
    spawns: Value


def program_text(name: str, fields: tuple[Field, ...], stdin: Value) -> tuple[Value, str | None]:
    """The program text and where it was: ``argument``, ``stdin``, or None for a file."""
    arguments = fields[1:]
    for index, one in enumerate(arguments):
        text = one.value.constant
        if text in _INLINE or (text is not None and name == "perl" and re.fullmatch(r"-\w*e", text)):
            return (arguments[index + 1].value if index + 1 < len(arguments) else EMPTY), "argument"
        if text == "-":
            return stdin, "stdin"
        if text is None or not text.startswith("-"):
            return EMPTY, None
    return stdin, "stdin"


def judge(text: Value, environment: Mapping[str, Value], inputs: Iterable[Value]) -> Outcome:
    """What a program with this *text* may do with its *environment* and its *inputs*."""
    shown = " ".join(piece for piece in text.pieces() if isinstance(piece, str))
    shown = re.sub(r"\blen\(\s*[\w.$]*[\[({.]?['\"]?\w+['\"]?[\])}]?\s*\)", "", shown)
    names = [name for name, value in environment.items() if value.taints and _mentions(shown, name)]
    reads = [environment[name].opaque().weakened(Confidence.MEDIUM) for name in names]
    everything = re.search(r"os\.environ\b(?!\[|\.get)|process\.env\b(?![.\[])|\benv\b(?!\s*[.(\[])|%ENV", shown)
    if everything and not reads:
        reads = [value.opaque().weakened(Confidence.LOW) for value in environment.values() if value.taints]
    given = [value.opaque().weakened(Confidence.MEDIUM) for value in inputs if value.taints]
    parts = [*reads, *given]
    taken = join(parts) if parts else UNKNOWN
    spawns = taken if parts and _SPAWNS.search(shown) else EMPTY
    if text.taints:
        taken = taken | Value.of(text.taints)
    return Outcome(reads=join(reads) if reads else UNKNOWN, output=taken, spawns=spawns)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text) is not None
