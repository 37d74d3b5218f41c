"""Programs in other languages than shell: which analyser follows which.

An analyser is a function of one argument, a :class:`~runner_e2e.lint.languages.process.Process`: it walks
``process.source`` and tells the process what the program does. :mod:`runner_e2e.lint.shell` starts them, for a program
that a shell script runs and for a step whose ``shell`` is one of these languages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.process import Process

__all__ = ["ANALYSERS", "language_of"]

# Most repositories use few of the languages: an analyser is imported when the first program of its language is met.


def _python(process: Process) -> None:
    from runner_e2e.lint.languages import python

    python.run(process)


def _perl(process: Process) -> None:
    from runner_e2e.lint.languages import perl

    perl.run(process)


def _ruby(process: Process) -> None:
    from runner_e2e.lint.languages import ruby

    ruby.run(process)


def _javascript(process: Process) -> None:
    from runner_e2e.lint.languages import javascript

    javascript.run(process)


def _github_script(process: Process) -> None:
    from runner_e2e.lint.languages import javascript

    javascript.run_github_script(process)


def _powershell(process: Process) -> None:
    from runner_e2e.lint.languages import powershell

    powershell.run(process)


def _cmd(process: Process) -> None:
    from runner_e2e.lint.languages import cmd

    cmd.run(process)


ANALYSERS: Mapping[str, Callable[[Process], None]] = {
    "python": _python,
    "perl": _perl,
    "ruby": _ruby,
    "javascript": _javascript,
    "github-script": _github_script,
    "powershell": _powershell,
    "cmd": _cmd,
}
"""Name of a language -> its analyser."""

_PROGRAMS = {
    **dict.fromkeys(("python", "pypy"), "python"),
    **dict.fromkeys(("node", "nodejs", "bun", "deno", "tsx", "ts-node"), "javascript"),
    **dict.fromkeys(("pwsh", "powershell"), "powershell"),
    "cmd": "cmd",
    "perl": "perl",
    "ruby": "ruby",
}
_VERSION = re.compile(r"(?<=[a-z])-?\d[\d.]*$|\.exe$")


def language_of(program: str) -> str | None:
    """The language that a program interprets (``/usr/bin/python3.12``: python); None when it is none of these."""
    name = program.replace("\\", "/").rsplit("/", 1)[-1].lower()
    return _PROGRAMS.get(_VERSION.sub("", name))
