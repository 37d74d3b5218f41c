"""Python programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner_e2e.lint.languages.process import Process

__all__ = ["run"]


def run(process: Process) -> None:
    """Follows the Python program of *process*."""
    process.tick()
