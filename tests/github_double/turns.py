"""Turns: tasks that run one at a time, each until its next request, in an order that a seed decides.

A task is a function in a thread of its own, but only one thread runs at any time: who has the turn. So two runs can
meet between any two requests of theirs, and the same seed gives the same meeting again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StoppedError", "Task"]

_LONGEST_TURN = 60.0


class StoppedError(BaseException):
    """Raised in a task that may not go on. No ``except Exception`` of the code under test catches it."""


class Task:
    """A function that goes on, one turn at a time. :meth:`pause`, called by the function itself, ends a turn."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.done = False
        self.error: BaseException | None = None
        self._function = function
        self._stopped = False
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def turn(self) -> None:
        """Lets the function go on until it pauses or ends. Raises what it raised."""
        if self._thread.ident is None:
            self._thread.start()
        self._go.release()
        if not self._paused.acquire(timeout=_LONGEST_TURN):
            raise TimeoutError("a turn did not end")
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Ends the function where it is, as a runner that is switched off."""
        if not self.done and self._thread.ident is not None:
            self._stopped = True
            self.turn()
        self.done = True

    def pause(self) -> None:
        """Ends the turn; returns in the next one. Called in the function's own thread."""
        self._paused.release()
        self._go.acquire()
        if self._stopped:
            raise StoppedError

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._stopped:
                self._function()
        except StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to who gave the turn
            self.error = error
        self.done = True
        self._paused.release()
