"""Masks: texts that the runner replaces by ``***`` in everything that it logs from their registration on.

The runner looks for the registered text as it is (and for a few encodings of it). So a mask of the whole cell id does
not cover its case part alone, and text that was changed on its way is covered only by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.contexts import is_cell_id
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, Confidence, Hole, Taint, Value, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.lint.values import Label, Text

__all__ = ["CAPTURED", "NO_MASKS", "Masks", "case_part"]

CAPTURED = "$()"
"""Begin of the symbol of text that a command substitution gave: it is the same text wherever it has this symbol."""

_DISTINCTIVE = 8
_MAX_MASKS = 64
_CASES = ("", " upper", " swapcase")
"""The value itself, and what :func:`str.upper` makes of it, which its mask does not match; lower case may be it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Masks:
    """Texts that are registered on every way to this point (*sure*), and on some way only (*possible*).

    *any_caller*: this runs in a job that is not known, and which may have masked anything.
    """

    sure: frozenset[Text] = frozenset()
    possible: frozenset[Text] = frozenset()
    any_caller: bool = False

    def with_texts(self, values: Iterable[Value]) -> Masks:
        """These masks and one for each of *values*; only one of several alternatives is registered."""
        sure, possible = set(self.sure), set(self.possible)
        for value in values:
            texts = [text for text in value.texts if any(isinstance(piece, Hole) and piece.taints for piece in text)]
            (sure if len(value.texts) == 1 else possible).update(texts)
        if len(sure) + len(possible) > _MAX_MASKS or (sure == self.sure and possible == self.possible):
            return self
        return Masks(sure=frozenset(sure), possible=frozenset(possible - sure), any_caller=self.any_caller)

    def perhaps(self, values: Iterable[Value]) -> Masks:
        """These masks, and those of *values* on some way."""
        texts = frozenset(text for value in values for text in value.texts if text) - self.sure - self.possible
        if not texts or len(texts) + len(self.possible) > _MAX_MASKS:
            return self
        return Masks(sure=self.sure, possible=self.possible | texts, any_caller=self.any_caller)

    def __or__(self, other: Masks) -> Masks:
        """Both were registered, one after the other."""
        if other in (NO_MASKS, self):
            return self
        sure = self.sure | other.sure
        return Masks(
            sure=sure,
            possible=(self.possible | other.possible) - sure,
            any_caller=self.any_caller or other.any_caller,
        )

    def joined(self, other: Masks) -> Masks:
        """One of the two ways was taken."""
        if self == other:
            return self
        sure = self.sure & other.sure
        return Masks(
            sure=sure,
            possible=(self.sure | self.possible | other.sure | other.possible) - sure,
            any_caller=self.any_caller or other.any_caller,
        )

    def uncovered(self, value: Value) -> frozenset[Taint]:
        """The labels of *value* of which a distinctive piece stays readable in a log.

        A label that is only perhaps masked, or changed after it was masked, has low confidence.
        """
        if not value.taints:
            return frozenset()
        found = [taint for text in value.texts for taint in self._uncovered_text(text)]
        return merged(found)

    def passing(self, value: Value) -> Value:
        """What of *value* the runner hands on as an output of the job: it drops text that it would have to mask."""
        if not value.taints:
            return value
        kept: list[Text] = []
        for text in value.texts:
            uncovered = {taint.label: taint for taint in self._uncovered_text(text)}
            labels = {taint.label for piece in text if isinstance(piece, Hole) for taint in piece.taints}
            if labels <= uncovered.keys():
                kept.append(tuple(_with_taints(piece, uncovered) for piece in text))
            else:
                kept.append(())
        return Value.any_of(kept)

    def _uncovered_text(self, text: Text) -> Iterable[Taint]:
        sure = _covered(text, self.sure)
        possible = _covered(text, self.possible) if self.possible else frozenset()
        for index, piece in enumerate(text):
            if isinstance(piece, str) or index in sure or (piece.longest is not None and piece.longest < _DISTINCTIVE):
                continue
            for taint in piece.taints:
                # GitHub registers secrets itself, before the first step.
                registered = taint.label.kind == "secret"
                if registered and piece.symbol == taint.label.name:
                    continue
                doubtful = self.any_caller or index in possible or registered
                if not doubtful and piece.symbol not in {f"{taint.label.name}{case}" for case in _CASES}:
                    doubtful = self._has(taint.label)
                yield Taint(taint.label, Confidence.LOW, taint.trail) if doubtful else taint

    def _has(self, label: Label) -> bool:
        """Whether some mask was made of *label*."""
        return any(
            taint.label == label
            for text in (*self.sure, *self.possible)
            for piece in text
            if isinstance(piece, Hole)
            for taint in piece.taints
        )


