"""Reads JSON lines that an agent wrote: streamed, bounded, and with every damaged line told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

__all__ = ["LONGEST_LINE", "Damage", "JsonObject", "Noise", "read_json_lines"]

JsonObject: TypeAlias = "dict[str, object]"

LONGEST_LINE: Final = 16 << 20
_NESTING = "nested too deeply"


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    """A line that was meant to be an event and cannot be read as one."""

    line: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """A line that never was an event: a warning that a program printed between them."""

    line: int


def read_json_lines(
    stream: BinaryIO, *, skip: re.Pattern[bytes] | None = None
) -> Iterator[tuple[int, JsonObject] | Damage | Noise]:
    """The objects in *stream* with their line numbers from 1, in the order of the file.

    Holds one line at a time. A line that is longer than :data:`LONGEST_LINE` bytes, that is cut off, or that is no
    JSON object although it begins like one is a :class:`Damage`. Whole lines that begin like *skip* are passed over.
    """
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            if not line.endswith(b"\n"):
                _skip_line(stream)
            yield Damage(line=number, reason=f"longer than {LONGEST_LINE >> 20} MiB")
            continue
        if skip is not None and line.endswith(b"\n") and skip.match(line):
            continue
        text = line.strip()
        if not text:
            continue
        if text[0] != ord("{"):
            yield Noise(line=number)
            continue
        try:
            value = json.loads(text)
        except RecursionError:
            yield Damage(line=number, reason=_NESTING)
        except ValueError:
            # UnicodeDecodeError and JSONDecodeError are both ValueErrors, as are numbers of absurd length.
            cut = not line.endswith(b"\n")
            yield Damage(line=number, reason="cut off" if cut else "not JSON")
        else:
            yield number, value


def _skip_line(stream: BinaryIO) -> None:
    while piece := stream.readline(1 << 20):
        if piece.endswith(b"\n"):
            return
