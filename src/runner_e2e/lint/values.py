"""Abstract texts: what a linter knows about a string without running anything.

A :class:`Value` is a small set of alternatives; each alternative is a text with holes; a hole is text that is
not known, with the labels of what it may contain. A label travels with the places it passed (its trail), which
take no part in equality: two states that know the same are equal, so fixed points end.
"""

from __future__ import annotations

import bisect
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from runner_e2e.lint.records import cached_property, dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "EMPTY",
    "MAX_ALTERNATIVES",
    "MAX_LITERAL",
    "MAX_PIECES",
    "UNKNOWN",
    "Confidence",
    "Hole",
    "Interpolation",
    "Label",
    "Origin",
    "Script",
    "Span",
    "Step",
    "Taint",
    "Text",
    "Value",
    "by_place",
    "join",
    "merged",
    "normal",
]

MAX_ALTERNATIVES = 16
"""A value with more alternatives is widened to one hole with all their labels."""

MAX_LITERAL = 1 << 16
"""A known text longer than this many characters is widened too: state must stay small in loops that append."""

MAX_PIECES = 64
"""So is a text of more pieces than this."""


class Confidence(IntEnum):
    """How sure a statement is: ``LOW`` is possible, ``HIGH`` follows from the semantics."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A stretch of a file: lines and columns count from 1, columns in characters; the end is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class Origin:
    """A text that offsets point into, and where each of its characters stands in a file.

    *locate* maps a character offset (0 to ``len(text)``) to ``(line, column)`` of the file *path*; None means that
    the text is the file itself.
    """

    __slots__ = ("_locate", "_starts", "path", "text")

    def __init__(self, *, path: str, text: str, locate: Callable[[int], tuple[int, int]] | None = None) -> None:
        self.path = path
        self.text = text
        self._locate = locate
        self._starts: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of a character offset."""
        if self._locate is not None:
            return self._locate(offset)
        if self._starts is None:
            self._starts = [0, *(i + 1 for i, character in enumerate(self.text) if character == "\n")]
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        """The stretch of the file for the characters ``[start, end)``; an empty one is a point."""
        line, column = self.position(start)
        if end <= start:
            return Span(path=self.path, line=line, column=column, end_line=line, end_column=column)
        # The end is taken from the last character, since the next one may stand on another line of the file. Where it
        # stands on the same, the last one reaches up to it: in the file it may be an escape, as `\"` of YAML.
        last_line, last_column = self.position(end - 1)
        next_line, next_column = self.position(end) if self._locate is not None else (0, 0)
        end_column = max(next_column if next_line == last_line else 0, last_column + 1)
        return Span(path=self.path, line=line, column=column, end_line=last_line, end_column=end_column)


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """What must not be seen: a *confidential* value (a cell id) or a *secret*, by the name its source has."""

    kind: Literal["confidential", "secret"]
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One place on the way from source to sink; ``previous`` leads back to the source."""

    origin: Origin
    start: int
    end: int
    note: str
    previous: Step | None = None

    def walk(self) -> tuple[Step, ...]:
        """All steps, the source first."""
        steps: list[Step] = []
        step: Step | None = self
        while step is not None:
            steps.append(step)
            step = step.previous
        return tuple(reversed(steps))


@dataclass(frozen=True, slots=True)
class Taint:
    """A label that a text may carry, how surely, and the way it took (which equality ignores)."""

    label: Label
    confidence: Confidence = Confidence.HIGH
    trail: Step | None = field(default=None, compare=False)

    def after(self, origin: Origin, start: int, end: int, note: str) -> Taint:
        """The same label after one more place of its way; a loop that passes there again adds nothing."""
        last = self.trail
        if last is not None and last.origin is origin and last.start == start and last.end == end:
            return self
        return Taint(self.label, self.confidence, Step(origin, start, end, note, last))


@dataclass(frozen=True, slots=True)
class Hole:
    """Text that is not known; empty ``taints`` mean that it carries nothing.

    Two holes of the same *symbol* (not empty) are the same text: the path ``$HOME/f`` written is the one read.
    A hole has at most *longest* characters (None: no bound): a cut of three characters gives nothing away.
    """

    taints: frozenset[Taint] = frozenset()
    symbol: str = ""
    longest: int | None = None

    def with_taints(self, taints: frozenset[Taint]) -> Hole:
        """The same text with other labels."""
        return Hole(taints, self.symbol, self.longest)


Text: TypeAlias = tuple[str | Hole, ...]
"""A text with holes; neighbouring known pieces are merged and empty ones left out."""


def merged(taints: Iterable[Taint]) -> frozenset[Taint]:
    """One taint a label, the surest one."""
    best: dict[Label, Taint] = {}
    for taint in taints:
        known = best.get(taint.label)
        if known is None or taint.confidence > known.confidence:
            best[taint.label] = taint
    return frozenset(best.values())


def by_place(taints: Iterable[Taint]) -> list[tuple[Step, frozenset[Taint]]]:
    """The last places of the ways of *taints*, each with the labels that passed it; without a way there is none."""
    found: dict[tuple[int, int, int], tuple[Step, list[Taint]]] = {}
    for taint in sorted(taints, key=lambda taint: taint.label.name):
        place = taint.trail
        if place is not None:
            found.setdefault((id(place.origin), place.start, place.end), (place, []))[1].append(taint)
    return [(place, frozenset(passed)) for place, passed in found.values()]


def _adjacent(left: Hole, right: Hole) -> Hole:
    taints = merged(left.taints | right.taints) if right.taints - left.taints else left.taints
    if left.longest is None or right.longest is None:
        return Hole(taints)
    return Hole(taints, "", left.longest + right.longest)


def normal(pieces: Iterable[str | Hole]) -> Text:
    """Merges neighbouring known pieces and neighbouring holes, and bounds the size."""
    out: list[str | Hole] = []
    size = 0
    for piece in pieces:
        if isinstance(piece, str):
            if not piece:
                continue
            size += len(piece)
            if out and isinstance(out[-1], str):
                out[-1] += piece
                continue
        elif out and isinstance(out[-1], Hole):
            out[-1] = _adjacent(out[-1], piece)
            continue
        out.append(piece)
    if size > MAX_LITERAL or len(out) > MAX_PIECES:
        return (Hole(merged(taint for piece in out if isinstance(piece, Hole) for taint in piece.taints)),)
    return tuple(out)


@dataclass(frozen=True)
class Value:
    """The texts a variable may hold: at least one alternative, at most :data:`MAX_ALTERNATIVES`."""

    texts: tuple[Text, ...]

    @staticmethod
    def literal(text: str) -> Value:
        """The value that is exactly *text*."""
        return Value(((text,),)) if text else EMPTY

    @staticmethod
    def unknown() -> Value:
        """Any text that carries nothing."""
        return UNKNOWN

    @staticmethod
    def of(taints: Iterable[Taint]) -> Value:
        """Any text that may carry *taints*."""
        found = merged(taints)
        return Value(((Hole(found),),)) if found else UNKNOWN

    @staticmethod
    def any_of(texts: Iterable[Text]) -> Value:
        """The value with these alternatives, widened when there are too many."""
        unique = tuple(texts)
        if len(unique) != 1:
            unique = tuple(dict.fromkeys(unique)) or ((),)
        if len(unique) <= MAX_ALTERNATIVES:
            return Value(unique)
        return Value.of(taint for text in unique for piece in text if isinstance(piece, Hole) for taint in piece.taints)

    @cached_property
    def taints(self) -> frozenset[Taint]:
        """Every label that any alternative may carry."""
        found = [piece.taints for text in self.texts for piece in text if isinstance(piece, Hole) and piece.taints]
        if not found:
            return frozenset()
        return found[0] if len(found) == 1 else merged(taint for taints in found for taint in taints)

    @cached_property
    def constants(self) -> tuple[str, ...] | None:
        """All possible texts, or None when some alternative has a hole."""
        constants: list[str] = []
        for text in self.texts:
            if not text:
                constants.append("")
            elif len(text) == 1 and isinstance(text[0], str):
                constants.append(text[0])
            else:
                return None
        return tuple(constants)

    @property
    def constant(self) -> str | None:
        """The only possible text, or None."""
        constants = self.constants
        return constants[0] if constants is not None and len(constants) == 1 else None

    def __add__(self, other: Value) -> Value:
        if other is EMPTY:
            return self
        if self is EMPTY:
            return other
        if len(self.texts) * len(other.texts) > MAX_ALTERNATIVES:
            return Value(((Hole(merged(self.taints | other.taints)),),))
        return Value.any_of(normal((*left, *right)) for left in self.texts for right in other.texts)

    def __or__(self, other: Value) -> Value:
        if self is other or self.texts == other.texts:
            return self
        return Value.any_of((*self.texts, *other.texts))

    def changed(self, change: Callable[[Taint], Taint]) -> Value:
        """The same text with other labels."""
        if not self.taints:
            return self
        return Value.any_of(
            tuple(
                piece.with_taints(merged(change(taint) for taint in piece.taints)) if isinstance(piece, Hole) else piece
                for piece in text
            )
            for text in self.texts
        )

    def through(self, origin: Origin, start: int, end: int, note: str) -> Value:
        """The same value after one more place of its way."""
        return self.changed(lambda taint: taint.after(origin, start, end, note))

    def weakened(self, confidence: Confidence) -> Value:
        """The same value, no label surer than *confidence*."""
        return self.changed(lambda taint: Taint(taint.label, min(taint.confidence, confidence), taint.trail))

    def opaque(self) -> Value:
        """Text made of this one in a way that is not followed: unknown, same labels."""
        return Value.of(self.taints)

    def without_taint(self) -> Value:
        """Text that this one cannot be read from: a digest, a count."""
        return UNKNOWN if self.taints or self.constants is None else self

    def pieces(self) -> Iterator[str | Hole]:
        """Every piece of every alternative."""
        for text in self.texts:
            yield from text

    def __str__(self) -> str:
        def shown(text: Text) -> str:
            names = (
                piece if isinstance(piece, str) else sorted(taint.label.name for taint in piece.taints)
                for piece in text
            )
            return "".join(
                name if isinstance(name, str) else f"{{{','.join(name)}}}" if name else "…" for name in names
            )

        return " | ".join(shown(text) or "''" for text in self.texts)


EMPTY = Value(((),))
UNKNOWN = Value(((Hole(),),))


def join(values: Iterable[Value]) -> Value:
    """Any of *values* (:data:`EMPTY` for none)."""
    return Value.any_of(text for value in values for text in value.texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpolation:
    """Characters ``[start, end)`` of a script that stand for *value*, put in before the shell reads the script."""

    start: int
    end: int
    value: Value


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Script:
    """A program text and where it stands; *interpolations* are in order and do not overlap."""

    origin: Origin
    text: str
    interpolations: tuple[Interpolation, ...] = ()

    @staticmethod
    def of_text(text: Text, origin: Origin, start: int, end: int) -> Script:
        """The script that *text* holds, for ``bash -c`` and ``eval``: every offset stands at ``[start, end)``.

        A hole becomes an interpolation of eight characters, which a shell reads as part of a word.
        """
        pieces: list[str] = []
        holes: list[Interpolation] = []
        offset = 0
        for piece in text:
            if isinstance(piece, str):
                pieces.append(piece)
            else:
                pieces.append("_" * 8)
                holes.append(Interpolation(start=offset, end=offset + 8, value=Value(((piece,),))))
            offset += len(pieces[-1])
        first = origin.position(start)
        last = origin.position(max(start, end - 1))
        whole = "".join(pieces)
        size = len(whole)

        def locate(position: int) -> tuple[int, int]:
            return last if position and position >= size - 1 else first

        return Script(
            origin=Origin(path=origin.path, text=whole, locate=locate), text=whole, interpolations=tuple(holes)
        )
