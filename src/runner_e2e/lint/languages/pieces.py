"""Pieces of texts with holes: cutting, splitting, changing the known parts. Shared by the analysers of languages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.values import EMPTY, Hole, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner_e2e.lint.values import Text

__all__ = ["at_most", "joined", "mapped", "sliced", "split_at", "stripped", "words"]

# A hole stands as one character of this plane while the text around it is cut.
_FIRST_HOLE = 0x100000
_HOLES = re.compile("([\U00100000-\U0010fffd])")


def _encoded(text: Text, holes: list[Hole]) -> str:
    if len(text) == 1 and isinstance(text[0], str):
        return text[0]
    out: list[str] = []
    for piece in text:
        if isinstance(piece, Hole):
            holes.append(piece)
            out.append(chr(_FIRST_HOLE + len(holes) - 1))
        else:
            out.append(_HOLES.sub("\ufffd", piece))
    return "".join(out)


def _decoded(encoded: str, holes: list[Hole]) -> Text:
    if not holes:
        return (encoded,) if encoded else ()
    return normal(
        holes[ord(piece) - _FIRST_HOLE] if ord(piece[0]) >= _FIRST_HOLE else piece
        for piece in _HOLES.split(encoded)
        if piece
    )


def joined(values: Iterable[Value], separator: Value) -> Value:
    """The texts *values* one behind the other with *separator* between them."""
    total = EMPTY
    for index, value in enumerate(values):
        total = total + separator + value if index else value
    return total


def at_most(value: Value, limit: int) -> Value:
    """The first *limit* characters of *value*."""
    texts: list[Text] = []
    for text in value.texts:
        if all(isinstance(piece, str) for piece in text):
            texts.append(normal(["".join(str(piece) for piece in text)[:limit]]))
        else:
            texts.append((Hole(Value((text,)).taints, "", limit),) if limit > 0 else ())
    return Value.any_of(texts)


def sliced(value: Value, start: int, end: int | None) -> Value:
    """Characters ``[start, end)`` of *value* (None: to its end); negative numbers count from the end."""
    constants = value.constants
    if constants is not None:
        return join(Value.literal(text[slice(start, end)]) for text in constants)
    if start == 0 and end is None:
        return value
    if end is not None and (start >= 0) == (end >= 0):
        size = max(0, end - start)
    elif end is None and start < 0:
        size = -start
    else:
        return _without_start(value, start) if end is None else value.opaque()
    if size == 0:
        return EMPTY
    return at_most(value if start == 0 else value.opaque(), size)


def _without_start(value: Value, count: int) -> Value:
    """*value* without its first *count* characters, as far as those are known."""
    texts: list[Text] = []
    for text in value.texts:
        first = text[0] if text else ""
        if not isinstance(first, str) or len(first) < count:
            return value.opaque()
        texts.append((first[count:], *text[1:]) if len(first) > count else text[1:])
    return Value.any_of(texts)


def split_at(value: Value, separator: str) -> list[Value] | None:
    """The parts of *value* between *separator*; None when it is not known how many there are.

    A labelled hole, and the parts of a cell id, are taken to hold no separator: ``split(".")`` takes an id apart.
    """
    if not separator:
        return None
    rows: list[list[Value]] = []
    for text in value.texts:
        holes: list[Hole] = []
        rows.append([Value((_decoded(part, holes),)) for part in _encoded(text, holes).split(separator)])
        alone = len(text) == 1 and isinstance(text[0], Hole)
        if alone and (separator != "." or not value.taints):
            return None
    if len({len(row) for row in rows}) != 1:
        return None
    return [join(column) for column in zip(*rows, strict=True)]


def words(value: Value) -> list[Value] | None:
    """The parts between white space; a hole has none. None when the alternatives differ in their number."""
    rows: list[list[Value]] = []
    for text in value.texts:
        holes: list[Hole] = []
        rows.append([Value((_decoded(part, holes),)) for part in _encoded(text, holes).split()])
    if len({len(row) for row in rows}) != 1:
        return None
    return [join(column) for column in zip(*rows, strict=True)]


def mapped(value: Value, change: Callable[[str], str]) -> Value:
    """*value* with *change* made to its known pieces; what the holes hold may change as well."""
    return Value.any_of(
        normal(change(piece) if isinstance(piece, str) else Hole(piece.taints, "", piece.longest) for piece in text)
        for text in value.texts
    )


def stripped(value: Value) -> Value:
    """*value* without white space at its ends."""
    texts: list[Text] = []
    for text in value.texts:
        pieces = list(text)
        if pieces and isinstance(pieces[0], str):
            pieces[0] = pieces[0].lstrip()
        if pieces and isinstance(pieces[-1], str):
            pieces[-1] = pieces[-1].rstrip()
        texts.append(normal(pieces))
    return Value.any_of(texts)
