"""A program text ready to be parsed: interpolations put in, and where each character stands in its origin."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.lint.values import Origin, Script, Text

__all__ = ["PLACEHOLDER", "Source"]

# Text that is not known stands in the source as one character of a private plane, which the grammar of the
# shell takes for an ordinary character of a word.
_FIRST = 0xF0000
_LAST = 0xFFFFD
PLACEHOLDER = re.compile("[\U000f0000-\U000ffffd]")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Text with placeholders; *starts* and *ends* (None: the text is the origin's) place each character."""

    origin: Origin
    text: str
    inserted: tuple[Value, ...] = ()
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None
    exact: bool = True
    """Whether the text stands in the origin; else it was made elsewhere and its places are those of its use."""

    def start(self, offset: int) -> int:
        """The offset in the origin where the character at *offset* begins."""
        if self.starts is None:
            return offset
        if offset < len(self.starts):
            return self.starts[offset]
        return self.end(offset)

    def end(self, offset: int) -> int:
        """The offset in the origin where the character before *offset* ends."""
        if self.ends is None:
            return offset
        return self.ends[min(offset, len(self.ends)) - 1] if offset and self.ends else self.start_of_all()

    def start_of_all(self) -> int:
        """The offset in the origin of the first character."""
        return self.starts[0] if self.starts else 0

    def value_of(self, placeholder: str) -> Value:
        """What a placeholder character stands for."""
        return self.inserted[ord(placeholder) - _FIRST]

    def value_in(self, text: str) -> Value:
        """The value of a piece of this source: known text, and what its placeholder characters stand for."""
        total = EMPTY
        offset = 0
        for match in PLACEHOLDER.finditer(text):
            total = total + Value.literal(text[offset : match.start()]) + self.value_of(match[0])
            offset = match.end()
        return total + Value.literal(text[offset:])

    @staticmethod
    def of_script(script: Script) -> Source:
        """The source of a script whose interpolations are put in as text, as the runner does."""
        text = PLACEHOLDER.sub("\ufffd", script.text)
        if not script.interpolations:
            return Source(script.origin, text)
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        inserted: list[Value] = []

        def copy(first: int, last: int) -> None:
            pieces.append(text[first:last])
            starts.extend(range(first, last))
            ends.extend(range(first + 1, last + 1))

        offset = 0
        for interpolation in script.interpolations:
            copy(offset, interpolation.start)
            put = _spliced(interpolation.value, inserted)
            pieces.append(put)
            starts.extend([interpolation.start] * len(put))
            ends.extend([interpolation.end] * len(put))
            offset = interpolation.end
        copy(offset, len(text))
        return Source(script.origin, "".join(pieces), tuple(inserted), starts, ends)

    @staticmethod
    def of_text(text: Text, origin: Origin, start: int, end: int) -> Source:
        """The program in the text of an ``eval``, ``-c`` or file; every character stands at ``[start, end)``."""
        inserted: list[Value] = []
        spliced = _spliced(Value((text,)), inserted)
        return Source(origin, spliced, tuple(inserted), [start] * len(spliced), [end] * len(spliced), exact=False)


def _spliced(value: Value, inserted: list[Value]) -> str:
    """The characters for *value*: known text as it is, else a placeholder that joins *inserted*."""
    if len(value.texts) != 1:
        if len(inserted) > _LAST - _FIRST:
            return "\ufffd"
        inserted.append(value)
        return chr(_FIRST + len(inserted) - 1)
    pieces: list[str] = []
    for piece in value.texts[0]:
        if isinstance(piece, str):
            pieces.append(PLACEHOLDER.sub("\ufffd", piece))
        elif len(inserted) <= _LAST - _FIRST:
            inserted.append(Value(((piece,),)))
            pieces.append(chr(_FIRST + len(inserted) - 1))
    return "".join(pieces)
