"""When what the next launch needs is made: in the first quiet moment, or at once where launches come thick and fast."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["QUIET", "Pace"]

QUIET = 20  # milliseconds without a request: the last launch is then on its way, and loses nothing to the next one
_THICK = 0.05  # seconds between two launches: there may be no quiet moment before the third


class Pace:
    """How quickly launches follow each other. *clock* gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._came = float("-inf")
        self.patience = QUIET
        """Milliseconds to wait for a request before something is made for the next one."""

    def note(self) -> None:
        """Notes that a launch has come."""
        before, self._came = self._came, self._clock()
        self.patience = 0 if self._came - before < _THICK else QUIET
