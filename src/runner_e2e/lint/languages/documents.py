"""JSON texts with unknown parts, as data: the event file, ``toJSON(inputs)``, what a program has put together.

An unknown part inside of a string stays a part of that string; one in the place of a value is any value; one in the
place of an entry may be any other entries.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.source import PLACEHOLDER
from runner_e2e.lint.values import Hole, Value, normal

if TYPE_CHECKING:
    from runner_e2e.lint.values import Taint, Text

__all__ = ["Json", "Unknown", "read_json"]

_FIRST = 0xF0000
_MAX_CHARACTERS = 200_000
_ESCAPED = re.compile(r"\\u[dD][bB][89a-fA-F]")
"""The first half of an escaped character of the planes where unknown parts stand."""
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[\U000f0000-\U000ffffd]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any value, from which these labels can be read."""

    taints: frozenset[Taint]


Json: TypeAlias = "dict[str | None, Json] | list[Json] | Value | Unknown | int | float | bool | None"
"""Strings are values; the key None of a dictionary stands for any other entries."""


def read_json(text: Text) -> Json:
    """The data in *text*. Raises :class:`ValueError` when it is no JSON."""
    holes: list[Hole] = []
    pieces: list[str] = []
    for piece in text:
        if isinstance(piece, Hole):
            holes.append(piece)
            pieces.append(chr(_FIRST + len(holes) - 1))
        elif PLACEHOLDER.search(piece) or _ESCAPED.search(piece):
            raise ValueError("letters that stand for unknown text")
        else:
            pieces.append(piece)
    marked = "".join(pieces)
    if len(marked) > _MAX_CHARACTERS:
        raise ValueError("too long")
    try:
        data = json.loads(_completed(marked) if holes else marked)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return _json(data, holes)


def _completed(text: str) -> str:
    """*text* with quotes around unknown values, and with keys for unknown entries."""
    pieces: list[str] = []
    containers: list[str] = []
    offset, last = 0, ""
    for match in _PART.finditer(text):
        part = match.group()
        pieces.append(text[offset : match.start()])
        offset = match.end()
        if len(part) == 1 and part not in "{}[]:,":
            entry = bool(containers) and containers[-1] == "{" and last in ("{", ",")
            pieces.append(f'"{part}": "{part}"' if entry else f'"{part}"')
        else:
            pieces.append(part)
        if part in ("{", "["):
            containers.append(part)
        elif part in ("}", "]") and containers:
            containers.pop()
        last = part
    return "".join([*pieces, text[offset:]])


def _json(data: object, holes: list[Hole]) -> Json:
    if isinstance(data, str):
        if len(data) == 1 and PLACEHOLDER.fullmatch(data):
            hole = holes[ord(data) - _FIRST]
            # A string that is unknown as a whole, or any value: text is the more precise of the two.
            return Unknown(hole.taints) if not hole.symbol else Value(((hole,),))
        return Value((_text(data, holes),))
    if isinstance(data, dict):
        found: dict[str | None, Json] = {}
        for key, item in data.items():
            if PLACEHOLDER.search(key):
                found[None] = _json(item, holes)
            else:
                found[key] = _json(item, holes)
        return found
    if isinstance(data, list):
        return [_json(item, holes) for item in data]
    assert data is None or isinstance(data, int | float)
    return data


def _text(data: str, holes: list[Hole]) -> Text:
    return normal(
        holes[ord(piece) - _FIRST] if PLACEHOLDER.fullmatch(piece) else piece
        for piece in re.split("([\U000f0000-\U000ffffd])", data)
        if piece
    )
