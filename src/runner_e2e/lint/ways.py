"""Ways through callees that were analysed once: for the next caller they begin where that one gives its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.expression_data import Data, changed, taints_of
from runner_e2e.lint.values import Step, Taint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runner_e2e.lint.values import Label

__all__ = ["begun_anew", "ways_of"]


def ways_of(given: Iterable[Data]) -> dict[Label, Step]:
    """The way of each label up to a call that is *given* these data."""
    return {taint.label: taint.trail for data in given for taint in taints_of(data) if taint.trail is not None}


def begun_anew(data: Data, before: Mapping[Label, Step], now: Mapping[Label, Step]) -> Data:
    """*data* that came out of a call whose values had come the ways *before*, as when they had come the ways *now*."""
    return changed(data, moved(before, now)) if before != now else data


def moved(before: Mapping[Label, Step], now: Mapping[Label, Step]) -> Callable[[Taint], Taint]:
    """Puts the ways *now* in the place of those *before*."""

    def change(taint: Taint) -> Taint:
        first, other = before.get(taint.label), now.get(taint.label)
        if first is None or other is None or first is other or taint.trail is None:
            return taint
        inside: list[Step] = []
        step: Step | None = taint.trail
        while step is not None and step is not first:
            inside.append(step)
            step = step.previous
        if step is None:
            return taint  # it did not come in by this call
        way = other
        for one in reversed(inside):
            way = Step(one.origin, one.start, one.end, one.note, way)
        return Taint(taint.label, taint.confidence, way)

    return change
