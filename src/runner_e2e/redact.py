"""Takes confidential values out of text and out of byte streams, also where chunks cut a value in two.

A value is found as it is and in the forms in which programs print it by accident: JSON and percent escapes,
base64 (also inside a longer text), hexadecimal, and, for values of several lines, each line alone.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MARKER", "MINIMUM_DERIVED_LENGTH", "RedactingStream", "Redactor"]

MARKER: Final = b"***"

# An encoded form or a single line shorter than this is found in unrelated text too often. The value itself is
# redacted at any length: an ugly log is better than a shown secret.
MINIMUM_DERIVED_LENGTH: Final = 8

# Halves of surrogate pairs that stand for no undecodable byte: they have no form in UTF-8.
_LONE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class Redactor:
    """Replaces every occurrence of the given values, and of their encoded forms, with ``***``."""

    def __init__(self, values: Iterable[str]) -> None:
        """Empty values are ignored. Undecodable bytes of the environment (surrogate escapes) are kept as bytes."""
        self.forms: dict[bytes, str] = {}
        for value in values:
            for form in _forms(value):
                self.forms.setdefault(form, value)

    def text(self, text: str) -> str:
        """Returns *text* without the values."""
        if not self.forms:
            return text
        return self.data(_LONE.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "surrogateescape")).decode(
            "utf-8", "surrogateescape"
        )

    def data(self, data: bytes) -> bytes:
        """Returns *data* without the values."""
        stream = self.stream()
        return stream.feed(data) + stream.flush()

    def stream(self) -> RedactingStream:
        """Begins a stream: chunks of bytes in, redacted bytes out."""
        return RedactingStream(self)

    def found_in(self, data: bytes) -> frozenset[str]:
        """Returns the given values that *data* holds in any form."""
        return frozenset(value for form, value in self.forms.items() if form in data)


class RedactingStream:
    """One stream through a :class:`Redactor`. Holds back only what may yet become a value, never more than one.

    ``found`` holds the values met so far.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.found: set[str] = set()
        self._forms = redactor.forms
        self._longest = max(map(len, redactor.forms), default=0)
        self._held = b""
        # So many bytes at the beginning of what is held belong to a value whose marker was written already.
        self._covered = 0

    def feed(self, chunk: bytes) -> bytes:
        """Takes the next bytes and returns those that can be shown now."""
        return self._advance(self._held + chunk, last=False)

    def flush(self) -> bytes:
        """Ends the stream and returns what was still held back."""
        return self._advance(self._held, last=True)

    def _advance(self, data: bytes, *, last: bool) -> bytes:
        keep = len(data) if last else self._start_of_unfinished(data)
        shown = bytearray()
        position = covered_until = self._covered
        for start, end in self._intervals(data):
            if start >= keep:
                break
            if start > covered_until or not covered_until:
                shown += data[position:start] + MARKER
            covered_until = max(covered_until, end)
            position = max(position, covered_until)
        shown += data[position:keep]
        self._held = data[keep:]
        self._covered = max(0, covered_until - keep)
        return bytes(shown)

    def _intervals(self, data: bytes) -> list[tuple[int, int]]:
        """Where values stand, in order; they may overlap, and their union is what must not be shown."""
        found = []
        for form, value in self._forms.items():
            start = data.find(form)
            while start >= 0:
                self.found.add(value)
                found.append((start, start + len(form)))
                start = data.find(form, start + 1)
        return sorted(found)

    def _start_of_unfinished(self, data: bytes) -> int:
        """Where the longest end of *data* begins that a later chunk may complete to a value."""
        offset = max(0, len(data) - self._longest + 1)
        tail = data[offset:]
        earliest = len(tail)
        for form in self._forms:
            start = tail.find(form[:1])
            while 0 <= start < earliest:
                if len(tail) - start < len(form) and form.startswith(tail[start:]):
                    earliest = start
                    break
                start = tail.find(form[:1], start + 1)
        return offset + earliest


def _forms(value: str) -> dict[bytes, None]:
    """Every form of one value, the plain one first."""
    plain = value.encode("utf-8", "surrogateescape")
    if not plain:
        return {}
    derived = [line.strip().encode("utf-8", "surrogateescape") for line in value.splitlines()]
    derived += [json.dumps(value)[1:-1].encode(), json.dumps(value, ensure_ascii=False)[1:-1].encode(errors="replace")]
    derived += [
        quote(plain, safe="").encode(),
        quote_plus(plain).encode(),
        plain.hex().encode(),
        plain.hex().upper().encode(),
    ]
    derived += _base64_forms(plain)
    return dict.fromkeys([plain, *(form for form in derived if len(form) >= MINIMUM_DERIVED_LENGTH)])


def _base64_forms(plain: bytes) -> list[bytes]:
    """The characters of base64 that depend on *plain* alone, for each of its three positions in a longer text."""
    forms = []
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + plain)
        # Characters at either end that share bits with neighbours, or are padding, differ from text to text.
        start = -(-before * 8 // 6)
        end = (before + len(plain)) * 8 // 6
        form = encoded[start:end]
        forms += [form, form.replace(b"+", b"-").replace(b"/", b"_")]
    return forms
