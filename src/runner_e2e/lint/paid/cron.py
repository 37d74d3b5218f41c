"""How often a schedule fires."""

from __future__ import annotations

__all__ = ["runs_a_day"]

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIELDS = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 6, _DAYS))


def runs_a_day(text: str) -> int | None:
    """How often the schedule fires on a day on which it does; None when *text* is no schedule of five fields."""
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return None
    counts = [_count(field, *known) for field, known in zip(fields, _FIELDS, strict=True)]
    if None in counts:
        return None
    minutes, hours = counts[0] or 0, counts[1] or 0
    return minutes * hours


def _count(field: str, least: int, most: int, names: tuple[str, ...]) -> int | None:
    """How many values a field stands for; None when it is not valid."""
    found: set[int] = set()
    for part in field.lower().split(","):
        span, slash, step_text = part.partition("/")
        if slash and not (step_text.isdigit() and int(step_text) > 0):
            return None
        first, dash, last = span.partition("-")
        if span == "*":
            low, high = least, most
        else:
            one, other = _number(first, least, names), _number(last, least, names) if dash else None
            if one is None or (dash and other is None):
                return None
            low, high = one, other if other is not None else (most if slash else one)
        if not least <= low <= high <= most:
            return None
        found.update(range(low, high + 1, int(step_text) if slash else 1))
    return len(found)


def _number(text: str, least: int, names: tuple[str, ...]) -> int | None:
    if text in names:
        return names.index(text) + least
    return int(text) if text.isdigit() and len(text) <= 2 else None
