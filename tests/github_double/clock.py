"""Time of the double: one that tests move by hand, or the real one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "ManualClock", "RealClock", "stamp"]


class Clock(Protocol):
    """Seconds since the epoch, and a way to wait."""

    def now(self) -> float:
        """The time."""

    def sleep(self, seconds: float) -> None:
        """Lets that much time pass."""


@dataclass
class ManualClock:
    """Time that passes only when somebody waits, so that hours take no time."""

    seconds: float = 1_796_000_000.0

    def now(self) -> float:
        """The time."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Moves the time."""
        self.seconds += max(0.0, seconds)


class RealClock:
    """The time of the machine."""

    def now(self) -> float:
        """The time."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)


def stamp(seconds: float) -> str:
    """A time as GitHub writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
