"""One time for the double, the runs and all clients: a number in a file that every process maps."""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SharedClock"]

# 2026-11-29 22:13:20 UTC: a long schedule runs over midnight, and into the next month after a day and a half.
START: Final = 1_795_990_400.0
_FORM: Final = struct.Struct("d")


class SharedClock:
    """Seconds since the epoch. Only the process of the double moves them.

    *skew* is how many seconds the reader's own clock is ahead.
    """

    def __init__(self, path: Path, *, skew: float = 0.0) -> None:
        self._skew = skew
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _FORM.size)

    @classmethod
    def start(cls, path: Path, seconds: float = START) -> SharedClock:
        """A clock in a new file."""
        path.write_bytes(_FORM.pack(seconds))
        return cls(path)

    def now(self) -> float:
        """The time, as this reader has it."""
        seconds: float = _FORM.unpack_from(self._map)[0]
        return seconds + self._skew

    def sleep(self, seconds: float) -> None:
        """Lets that much time pass for everybody."""
        _FORM.pack_into(self._map, 0, self.now() - self._skew + max(0.0, seconds))

    def close(self) -> None:
        """Gives the map back."""
        self._map.close()
