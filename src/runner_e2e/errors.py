"""The one tree of errors this package raises.

The library raises; the edge (``cli`` and ``scripts/``) prints and exits. An error says what happened,
why, and what to do next, with the place where there is one.

Exit codes: 0 fine, 1 findings or failed cells, 2 bad usage or configuration, 3 refused (gate, budget),
4 our own defect. Commands that run another program pass its status on and use 125 for their own failure,
126 and 127 as shells do, and 128+n for signals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

__all__ = [
    "CommandNotExecutableError",
    "CommandNotFoundError",
    "ConfigurationError",
    "DefectError",
    "FailedError",
    "GitHubError",
    "LaunchError",
    "Place",
    "Problem",
    "RefusedError",
    "RunnerE2EError",
    "UsageError",
    "why_unread",
]


def why_unread(error: OSError | UnicodeDecodeError) -> str:
    """Why a text could not be read, in words for people."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start}"
    return error.strerror or str(error)


@dataclass(frozen=True, kw_only=True, order=True)
class Place:
    """A place in a file: line and column count from 1, columns in characters; 0 means unknown."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.path
        return f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One mistake: the fact, its cause, the remedy, and where it is."""

    what: str
    why: str = ""
    fix: str = ""
    place: Place | None = None

    def __str__(self) -> str:
        head = f"{self.place}: {self.what}" if self.place else self.what
        lines = [head]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class RunnerE2EError(Exception):
    """Root of the tree. ``problems`` holds at least one :class:`Problem`."""

    exit_code: ClassVar[int] = 4

    def __init__(self, what: str, *, why: str = "", fix: str = "", place: Place | None = None) -> None:
        self.problems: tuple[Problem, ...] = (Problem(what=what, why=why, fix=fix, place=place),)
        super().__init__(what)

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """Builds the error for all *problems* at once (at least one)."""
        found = tuple(problems)
        error = cls(found[0].what, why=found[0].why, fix=found[0].fix, place=found[0].place)
        error.problems = found
        return error

    @property
    def problem(self) -> Problem:
        """The first (often only) problem."""
        return self.problems[0]

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class FailedError(RunnerE2EError):
    """The work was done and its verdict is bad: findings, failed cells, failed checks."""

    exit_code = 1


class UsageError(RunnerE2EError):
    """The call is wrong: an unknown selector, a missing variable, options that exclude each other."""

    exit_code = 2


class ConfigurationError(RunnerE2EError):
    """A file that a user writes is wrong. Carries every mistake found, in the order of the file."""

    exit_code = 2


class RefusedError(RunnerE2EError):
    """A rule of the product says no: the gate, the budget, a sandbox policy that would reveal a hidden path."""

    exit_code = 3


class GitHubError(RunnerE2EError):
    """GitHub's API did not answer, answered with an error, or with something that cannot be trusted."""

    exit_code = 3


class DefectError(RunnerE2EError):
    """Our own defect: a state that the code holds to be impossible."""

    exit_code = 4


class LaunchError(RunnerE2EError):
    """A command that runs another program could not set that program up (status 125)."""

    exit_code = 125


class CommandNotExecutableError(LaunchError):
    """The program exists and cannot be executed (status 126, as shells do)."""

    exit_code = 126


class CommandNotFoundError(LaunchError):
    """The program does not exist (status 127, as shells do)."""

    exit_code = 127
