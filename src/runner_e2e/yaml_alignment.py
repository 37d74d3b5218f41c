"""From a position in the value of a YAML scalar to the position in the file, for every style of scalar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["aligned"]

_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r\n|[\s\S])")


def aligned(text: str, start: int, end: int, *, style: str, value: str) -> list[tuple[int, int]]:
    """Pairs (index in *value*, offset in *text*), ascending: between two of them both count alike.

    *value* is what the scalar of *style* (empty, ``'``, ``"``, ``|`` or ``>``) at ``[start, end)`` of *text* says.
    """
    raw = text[start:end]
    if style in {"|", ">"}:
        return _block(raw, start, style, value)
    quote = 1 if style else 0
    body = raw[quote : len(raw) - quote]
    if body == value:
        return [(0, start + quote)]
    return _flow(body, start + quote, style, value)


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Offset and text, without its break, of every line."""
    position = 0
    for found in _LINE_BREAK.finditer(text):
        yield start + position, text[position : found.start()]
        position = found.end()
    yield start + position, text[position:]


def _block(raw: str, start: int, style: str, value: str) -> list[tuple[int, int]]:
    lines = list(_lines(raw, start))[1:]  # the first line is the header
    first = next((text for _, text in lines if text.strip(" ")), "")
    # With an explicit indentation indicator the value itself starts with spaces.
    lead = value.lstrip("\n")
    indent = len(first) - len(first.lstrip(" ")) - (len(lead) - len(lead.lstrip(" ")))
    pairs: list[tuple[int, int]] = []
    index = 0
    for offset, text in lines:
        content = text[indent:]
        if style == ">":
            if not content:
                continue
            while value[index : index + 1] in ("\n", " ") and not value.startswith(content, index):
                index += 1
        pairs.append((index, offset + min(indent, len(text))))
        index += len(content) + (1 if style == "|" else 0)
    if not pairs:
        return [(0, start + len(raw))]
    if pairs[0][0] > 0:
        pairs.insert(0, (0, pairs[0][1]))
    return pairs


def _flow(body: str, start: int, style: str, value: str) -> list[tuple[int, int]]:
    """Quoted and plain scalars with escapes or several lines."""
    pairs: list[tuple[int, int]] = [(0, start)]
    index = 0
    lines = list(_lines(body, start))
    joined = False  # the last line ended in an escaped line break
    for number, (offset, text) in enumerate(lines):
        lead = len(text) - len(text.lstrip(" \t")) if number else 0
        last = number == len(lines) - 1
        content = text[lead:] if last else text[lead:].rstrip(" \t")
        if number and not content and not last:
            continue
        if number and not joined:
            # One space or the line breaks that were kept stand between two lines.
            if value[index : index + 1] == " ":
                index += 1
            else:
                while value[index : index + 1] == "\n":
                    index += 1
        pairs.append((index, offset + lead))
        index, joined = _line(style, content, offset + lead, index, pairs)
    return pairs


def _line(style: str, content: str, offset: int, index: int, pairs: list[tuple[int, int]]) -> tuple[int, bool]:
    """Adds the escapes of one line; returns the index after it and whether its line break is escaped."""
    position = 0
    if style == "'":
        while (found := content.find("''", position)) >= 0:
            index += found - position + 1
            position = found + 2
            pairs.append((index, offset + position))
    elif style == '"':
        while (escape := content.find("\\", position)) >= 0:
            index += escape - position
            matched = _ESCAPE.match(content, escape)
            if matched is None:  # the backslash ends the line: the break and the indentation vanish
                return index, True
            index += 1
            position = matched.end()
            pairs.append((index, offset + position))
    return index + len(content) - position, False
