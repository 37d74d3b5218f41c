"""The clock of a file system, which moves in ticks: what is written within one has the time of what was before it."""

from __future__ import annotations

import os
import tempfile
import time
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["wait_for_the_next_tick"]


def wait_for_the_next_tick(folder: Path) -> None:
    """Waits until what is written in *folder* has a later time than all that was written there before."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        before = _written(file)
        while _written(file) == before:
            time.sleep(0.0005)


def _written(file: IO[bytes]) -> int:
    file.write(b"x")
    return os.fstat(file.fileno()).st_mtime_ns
