"""What a verdict rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["MOST_EVIDENCE", "Evidence", "note", "short"]

MOST_EVIDENCE: Final = 20
_LONGEST_WORDS: Final = 300


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One thing that a verdict rests on: a sentence, and where it stands (``file:line``; empty: in no file)."""

    text: str
    place: str = ""


def note(evidence: list[Evidence], text: str, place: object) -> None:
    """Adds to *evidence* what is new in it, as long as there is room."""
    if len(evidence) < MOST_EVIDENCE and all(one.text != text for one in evidence):
        evidence.append(Evidence(text=text, place=str(place)))


def short(text: str) -> str:
    """*text* as one line of printable characters that is not too long."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text[: 2 * _LONGEST_WORDS]).split())
    return line if len(line) <= _LONGEST_WORDS else line[: _LONGEST_WORDS - 1] + "…"
