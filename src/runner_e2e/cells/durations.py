"""Durations as people write them: ``20m``, ``1h30m``, ``90s``; a bare number is seconds."""

from __future__ import annotations

import re

__all__ = ["PATTERN", "format_duration", "parse_duration"]

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
PATTERN = rf"(?=.)(?:{_NUMBER}d ?)?(?:{_NUMBER}h ?)?(?:{_NUMBER}m ?)?(?:{_NUMBER}s)?"
_DURATION = re.compile(PATTERN)
_PART = re.compile(rf"({_NUMBER})([dhms])")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def parse_duration(text: str) -> float | None:
    """Returns the seconds that *text* means, or None when it is no duration with units."""
    if not _DURATION.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def format_duration(seconds: float) -> str:
    """Writes *seconds* with the two largest units that are not zero: ``1h 30m``, ``20m``, ``1.5s``."""
    if seconds < 60:
        return f"{seconds:g}s"
    rest, parts = round(seconds), []
    for unit in "dhms":
        amount, rest = divmod(rest, int(_SECONDS[unit]))
        if amount:
            parts.append(f"{amount}{unit}")
    return " ".join(parts[:2])
