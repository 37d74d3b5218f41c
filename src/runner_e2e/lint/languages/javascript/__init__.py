"""JavaScript in the flow analysis: an abstract interpreter over the syntax that tree-sitter gives.

The parts, each below the next: :mod:`values` (what an expression may be), :mod:`machine` (what is known, and how ways
part and join), :mod:`objects`, :mod:`expressions`, :mod:`statements`; the built-in objects and modules; and
:mod:`interpreter`, which puts them together. They are loaded when a program is there to be followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner_e2e.lint.languages.process import Process

__all__ = ["run", "run_github_script"]


def run(process: Process) -> None:
    """Follows a program of Node.js."""
    if process.in_reach:
        from runner_e2e.lint.languages.javascript.interpreter import Interpreter

        Interpreter(process).run_program()


def run_github_script(process: Process) -> None:
    """Follows the ``script`` of ``actions/github-script``; its inputs are in the environment as ``INPUT_…``."""
    if process.in_reach:
        from runner_e2e.lint.languages.javascript.interpreter import Interpreter

        Interpreter(process).run_github_script()
