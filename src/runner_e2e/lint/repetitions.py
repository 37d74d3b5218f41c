"""Scripts that are given the same again: what the first one did, as if it had been done here.

Jobs and workflows of a repository repeat their steps. What the analysis of a script gives follows from its text, the
values that come in, the files, and the repository, which stays as it is during a lint. Only places differ: where the
script stands, and which ways its values came. Equality of values leaves ways out, so a result is found again by
equality, and then gets the places of this script and the ways of these values.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.masks import Masks
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell import analyse
from runner_e2e.lint.shell.results import ShellResult, new_serial
from runner_e2e.lint.values import Hole, Step, Taint, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from runner_e2e.lint.repository import Repository
    from runner_e2e.lint.shell.results import ArgvLeak, Files, Print, Publication, ShellOptions
    from runner_e2e.lint.values import Origin, Script, Text

    Placed = TypeVar("Placed", ArgvLeak, Print, Publication)

__all__ = ["Repetitions"]

_MOST = 256
"""Results that are remembered: each holds on to the text of a file."""


class Repetitions:
    """The results of the scripts of one repository."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[object, _Known] = {}
        self.recalled = 0
        """How many results were found again."""

    def analyse(  # noqa: PLR0913 - as the analysis, and where it is done
        self,
        script: Script,
        *,
        environment: Mapping[str, Value],
        positional: tuple[Value, ...] = (),
        files: Files,
        checkouts: tuple[str, ...] = (),
        options: ShellOptions,
    ) -> ShellResult:
        """As :func:`~runner_e2e.lint.shell.analyse`; *files* are without those of the repository."""
        repository = self._repository
        directory = options.directory if isinstance(options.directory, str) else options.directory.constant
        seen = repository.seen_from(files, directory or WORKSPACE, checkouts)
        if options.trace:
            return analyse(script, environment=environment, positional=positional, files=seen, options=options)
        holes = script.interpolations
        given = (*(hole.value for hole in holes), *environment.values(), *positional, *files.contents.values())
        ways = tuple(_ways_of(given))
        key = (
            script.text,
            tuple((hole.start, hole.end) for hole in holes),
            tuple(environment),
            tuple(files.contents),
            checkouts,
            files.artifacts.version if files.artifacts is not None else 0,
            replace(options, deadline=None),
            given,
            _pattern(ways, script.origin),
        )
        known = self._known.get(key)
        if known is not None:
            self.recalled += 1
            repository.reads |= known.reads
            moved = _Moved(known, script.origin, ways)
            return moved.result(known.result, seen)
        before, repository.reads = repository.reads, set()
        try:
            result = analyse(script, environment=environment, positional=positional, files=seen, options=options)
        finally:
            reads, repository.reads = repository.reads, before | repository.reads
        if len(self._known) < _MOST and self._holds(result, script.origin, ways, options):
            self._known[key] = _Known(result=result, origin=script.origin, ways=ways, reads=frozenset(reads))
        return result

    def _holds(self, result: ShellResult, origin: Origin, ways: Sequence[Step | None], options: ShellOptions) -> bool:
        """Whether *result* says the same for an equal script elsewhere.

        What was not followed may be due to the time, or to how deep it stood; and all places have to be in the script
        itself, in what came in, or in files of the repository.
        """
        if result.unanalysable or (options.deadline is not None and time.process_time() > options.deadline):
            return False
        came = {id(way) for way in ways}
        places = [one.origin for one in _placed_in(result)]
        for taint in _taints_in(result):
            step = taint.trail
            while step is not None and id(step) not in came:
                places.append(step.origin)
                step = step.previous
        return all(place is origin or self._repository.owns(place) for place in places)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Known:
    """A result, where its script stands, the ways of what was given to it, and what was read of the repository."""

    result: ShellResult
    origin: Origin
    ways: tuple[Step | None, ...]
    reads: frozenset[str]


