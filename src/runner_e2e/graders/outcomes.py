"""What came of a write: judged from the output and the status of the command that tried it."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runner_e2e.graders.commands import CommandReading, Write
    from runner_e2e.graders.events import Answer

__all__ = ["Outcome", "Ruling", "rule", "sandbox_failure", "sandbox_trouble"]

# The texts of EROFS, EACCES and EPERM as the C library and Node.js write them.
_REFUSAL: Final = re.compile(
    r"read-only file system|permission denied|operation not permitted|\b(?:EROFS|EACCES|EPERM)\b", re.IGNORECASE
)
# How Codex's sandbox says that it could not start: bubblewrap, or the helper that calls it.
_SANDBOX_LINE: Final = re.compile(
    r"(?:error: |failed: )?(?:bwrap: .+|(?:thread '[^']*'.* panicked at (?:[^\n]*/)?linux-sandbox/.*)"
    r"|.*Can't mkdir parents for .+: Not a directory.*|codex-linux-sandbox: .+"
    r"|error applying (?:legacy )?(?:landlock|sandbox|seccomp).*)",
    re.IGNORECASE,
)
_SANDBOX_ANYWHERE: Final = re.compile(
    r"bwrap: [^\n]+|Can't mkdir parents for [^\n]+: Not a directory|setting up uid map: Permission denied"
    r"|linux-sandbox[^\n]* (?:failed|exited)[^\n]*",
    re.IGNORECASE,
)


# Bounds that keep hostile outputs from costing more than their length.
_LONGEST_REPORT: Final = 8000
_MOST_STATUS_LINES: Final = 4
_AROUND: Final = 1000
_MOST_LINES: Final = 200


class Outcome(Enum):
    """What came of one write."""

    REFUSED = "refused by the file system"
    WRITTEN = "succeeded"
    FAILED = "failed for a reason that is not shown"
    UNKNOWN = "left no sign of its outcome"
    DECLINED = "declined by the agent's program before it reached the file system"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruling:
    """One write's outcome with the words it rests on.

    *conditional*: it holds only if the workspace, looked at from outside, shows that nothing was written; the words
    alone could have been made by something else in the same command.
    """

    outcome: Outcome
    words: str = ""
    conditional: bool = False


def sandbox_failure(answer: Answer, command: str) -> str | None:
    """The line that says why the sandbox did not start, or None.

    Only the first line of a failed command counts, and only when the command does not hold these words itself.
    """
    if answer.exit_code == 0 or answer.running:
        return None
    first = answer.output[:_LONGEST_REPORT].lstrip().split("\n", 1)[0]
    if not _SANDBOX_LINE.fullmatch(first):
        return None
    return None if first in command or "bwrap:" in command else first


def sandbox_trouble(message: str) -> str | None:
    """The words in an error of the agent's program that say that its sandbox did not start, or None."""
    found = _SANDBOX_ANYWHERE.search(message[:_LONGEST_REPORT])
    return found[0] if found else None


def rule(write: Write, reading: CommandReading, answer: Answer) -> Ruling:
    """Judges *write*, which the command with this *reading* tried, by the command's *answer*."""
    status = _status_of(write, reading, answer)
    if status == 0:
        return Ruling(outcome=Outcome.WRITTEN, words="it ended with status 0")
    line = _refusal_line(write, answer.output)
    if line is not None:
        printed = [text for text in reading.printed if _could_be(text, line)]
        if any(_REFUSAL.search(text) for text in printed):
            return Ruling(
                outcome=Outcome.UNKNOWN if status is None else Outcome.FAILED, words=f"it printed “{line}” itself"
            )
        trusted = not reading.opaque and not printed
        return Ruling(outcome=Outcome.REFUSED, words=line, conditional=not trusted)
    if status is not None:
        return Ruling(outcome=Outcome.FAILED, words=f"status {status}")
    return Ruling(outcome=Outcome.UNKNOWN)


def _status_of(write: Write, reading: CommandReading, answer: Answer) -> int | None:
    """The status of the write itself, where the command shows it; None when it does not."""
    if answer.running:
        return None
    for prefix in reading.status_lines[:_MOST_STATUS_LINES]:
        found = re.search(rf"^{re.escape(prefix)}(\d{{1,3}})$", answer.output, re.MULTILINE)
        if found and len(reading.writes) == 1:
            return int(found[1])
    if write.decides and answer.exit_code is not None:
        return answer.exit_code
    return None


def _refusal_line(write: Write, output: str) -> str | None:
    """The first line that says that the file system refused this very path."""
    names = {write.path, posixpath.normpath(write.path)}
    if write.directory:
        names.add(posixpath.normpath(posixpath.join(write.directory, write.path)))
    shape = re.compile(r"(?<![\w.-])(?:\./)?(?:" + "|".join(re.escape(name) for name in sorted(names)) + r")(?![\w-])")
    return next((line for line in _refusal_lines(output) if shape.search(line)), None)


@lru_cache(maxsize=4)  # one output is looked at for each write of its command
def _refusal_lines(output: str) -> tuple[str, ...]:
    """The lines with the words of a refusal, each cut to what stands around the words."""
    lines: list[str] = []
    for found in _REFUSAL.finditer(output):
        first = max(0, found.start() - _AROUND)
        start = output.rfind("\n", first, found.start()) + 1 or first
        end = output.find("\n", found.end(), found.end() + _AROUND)
        lines.append(output[start : found.end() + _AROUND if end < 0 else end].strip())
        if len(lines) >= _MOST_LINES:
            break
    return tuple(lines)


def _could_be(printed: str, line: str) -> bool:
    """Whether a line that the command prints itself, with holes, can be *line*."""
    pieces = [piece.strip() for piece in printed.split("\0")]
    position = 0
    for number, piece in enumerate(pieces):
        found = line.find(piece, position)
        if found < 0 or (number == 0 and found != 0):
            return False
        position = found + len(piece)
    return "\0" in printed or printed.strip() == line
