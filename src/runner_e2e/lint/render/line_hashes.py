"""The hash by which GitHub's code scanning knows a line again after others were put before it.

The same as its upload action computes for results that bring none (``fingerprints.ts`` of github/codeql-action), so
that it makes no difference who did: over the first 100 characters from the start of the line, blanks left out, all
line breaks alike; as ``<hash>:<n>``, with *n* counting lines of equal hash.
"""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["line_hashes"]

_LENGTH = 100
_FACTOR = 37
_MODULUS = 1 << 64
_END_OF_FILE = 0xFFFF
_LINE_BREAK = re.compile(r"\r\n|\r")


def line_hashes(text: str) -> list[str]:
    """The hash of every line of *text* (line 1 first); it has one line more than line breaks."""
    kept = _LINE_BREAK.sub("\n", text).replace(" ", "").replace("\t", "")
    # JavaScript counts characters in UTF-16.
    encoded = kept.encode("utf-16-le", errors="surrogatepass")
    units = [int.from_bytes(encoded[at : at + 2], "little") for at in range(0, len(encoded), 2)]
    starts = [0, *(at + 1 for at, unit in enumerate(units) if unit == 0x0A)]
    units += [_END_OF_FILE, *([0] * _LENGTH)]
    seen: Counter[int] = Counter()
    found = []
    for start in starts:
        value = 0
        for unit in units[start : start + _LENGTH]:
            value = (value * _FACTOR + unit) % _MODULUS
        seen[value] += 1
        found.append(f"{value:x}:{seen[value]}")
    return found
