"""A part of JSONPath (RFC 9535): names, indexes, slices, wildcards and descendants; no filters."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["JsonPath", "JsonPathError", "parse_json_path"]

_MOST_NODES: Final = 1_000_000
_NAME = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*")
_SLICE = re.compile(r"(-?\d{1,15})?\s*:\s*(-?\d{1,15})?(?:\s*:\s*(-?\d{1,15})?)?")
_INDEX = re.compile(r"-?(?:0|[1-9]\d{0,14})")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')


class JsonPathError(Exception):
    """The expression is wrong, or more nodes are selected than can be looked at. The text says what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wildcard:
    """Every member or element."""


_Selector: TypeAlias = "str | int | slice | _Wildcard"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Segment:
    selectors: tuple[_Selector, ...]
    descendant: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonPath:
    """A parsed expression; *text* is how it was written."""

    text: str
    segments: tuple[_Segment, ...]

    def select(self, document: object) -> list[object]:
        """The selected values, in the order of RFC 9535. Raises :class:`JsonPathError` when there are too many."""
        nodes = [document]
        for segment in self.segments:
            found: list[object] = []
            for node in _descendants(nodes) if segment.descendant else nodes:
                for selector in segment.selectors:
                    found += _selected(node, selector)
                if len(found) > _MOST_NODES:
                    raise JsonPathError(f"{self.text} selects more than {_MOST_NODES:,} values")
            nodes = found
        return nodes


def parse_json_path(text: str) -> JsonPath:
    """Parses an expression. Raises :class:`JsonPathError` with the place of the mistake."""
    if not text.startswith("$"):
        raise JsonPathError("a JSONPath begins with $")
    segments: list[_Segment] = []
    position = 1
    while position < len(text):
        descendant = text.startswith("..", position)
        if descendant:
            position += 2
        elif text[position] == ".":
            position += 1
            if text.startswith("[", position):
                raise _mistake(text, position)
        elif text[position] != "[":
            raise _mistake(text, position)
        selectors, position = _brackets(text, position) if text.startswith("[", position) else _short(text, position)
        segments.append(_Segment(selectors=selectors, descendant=descendant))
    return JsonPath(text=text, segments=tuple(segments))


def _short(text: str, position: int) -> tuple[tuple[_Selector, ...], int]:
    if text.startswith("*", position):
        return (_Wildcard(),), position + 1
    name = _NAME.match(text, position)
    if not name:
        raise _mistake(text, position)
    return (name[0],), name.end()


def _brackets(text: str, position: int) -> tuple[tuple[_Selector, ...], int]:
    selectors: list[_Selector] = []
    while True:
        position = _blanks(text, position + 1)
        selector, position = _selector(text, position)
        selectors.append(selector)
        position = _blanks(text, position)
        if text.startswith("]", position):
            return tuple(selectors), position + 1
        if not text.startswith(",", position):
            raise _mistake(text, position)


def _selector(text: str, position: int) -> tuple[_Selector, int]:
    if text.startswith("*", position):
        return _Wildcard(), position + 1
    if text.startswith("?", position):
        raise JsonPathError(f"filters are not supported (at character {position + 1})")
    if string := _STRING.match(text, position):
        return _string(string[0], position), string.end()
    if (part := _SLICE.match(text, position)) and ":" in part[0]:
        start, stop, step = (int(number) if number else None for number in part.groups())
        return slice(start, stop, step), part.end()
    if index := _INDEX.match(text, position):
        return int(index[0]), index.end()
    raise _mistake(text, position)


def _string(quoted: str, position: int) -> str:
    inner = quoted[1:-1]
    if quoted[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{inner}"'))
    except ValueError:
        raise JsonPathError(f"the name at character {position + 1} is not a JSON string") from None


def _blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\n\r":
        position += 1
    return position


def _mistake(text: str, position: int) -> JsonPathError:
    found = f"“{text[position]}”" if position < len(text) else "the end"
    return JsonPathError(f"{found} is not expected at character {position + 1}")


def _selected(node: object, selector: _Selector) -> list[object]:
    if isinstance(selector, _Wildcard):
        return list(_children(node))
    if isinstance(selector, str):
        return [node[selector]] if isinstance(node, dict) and selector in node else []
    if not isinstance(node, list):
        return []
    if isinstance(selector, slice):
        return [] if selector.step == 0 else node[selector]
    return [node[selector]] if -len(node) <= selector < len(node) else []


def _children(node: object) -> Iterator[object]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node


def _descendants(nodes: list[object]) -> Iterator[object]:
    """Every node with all below it, parents first; without recursion, for documents nest deeply."""
    count = 0
    pending = nodes[::-1]
    while pending:
        node = pending.pop()
        count += 1
        if count > _MOST_NODES:
            raise JsonPathError(f"the document holds more than {_MOST_NODES:,} values")
        yield node
        pending += list(_children(node))[::-1]
