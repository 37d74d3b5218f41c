"""One analysis: its repository, its time, and what was seen on the way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar, cast

from runner_e2e.lint.artifacts import Artifacts
from runner_e2e.lint.contexts import process_environment
from runner_e2e.lint.repetitions import Repetitions
from runner_e2e.lint.sighting import PUBLICATION, Sighting, Surface
from runner_e2e.lint.texts import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.masks import Masks
    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.settings import Names
    from runner_e2e.lint.shell.results import Files, Print, Publication, ShellResult, TracePoint
    from runner_e2e.lint.values import Script, Value

T = TypeVar("T")

__all__ = ["HEADER", "MAX_DEPTH", "OutOfTimeError", "Run"]

PRINTED = {
    "log": "printed to the log",
    "annotation": "shown in an annotation",
    "xtrace": "shown in the trace of `set -x`",
    "summary": "written to the step summary",
}
"""What happens to a value at a print, by its target."""

HEADER = "the header of the step's log"
"""Subject of a sighting in the header of a log."""

# Rules that say of a value in `with:` or `env:` more than that the header shows it.
_SPEAKS_OF_LOG = frozenset(
    {Surface.ARGV, Surface.SCRIPT, Surface.NAME, Surface.THIRD_PARTY, Surface.LOG, Surface.OUTPUT}
)

MAX_DEPTH = 10
"""Actions and workflows that call one another deeper than this are not followed: GitHub allows ten."""


class OutOfTimeError(Exception):
    """The time for this file is used up."""


class Run:
    """What everything in one analysis shares. *deadline* is a ``time.process_time()`` time.

    *repetitions* have the results of scripts in files of the same repository that were analysed before.
    """

    def __init__(
        self, repository: Repository, *, deadline: float, trace: bool = False, repetitions: Repetitions | None = None
    ) -> None:
        self.repository = repository
        self.repetitions = repetitions or Repetitions(repository)
        self.deadline = deadline
        self.trace: list[TracePoint] | None = [] if trace else None
        self.sightings: list[Sighting] = []
        self.process_environment = process_environment()
        self.callees: list[str] = []
        self.confidential = True
        """Whether a confidential value may be in reach at all: names of the file say so."""
        self.artifacts = Artifacts()
        """What jobs have uploaded until now."""
        self.known_calls: dict[object, object] = {}
        """What a callee did, by what it was given: each is analysed once for the same."""
        self._readers: dict[str, Reader] = {}
        self._made: dict[str, object] = {}

    @property
    def names(self) -> Names:
        """The confidential names of the repository."""
        return self.repository.names

    def reader(self, document: Document) -> Reader:
        """The reader of a document, one for each."""
        found = self._readers.get(document.path)
        if found is None:
            found = self._readers[document.path] = Reader(document, self.sightings.append)
        return found

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What *make* gives, made once in this analysis: rules share what they look at."""
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])

    def report(self, sighting: Sighting) -> None:
        """Takes what was seen."""
        self.sightings.append(sighting)

    def check_time(self) -> None:
        """Raises :class:`OutOfTimeError` after the deadline."""
        if time.process_time() > self.deadline:
            raise OutOfTimeError

    def in_reach(
        self, script: Script, environment: Mapping[str, Value], files: Files, others: tuple[Value, ...]
    ) -> bool:
        """Whether a script can touch any label, in *environment* (without the runner's own variables) or elsewhere."""
        return (
            self.trace is not None
            or any(hole.value.taints for hole in script.interpolations)
            or any(value.taints for value in environment.values())
            or any(value.taints for value in files.contents.values())
            or any(value.taints for value in others)
            or self.artifacts.version > 0
            or any(name in script.text for name in self.names.environment)
        )

    def take(self, result: ShellResult, masks: Masks) -> None:
        """Takes what the analysis of a script saw; *masks* are those of its job before it ran."""
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
        for sent in result.publications:
            self._take_publication(sent)
        later = masks.with_texts(result.masks)
        for printed in result.prints:
            # A summary is read, and what is registered hidden in it, when the step has ended.
            known = later if printed.target == "summary" else masks | printed.masks
            self._take_print(printed, known)
        for gap in result.unanalysable:
            self.report(
                Sighting(
                    surface=Surface.UNANALYSABLE,
                    origin=gap.origin,
                    start=gap.start,
                    end=gap.end,
                    taints=gap.taints,
                    subject=gap.reason,
                )
            )
        if self.trace is not None:
            self.trace += result.trace

    def _take_publication(self, sent: Publication) -> None:
        note = f"goes into {sent.subject}"
        self.report(
            Sighting(
                surface=Surface.NAME,
                origin=sent.origin,
                start=sent.start,
                end=sent.end,
                taints=frozenset(taint.after(sent.origin, sent.start, sent.end, note) for taint in sent.taints),
                subject=sent.subject,
                detail=sent.origin.text[sent.start : sent.end],
                advice=PUBLICATION,
            )
        )

    def _take_print(self, printed: Print, masks: Masks) -> None:
        taints = masks.uncovered(printed.text)
        if not taints:
            return
        start, end = printed.start, printed.end
        note = PRINTED[printed.target]
        ended = frozenset(taint.after(printed.origin, start, end, note) for taint in taints)
        self.report(
            Sighting(
                surface=Surface.SUMMARY if printed.target == "summary" else Surface.LOG,
                origin=printed.origin,
                start=start,
                end=end,
                taints=ended,
                subject=printed.target,
                detail=printed.origin.text[start:end],
            )
        )

    def distinct(self) -> list[Sighting]:
        """What was seen, without headers of logs that show what another sighting at the same place tells as well."""
        places: dict[int, list[Sighting]] = {}
        for one in self.sightings:
            if one.subject != HEADER:
                places.setdefault(id(one.origin), []).append(one)

        def told(header: Sighting) -> bool:
            labels = {taint.label for taint in header.taints}
            return any(
                one.surface in _SPEAKS_OF_LOG
                and one.start <= header.start
                and header.end <= one.end
                and labels <= {taint.label for taint in one.taints}
                for one in places.get(id(header.origin), ())
            )

        return [one for one in self.sightings if one.subject != HEADER or not told(one)]