NO_MASKS = Masks()


def _with_taints(piece: str | Hole, known: Mapping[Label, Taint]) -> str | Hole:
    if isinstance(piece, str) or not piece.taints:
        return piece
    return piece.with_taints(frozenset(known.get(taint.label, taint) for taint in piece.taints))


def case_part(value: Value) -> Value:
    """The last part of a whole cell id, as the source gives it; empty for any other text."""
    text = value.texts[0]
    if len(value.texts) != 1 or len(text) < 7 or not isinstance(text[-1], Hole) or text[-2] != ".":
        return EMPTY
    return Value((text[-1:],))


def _covered(text: Text, masks: frozenset[Text]) -> frozenset[int]:
    """The places of holes in *text* that stand inside a registered text."""
    covered: set[int] = set()
    for mask in masks:
        if _is_opaque(mask):
            covered.update(_of_whole_value(text, mask[0]))
            continue
        for start in range(len(text) - len(mask) + 1):
            if _stands_at(text, start, mask):
                covered.update(range(start, start + len(mask)))
    return frozenset(covered)


def _is_opaque(mask: Text) -> bool:
    return len(mask) == 1 and isinstance(mask[0], Hole) and (not mask[0].symbol or mask[0].symbol.startswith(CAPTURED))


def _of_whole_value(text: Text, hole: str | Hole) -> Iterable[int]:
    """A mask of text that a filter took from the event file: it is the whole value of its one label.

    What the filter selects is not followed, so this is taken on trust; a part of the value is not covered by it, and
    nothing is by an encoding.
    """
    assert isinstance(hole, Hole)
    labels = {taint.label for taint in hole.taints}
    if len(labels) != 1 or hole.longest is not None:
        return ()
    if all(taint.confidence == Confidence.LOW for taint in hole.taints):
        return [index for index, piece in enumerate(text) if hole.symbol and piece == hole]
    whole = [
        index
        for index, piece in enumerate(text)
        if isinstance(piece, Hole) and piece.taints and {taint.label for taint in piece.taints} <= labels
    ]
    # Text that is not known is covered when it is this very text, or when it cannot be told from it.
    return [index for index in whole if text[index].symbol == hole.symbol or _is_whole(text, index)]  # type: ignore[union-attr]


def _is_whole(text: Text, index: int) -> bool:
    piece = text[index]
    assert isinstance(piece, Hole)
    if not any(piece.symbol == taint.label.name for taint in piece.taints):
        return False
    if not is_cell_id(piece.symbol):
        return True
    public = [one for one in text[:index] if isinstance(one, Hole) and one.symbol.startswith(f"{piece.symbol}: ")]
    return len(public) == 3


def _stands_at(text: Text, start: int, mask: Text) -> bool:
    """Whether *mask* stands in *text* from the piece *start* on; its ends may be parts of longer known text."""
    last = len(mask) - 1
    for offset, wanted in enumerate(mask):
        piece = text[start + offset]
        if isinstance(wanted, Hole):
            if not isinstance(piece, Hole) or piece.symbol != wanted.symbol or not wanted.symbol:
                return False
        elif not isinstance(piece, str) or not (
            (0 < offset < last and piece == wanted)
            or (offset == 0 < last and piece.endswith(wanted))
            or (offset == last > 0 and piece.startswith(wanted))
        ):
            return False
    return True