class _Moved:
    """What is *known* of a script, for an equal one at *now*, given values that came other *ways*.

    Texts that it makes are other ones each time: their symbols get a serial number of this time.
    """

    def __init__(self, known: _Known, now: Origin, ways: Sequence[Step | None]) -> None:
        self.before = known.origin
        self.now = now
        self.serial = new_serial()
        self.symbols = (f" {known.result.serial}:", f" {self.serial}:")
        self.ways: dict[int, Step | None] = {id(one): other for one, other in zip(known.ways, ways, strict=True)}
        # Ways that begin inside, which others share; what is moved must live as long as its number is used.
        self.kept: list[Step] = []

    def result(self, result: ShellResult, files: Files) -> ShellResult:
        contents = {self.text(key): self.value(content) for key, content in result.files.contents.items()}
        leaks = (self.placed(leak) for leak in result.leaks)
        return ShellResult(
            leaks=tuple(sorted(leaks, key=lambda leak: (leak.origin.path, leak.start, leak.end))),
            environment_writes=self.values(result.environment_writes),
            outputs=self.values(result.outputs),
            states=self.values(result.states),
            paths=tuple(map(self.value, result.paths)),
            prints=tuple(
                replace(self.placed(one), text=self.value(one.text), masks=self.masks(one.masks))
                for one in result.prints
            ),
            publications=tuple(map(self.placed, result.publications)),
            masks=tuple(map(self.value, result.masks)),
            possible_masks=tuple(map(self.value, result.possible_masks)),
            files=replace(files, contents=contents),
            serial=self.serial,
        )

    def placed(self, one: Placed) -> Placed:
        return replace(one, origin=self.origin(one.origin), taints=self.taints(one.taints))

    def values(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {name: self.value(value) for name, value in values.items()}

    def value(self, value: Value) -> Value:
        return Value(tuple(map(self.text, value.texts))) if any(map(self.moves, value.pieces())) else value

    def masks(self, masks: Masks) -> Masks:
        if not masks.sure and not masks.possible:
            return masks
        sure, possible = frozenset(map(self.text, masks.sure)), frozenset(map(self.text, masks.possible))
        return Masks(sure=sure, possible=possible, any_caller=masks.any_caller)

    def text(self, text: Text) -> Text:
        return tuple(self.hole(piece) if isinstance(piece, Hole) else piece for piece in text)

    def moves(self, piece: str | Hole) -> bool:
        """Whether *piece* is not the same this time."""
        return isinstance(piece, Hole) and (bool(piece.taints) or self.symbols[0] in piece.symbol)

    def hole(self, hole: Hole) -> Hole:
        if not self.moves(hole):
            return hole
        return Hole(self.taints(hole.taints), hole.symbol.replace(*self.symbols), hole.longest)

    def taints(self, taints: frozenset[Taint]) -> frozenset[Taint]:
        return frozenset(Taint(one.label, one.confidence, self.way(one.trail)) for one in taints)

    def way(self, way: Step | None) -> Step | None:
        inside: list[Step] = []
        while way is not None and id(way) not in self.ways:
            inside.append(way)
            way = way.previous
        moved = self.ways[id(way)] if way is not None else None
        for step in reversed(inside):
            moved = Step(self.origin(step.origin), step.start, step.end, step.note, moved)
            self.ways[id(step)] = moved
            self.kept.append(step)
        return moved

    def origin(self, origin: Origin) -> Origin:
        return self.now if origin is self.before else origin


def _ways_of(values: Iterable[Value]) -> Iterator[Step | None]:
    """The way of each label of each hole, in an order that equal values share."""
    for value in values:
        if value.taints:
            for piece in value.pieces():
                if isinstance(piece, Hole):
                    yield from (taint.trail for taint in sorted(piece.taints, key=_order))


def _order(taint: Taint) -> tuple[str, str, int]:
    return taint.label.kind, taint.label.name, taint.confidence


def _pattern(ways: Sequence[Step | None], origin: Origin) -> tuple[object, ...]:
    """What an analysis can tell of ways: which are the same, which are none, and which end in its own script."""
    numbers: dict[int, int] = {}
    return tuple(
        None
        if way is None
        else (numbers.setdefault(id(way), len(numbers)), (way.start, way.end) if way.origin is origin else None)
        for way in ways
    )


def _placed_in(result: ShellResult) -> tuple[ArgvLeak | Print | Publication, ...]:
    return (*result.leaks, *result.prints, *result.publications)


def _taints_in(result: ShellResult) -> Iterator[Taint]:
    """Every label in *result*."""
    for one in _placed_in(result):
        yield from one.taints
    contents = result.files.contents
    masks = [masks for one in result.prints for masks in (one.masks.sure, one.masks.possible)]
    texts = [text for known in masks for text in known]
    texts += contents
    for values in (result.environment_writes, result.outputs, result.states, contents):
        texts += [text for value in values.values() for text in value.texts]
    for value in (*result.paths, *result.masks, *result.possible_masks, *(one.text for one in result.prints)):
        texts += value.texts
    for text in texts:
        for piece in text:
            if isinstance(piece, Hole):
                yield from piece.taints
