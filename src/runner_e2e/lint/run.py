"""One analysis: its repository, its time, and what was seen on the way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from runner_e2e.lint.contexts import process_environment
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.texts import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.settings import Names
    from runner_e2e.lint.shell.results import Files, Print, ShellResult, TracePoint
    from runner_e2e.lint.values import Script, Value

__all__ = ["MAX_DEPTH", "OutOfTimeError", "Run"]

MAX_DEPTH = 10
"""Actions and workflows that call one another deeper than this are not followed: GitHub allows ten."""


class OutOfTimeError(Exception):
    """The time for this file is used up."""


class Run:
    """What everything in one analysis shares. *deadline* is a ``time.process_time()`` time."""

    def __init__(self, repository: Repository, *, deadline: float, trace: bool = False) -> None:
        self.repository = repository
        self.deadline = deadline
        self.trace: list[TracePoint] | None = [] if trace else None
        self.sightings: list[Sighting] = []
        self.process_environment = process_environment()
        self.callees: list[str] = []
        self.known_calls: dict[object, object] = {}
        """What a callee did, by what it was given: each is analysed once for the same."""
        self._readers: dict[str, Reader] = {}

    @property
    def names(self) -> Names:
        """The confidential names of the repository."""
        return self.repository.names

    def reader(self, document: Document) -> Reader:
        """The reader of a document, one for each."""
        found = self._readers.get(document.path)
        if found is None:
            found = self._readers[document.path] = Reader(document, self.report)
        return found

    def report(self, sighting: Sighting) -> None:
        """Takes what was seen."""
        self.sightings.append(sighting)

    def check_time(self) -> None:
        """Raises :class:`OutOfTimeError` after the deadline."""
        if time.process_time() > self.deadline:
            raise OutOfTimeError

    def in_reach(
        self, script: Script, environment: Mapping[str, Value], files: Files, arguments: tuple[Value, ...]
    ) -> bool:
        """Whether a script can touch any label: only then what it does matters."""
        return (
            self.trace is not None
            or any(hole.value.taints for hole in script.interpolations)
            or any(value.taints for value in environment.values())
            or any(value.taints for value in files.contents.values())
            or any(value.taints for value in arguments)
            or any(name in script.text for name in self.names.environment)
        )

    def take(self, result: ShellResult) -> None:
        """Takes what the analysis of a script saw."""
        for leak in result.leaks:
            self.report(
                Sighting(
                    surface=Surface.ARGV,
                    origin=leak.origin,
                    start=leak.start,
                    end=leak.end,
                    taints=leak.taints,
                    subject=leak.command,
                    detail=leak.argument,
                    advice=leak.advice,
                )
            )
        for printed in result.prints:
            self.report(_of_print(printed))
        for gap in result.unanalysable:
            self.report(
                Sighting(
                    surface=Surface.UNANALYSABLE, origin=gap.origin, start=gap.start, end=gap.end, subject=gap.reason
                )
            )
        if self.trace is not None:
            self.trace += result.trace


def _of_print(printed: Print) -> Sighting:
    return Sighting(
        surface=Surface.SUMMARY if printed.target == "summary" else Surface.LOG,
        origin=printed.origin,
        start=printed.start,
        end=printed.end,
        taints=printed.taints,
        subject=printed.target,
    )
