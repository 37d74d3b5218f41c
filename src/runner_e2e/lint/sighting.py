"""What the flow analysis sees: a labelled value at a place where others may read it. Rules turn these into findings."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from runner_e2e.lint.values import Origin, Taint

__all__ = ["PUBLICATION", "Sighting", "Surface"]


PUBLICATION = "publication"
"""Advice of a sighting in what a program sends to GitHub, beside the names that GitHub gives."""


class Surface(Enum):
    """Where a value is seen, or why it cannot be told."""

    ARGV = "argv"
    """In the argument vector of a process."""
    SCRIPT = "script"
    """In the text of a script file that the runner writes."""
    LOG = "log"
    """In the log, an annotation or a trace."""
    SUMMARY = "summary"
    """In the step summary."""
    NAME = "name"
    """In a name that the run's page, a list or an API shows: *subject* says whose, as in ``the name of the job``."""
    OUTPUT = "output"
    """In an output of a step, job or workflow, or in an input of a call that the log lists: *subject* says which."""
    FILE = "file"
    """In a file that a later process may read: *subject* says which file, *detail* who reads it."""
    THIRD_PARTY = "third-party"
    """In an input of an action that is not known: *subject* is the action, *detail* the input."""
    UNANALYSABLE = "unanalysable"
    """A script that could not be followed while labelled values were in its reach."""
    EXPRESSION = "expression"
    """An expression that GitHub refuses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """A value on a *surface*, at ``[start, end)`` of *origin*.

    *subject* is the command (argv), the expression (script), the reason (unanalysable, expression), or what a member
    of :class:`Surface` says; *detail* the argument as written; *advice* names what to write instead (see
    :mod:`runner_e2e.lint.advice`).
    """

    surface: Surface
    origin: Origin
    start: int
    end: int
    taints: frozenset[Taint] = frozenset()
    subject: str = ""
    detail: str = ""
    advice: str = ""

    @property
    def line_before(self) -> str:
        """The line of the text up to the place."""
        return self.origin.text[self.origin.text.rfind("\n", 0, self.start) + 1 : self.start]
