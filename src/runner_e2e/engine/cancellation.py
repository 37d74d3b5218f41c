"""One wish to stop, seen by every attempt: from Ctrl-C, SIGTERM, a closed terminal, or the caller."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["Cancellation"]

# A cancelled job gets SIGINT, 7.5 s later SIGTERM, 2.5 s later its end (actions/runner, ProcessInvoker). The results
# are written after the harness has ended, so the grace after either signal must end well before the next event.
GRACE: Final = {signal.SIGINT: 5.0, signal.SIGTERM: 1.0, signal.SIGHUP: 1.0}


class Cancellation:
    """Asked to stop once: attempts get a grace. Asked again: everything is killed at once."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._requests: list[signal.Signals] = []

    def request(self, number: signal.Signals = signal.SIGINT) -> None:
        """Asks to stop. May be called from a signal handler and from any thread."""
        self._requests.append(number)
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"!")

    @property
    def number(self) -> signal.Signals | None:
        """The first signal that asked, or None."""
        return self._requests[0] if self._requests else None

    @property
    def grace(self) -> float | None:
        """Seconds that a harness has to end, 0.0 when asked more than once; None while nobody asked."""
        if not self._requests:
            return None
        return GRACE.get(self._requests[0], 0.0) if len(self._requests) == 1 else 0.0

    def fileno(self) -> int:
        """A descriptor that stays readable from the first request on."""
        return self._reader

    def close(self) -> None:
        """Gives the descriptors back."""
        os.close(self._reader)
        os.close(self._writer)

    @classmethod
    @contextlib.contextmanager
    def on_signals(cls) -> Iterator[Cancellation]:
        """Requests come from SIGINT, SIGTERM and SIGHUP while this lasts. To be entered in the main thread."""
        cancellation = cls()

        def handle(number: int, _frame: FrameType | None) -> None:
            cancellation.request(signal.Signals(number))

        # A signal that the caller of this process ignores on purpose (nohup) stays ignored.
        before = {number: signal.getsignal(number) for number in GRACE}
        handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
        for number in handled:
            signal.signal(number, handle)
        try:
            yield cancellation
        finally:
            for number in handled:
                signal.signal(number, before[number])
            cancellation.close()
