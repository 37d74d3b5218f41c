"""What a shell script does with confidential values: a parser and an abstract interpreter.

The parts, each below the next: :mod:`ir`, :mod:`words` and :mod:`parser` (text to commands); :mod:`state` and
:mod:`machine` (what is known, what is found); :mod:`expansion` (words to arguments); the builtins; :mod:`programs`
(what processes do); :mod:`commands` and :mod:`interpreter` (control flow); :mod:`analysis` (the entry).
"""

from runner_e2e.lint.shell.analysis import analyse
from runner_e2e.lint.shell.results import (
    ArgvLeak,
    Call,
    Files,
    Print,
    ShellOptions,
    ShellResult,
    TracePoint,
    Unanalysable,
)

__all__ = [
    "ArgvLeak",
    "Call",
    "Files",
    "Print",
    "ShellOptions",
    "ShellResult",
    "TracePoint",
    "Unanalysable",
    "analyse",
]
