"""What a Python program does with confidential values: ``ast`` and an abstract interpreter.

The parts, each below the next: :mod:`objects` and :mod:`memory` (what is known); :mod:`texts`, :mod:`syntax`;
:mod:`evaluator` (what all share); :mod:`library` (the standard library); :mod:`expressions`, :mod:`functions` and
:mod:`interpreter`; :mod:`collected` for what a test runner calls.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.interpreter import Interpreter
from runner_e2e.lint.languages.python.syntax import PythonSyntaxError, parse

if TYPE_CHECKING:
    from runner_e2e.lint.languages.process import Process

__all__ = ["run"]


def run(process: Process) -> None:
    """Follows the Python program of *process*."""
    if not process.in_reach:
        return
    try:
        module = parse(process.source, path=process.path)
    except PythonSyntaxError as error:
        process.give_up(error.offset, error.offset, error.message)
        return
    interpreter = Interpreter(process)
    interpreter.folders = _folders(process)
    if process.tests is None:
        interpreter.run(module)
        return
    from runner_e2e.lint.languages.python.collected import Collected

    collected = Collected(interpreter, module, process.tests)
    collected.load_shared()
    interpreter.run(module, then=collected.call_all)


def _folders(process: Process) -> list[str]:
    """Where modules are looked for: beside the program, in ``PYTHONPATH``, in ``src``, where packages often are."""
    working = process.directory.constant or "/github/workspace"
    folders = [posixpath.dirname(process.path) if process.path else working]
    listed = process.variable("PYTHONPATH")
    for text in (listed.constants or ()) if listed is not None else ():
        folders += [posixpath.join(working, folder) for folder in text.split(":") if folder]
    folders += [working, posixpath.join(working, "src")]
    return list(dict.fromkeys(folders))
