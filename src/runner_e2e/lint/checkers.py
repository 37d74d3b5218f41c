"""What another linter must do to be heard in the same report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from runner_e2e.errors import Problem
    from runner_e2e.lint.finding import Finding

__all__ = ["Checked", "Checker"]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What another linter has to say; *hints* are for the reader of the summary."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    hints: tuple[str, ...] = ()


class Checker(Protocol):
    """Another linter."""

    def start(self, files: Sequence[tuple[Path, str]]) -> Callable[[], Checked]:
        """Begins to check *files*, each with the path that findings show; what it returns waits for the result.

        Other work can be done between the two.
        """
