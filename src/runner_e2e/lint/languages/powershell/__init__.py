"""PowerShell in the flow analysis: a documented subset, read by a parser of its own and interpreted abstractly.

The parts, each below the next: :mod:`syntax`, :mod:`words`, :mod:`expressions` and :mod:`parser` (text to statements);
:mod:`values` and :mod:`machine` (what is known); :mod:`texts`, :mod:`static` and :mod:`cmdlets` (what is built in);
:mod:`interpreter`. They are loaded when a program is there to be followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner_e2e.lint.languages.process import Process

__all__ = ["run"]


def run(process: Process) -> None:
    """Follows a PowerShell program."""
    if process.in_reach:
        from runner_e2e.lint.languages.powershell.interpreter import Interpreter

        Interpreter(process).run_program()
