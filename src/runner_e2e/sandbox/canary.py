"""Finds a confidential value, or a distinctive piece of it, in text.

A value counts as found in any case of letters. A *piece* is a run of at least ``piece_length`` characters of the
value (8 unless told): long enough to tell the value from chance, short enough that cutting the value up does not
hide it. Base64, hexadecimal and percent encodings of the whole value count too, as *encoded*.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["MASK", "PIECE_LENGTH", "Canary", "Finder", "Kind", "Occurrence"]

MASK = "***"
PIECE_LENGTH = 8
SHORTEST = 4
# Stands in no argument, variable or canary.
BORDER = b"\0"

Kind = Literal["value", "piece", "encoded"]

# What strace and most logs print verbatim: a value of these bytes alone can be looked for before anything is decoded.
PLAIN = re.compile(r"[ !#-\[\]-~]+\Z")


@dataclass(frozen=True, kw_only=True)
class Canary:
    """A confidential value to look for and the name it has in reports (which never show the value)."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True, order=True)
class Occurrence:
    """Where a text carries a canary: characters ``start`` (from 0) up to, not including, ``end``."""

    start: int
    end: int
    kind: Kind
    canary: str


def fold(text: str) -> str:
    """Lower case, one character for one, so that positions stay those of *text*."""
    lowered = text.lower()
    if len(lowered) == len(text):
        # A final sigma has a lower case of its own, and is no other letter for that.
        return lowered.replace("ς", "σ")  # noqa: RUF001
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)


def encodings(value: str) -> tuple[str, ...]:
    """The value in base64 (at each of three alignments, without the characters its neighbours decide), hex, percent."""
    data = value.encode("utf-8", "surrogateescape")
    found = [data.hex(), quote(data, safe="")]
    for shift in range(3):
        for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
            text = alphabet(b"\0" * shift + data).decode()
            first = (0, 2, 3)[shift]
            last = (len(data) + shift) * 8 // 6
            found.append(text[first:last])
    folded = fold(value)
    return tuple(dict.fromkeys(fold(form) for form in found if len(form) >= PIECE_LENGTH and fold(form) != folded))


@dataclass(frozen=True, kw_only=True)
class Needles:
    """Everything of one canary that is looked for, in lower case."""

    canary: Canary
    value: str
    windows: tuple[str, ...]
    encoded: tuple[str, ...]
    grams: tuple[str, ...]


def needles(canary: Canary, piece_length: int) -> Needles:
    value = fold(canary.value)
    windows = tuple(dict.fromkeys(value[at : at + piece_length] for at in range(len(value) - piece_length + 1)))
    # Every window holds one whole block of this size that starts at a multiple of it: few needles find any piece.
    size = (piece_length + 1) // 2
    blocks = [value[at : at + size] for at in range(0, len(value) - size + 1, size)] if windows else [value]
    encoded = encodings(canary.value)
    grams = tuple(dict.fromkeys((*blocks, *encoded)))
    return Needles(canary=canary, value=value, windows=windows, encoded=encoded, grams=grams)


class Finder:
    """Looks for several canaries at once.

    *public* texts (a profile's name, a program) may share pieces with the value: a piece that stands wholly inside
    one of them does not count. The whole value always counts.
    """

    def __init__(
        self, canaries: Iterable[Canary], *, piece_length: int = PIECE_LENGTH, public: Iterable[str] = ()
    ) -> None:
        self.canaries = tuple(canaries)
        self.piece_length = piece_length
        self.public = tuple(fold(text) for text in public)
        for canary in self.canaries:
            if len(canary.value) < SHORTEST:
                raise UsageError(
                    f"the value of {canary.name} is too short",
                    why=f"its length is {len(canary.value)}; fewer than {SHORTEST} characters are found by chance",
                    fix="use a longer value for the audit",
                )
        if piece_length < SHORTEST:
            raise UsageError(
                f"a piece of {piece_length} characters is too short to be told from chance",
                fix=f"look for pieces of {SHORTEST} or more",
            )
        self.needles = tuple(needles(canary, piece_length) for canary in self.canaries)

    @cached_property
    def _plain(self) -> bool:
        """Whether every canary is printable ASCII without quotes and backslashes: escaping leaves it as it is."""
        return all(PLAIN.match(canary.value) for canary in self.canaries)

    @cached_property
    def _grams(self) -> tuple[bytes, ...]:
        texts = dict.fromkeys(gram for needle in self.needles for gram in needle.grams)
        return tuple(text.encode("utf-8", "surrogateescape") for text in texts)

    def may_hold(self, raw: bytes) -> bool:
        """False only if *raw*, escaped or not, holds no canary: a cheap first look at much text."""
        if not self._plain:
            return bool(self.canaries)
        lowered = raw.lower()
        return any(gram in lowered for gram in self._grams)

    def which_may_hold(self, texts: Sequence[bytes]) -> list[bytes]:
        """Those of *texts* for which :meth:`may_hold` is true, found by one look through all of them."""
        if not self._plain:
            return list(texts) if self.canaries else []
        joined = BORDER.join(texts).lower()
        hits: set[int] = set()
        for gram in self._grams:
            at = joined.find(gram)
            while at >= 0:
                hits.add(joined.count(BORDER, 0, at))
                at = joined.find(BORDER, at)
                at = joined.find(gram, at) if at >= 0 else -1
        return [texts[index] for index in sorted(hits)]

    def find(self, text: str) -> tuple[Occurrence, ...]:
        """All occurrences in *text*, in order; overlapping pieces of one canary are one occurrence."""
        if not self.canaries or not text:
            return ()
        folded = fold(text)
        found: list[Occurrence] = []
        for needle in self.needles:
            if any(gram in folded for gram in needle.grams):
                found += self._find_one(folded, needle)
        return tuple(sorted(found))

    def _find_one(self, folded: str, needle: Needles) -> list[Occurrence]:
        wanted = needle.windows or (needle.value,)
        spans = merge(span for window in wanted for span in spans_of(folded, window))
        found: list[Occurrence] = []
        for start, end in spans:
            part = folded[start:end]
            whole = needle.value in part
            if whole or not any(part in text for text in self.public):
                kind: Kind = "value" if whole else "piece"
                found.append(Occurrence(start=start, end=end, kind=kind, canary=needle.canary.name))
        for start, end in merge(span for form in needle.encoded for span in spans_of(folded, form)):
            if not any(start < other.end and other.start < end for other in found):
                found.append(Occurrence(start=start, end=end, kind="encoded", canary=needle.canary.name))
        return found

    def redact(self, text: str) -> str:
        """*text* with every occurrence replaced by ``***`` (pieces that *public* allows stay)."""
        spans = merge((found.start, found.end) for found in self.find(text))
        for start, end in reversed(spans):
            text = text[:start] + MASK + text[end:]
        return text


def spans_of(text: str, needle: str) -> Iterable[tuple[int, int]]:
    at = text.find(needle)
    while at >= 0:
        yield at, at + len(needle)
        at = text.find(needle, at + 1)


def merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, overlapping ones made one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
