"""``cmd``, the command interpreter of Windows, in the flow analysis: a documented subset.

:mod:`parser` reads commands and blocks, :mod:`interpreter` puts variables in and runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner_e2e.lint.languages.process import Process

__all__ = ["run"]


def run(process: Process) -> None:
    """Follows a batch script."""
    if process.in_reach:
        from runner_e2e.lint.languages.cmd.interpreter import Interpreter

        Interpreter(process).run_program()
