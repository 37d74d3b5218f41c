"""How messages repeat what a person wrote: safely, and with the name that was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.cells.raw_secrets import looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner_e2e.cells.model import Cell

__all__ = ["count", "expected_cost", "listing", "nearest", "quote", "suggestion"]

SHOWN_CHARACTERS = 80


def quote(text: str) -> str:
    """Returns *text* in quotes, fit for a terminal and a log.

    Everything but printable ASCII becomes an escape, long texts are cut, and a text that has the shape of a
    secret is not shown at all.
    """
    if looks_secret(text):
        return "(a value that looks like a secret, not shown)"
    shown = "".join(_visible(character) for character in text[:SHOWN_CHARACTERS])
    return f"'{shown}…' ({len(text)} characters)" if len(text) > SHOWN_CHARACTERS else f"'{shown}'"


def _visible(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if " " <= character <= "~":
        return character
    return character.encode("unicode_escape").decode("ascii")


def nearest(name: str, names: Iterable[str], *, limit: int = 3) -> tuple[str, ...]:
    """Returns up to *limit* of *names* that *name* was probably meant to be, the best first.

    Names that *name* is the first or the last part of come before those that are merely similar.
    """
    from difflib import get_close_matches

    known = list(dict.fromkeys(names))
    wanted = name[:512].lower()
    leading = tuple(f"{wanted}{joint}" for joint in ".-_")
    trailing = tuple(f"{joint}{wanted}" for joint in ".-_")
    parts = [other for other in known if other.startswith(leading) or other.endswith(trailing)]
    folded = {other.lower(): other for other in reversed(known)}
    similar = [folded[match] for match in get_close_matches(wanted, folded, n=limit, cutoff=0.6)]
    return tuple(dict.fromkeys([*parts, *similar]))[:limit]


def listing(names: Sequence[str], *, limit: int = 8) -> str:
    """Joins *names* with commas; of more than *limit* it says how many are left out."""
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def suggestion(name: str, names: Iterable[str]) -> str:
    """Says what *name* was probably meant to be, or else what there is."""
    known = list(dict.fromkeys(names))
    close = nearest(name, known)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known are: {listing(known)}" if known else "declare it first: there is none yet"


def count(number: int, noun: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def expected_cost(cells: Sequence[Cell]) -> str:
    """Says what an attempt of each of *cells* is expected to cost; what is unknown is counted, never taken for zero."""
    if not any(cell.billable for cell in cells):
        return "free"
    known = sum(cell.expected_cost for cell in cells if cell.expected_cost is not None)
    unknown = sum(cell.expected_cost is None for cell in cells)
    rest = f" and the unknown cost of {count(unknown, 'cell')}" if unknown else ""
    return f"expected cost ${known:.2f}{rest}"
