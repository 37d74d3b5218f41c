"""Backslash escapes: of ``$'…'``, ``echo -e`` and ``printf``."""

from __future__ import annotations

import re

__all__ = ["decode"]

_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<short>[0-9A-Fa-f]{1,4})"
    r"|U(?P<long>[0-9A-Fa-f]{1,8})|c(?P<control>.)|(?P<char>.))",
    re.DOTALL,
)
_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def decode(text: str) -> str:
    """*text* with its escapes replaced; what is no escape stays."""

    def replaced(match: re.Match[str]) -> str:
        if octal := match["octal"]:
            return chr(int(octal, 8) & 0xFF)
        if code := match["hex"] or match["short"] or match["long"]:
            number = int(code, 16)
            return chr(number) if number < 0x110000 else "\ufffd"
        if control := match["control"]:
            return chr(ord(control) & 0x1F)
        char = match["char"]
        if char in "\\'\"?":
            return char
        return _SIMPLE.get(char, match.group())

    return _ESCAPE.sub(replaced, text) if "\\" in text else text
