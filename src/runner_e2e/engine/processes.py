"""Runs one harness under its supervisor and reports how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import DefectError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.engine.cancellation import Cancellation
    from runner_e2e.engine.supervisor import Specification

__all__ = ["Ended", "NotStarted", "run_harness"]

SOURCE: Final = Path(__file__).resolve().parents[2]
SUPERVISOR: Final = (
    f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from runner_e2e.engine.supervisor import main; main()"
)
CHUNK: Final = 65536
# The supervisor needs KILL_LIMIT seconds at most once killing began; later than that, it is lost itself.
SUPERVISOR_LIMIT: Final = 20.0
# A Python from a tool cache may find its library only so.
LOADER_VARIABLES: Final = ("LD_LIBRARY_PATH",)


@dataclass(frozen=True, kw_only=True)
class NotStarted:
    """The kernel refused to execute the harness: error number and the path it refused."""

    errno: int
    path: str


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a harness and its tree ended.

    ``code`` or ``signal`` (``SIGKILL``) is set when the harness itself ended; neither when it never started, or when
    its supervisor was killed (``supervisor_lost``). ``left`` counts processes that outlived the harness;
    ``survivors`` describes those that could not be ended; ``cancelled`` is the signal that stopped the run, if any.
    """

    seconds: float
    not_started: NotStarted | None = None
    code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    cancelled: Signals | None = None
    left: int = 0
    survivors: tuple[str, ...] = ()
    complete: bool = True
    supervisor_lost: bool = False


def run_harness(
    specification: Specification,
    *,
    environ: Mapping[str, str],
    output: Callable[[bytes], None],
    cancellation: Cancellation,
) -> Ended:
    """Runs a harness to its end and its process tree to nothing. *output* takes what it prints, in order.

    Raises :class:`DefectError` when the supervisor itself fails.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(writer, True)
    started = time.monotonic()
    with os.fdopen(reader, "rb", buffering=0) as printed:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", SUPERVISOR],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=writer,
                env={name: environ[name] for name in LOADER_VARIABLES if name in environ},
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(writer)
        with process:
            conversation = _Conversation(process, printed.fileno(), output, cancellation)
            try:
                conversation.begin(specification)
                conversation.follow()
            finally:
                conversation.hang_up()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(SUPERVISOR_LIMIT)
                if process.poll() is None:
                    process.kill()
            conversation.drain()
    return conversation.ended(time.monotonic() - started)


class _Conversation:
    """What the engine and one supervisor say to each other, and what the harness prints meanwhile."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        printed: int,
        output: Callable[[bytes], None],
        cancellation: Cancellation,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._orders = process.stdin
        self._events = process.stdout.fileno()
        self._printed = printed
        self._output = output
        self._cancellation = cancellation
        self._grace: float | None = None
        self._buffer = b""
        self._seen: dict[str, dict[str, object]] = {}

    def begin(self, specification: Specification) -> None:
        self._send(dict(specification))

    def _send(self, message: dict[str, object]) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._orders.write(json.dumps(message).encode() + b"\n")
            self._orders.flush()

    def follow(self) -> None:
        """Until the supervisor says that the tree has ended, or is gone itself."""
        watched = {self._events, self._printed, self._cancellation.fileno()}
        while self._events in watched:
            # Once cancelled, only a second request is still waited for; that needs no descriptor.
            ready, _, _ = select.select(watched, [], [], None if self._grace is None else 0.05)
            if self._printed in ready and not self._relay():
                watched.discard(self._printed)
            if self._events in ready and not self._listen():
                watched.discard(self._events)
            grace = self._cancellation.grace
            if grace is not None and (self._grace is None or grace < self._grace):
                self._grace = grace
                watched.discard(self._cancellation.fileno())
                self._send({"stop": grace})

    def _relay(self) -> bool:
        try:
            chunk = os.read(self._printed, CHUNK)
        except BlockingIOError:
            return True
        if chunk:
            self._output(chunk)
        return bool(chunk)

    def _listen(self) -> bool:
        chunk = os.read(self._events, CHUNK)
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for line in lines:
            event = json.loads(line)
            self._seen[event.pop("event")] = event
        return bool(chunk)

    def drain(self) -> None:
        """Takes what the pipe still holds; whoever else may hold its other end is not waited for."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):
                chunk = os.read(self._printed, CHUNK)
                if not chunk:
                    break
                self._output(chunk)

    def hang_up(self) -> None:
        """The end of its input tells the supervisor to end everything, if it has not yet."""
        with contextlib.suppress(BrokenPipeError):
            self._orders.close()

    def ended(self, seconds: float) -> Ended:
        """Puts the events together."""
        if defect := self._seen.get("defect"):
            raise DefectError(f"the supervisor of a harness failed: {defect['what']}")
        cancelled = self._cancellation.number if self._grace is not None else None
        if refused := self._seen.get("not_started"):
            reason = NotStarted(errno=int(str(refused["errno"])), path=str(refused["what"]))
            return Ended(seconds=seconds, not_started=reason, cancelled=cancelled)
        exited, last = self._seen.get("exited"), self._seen.get("ended")
        status = None if exited is None else os.waitstatus_to_exitcode(int(str(exited["status"])))
        survivors = last["survivors"] if last else []
        assert isinstance(survivors, list)
        return Ended(
            seconds=seconds,
            code=status if status is not None and status >= 0 else None,
            signal=_signal_name(-status) if status is not None and status < 0 else None,
            timed_out="timed_out" in self._seen,
            cancelled=cancelled,
            left=int(str(last["left"])) if last else 0,
            survivors=tuple(map(str, survivors)),
            complete=bool(last["complete"]) if last else False,
            supervisor_lost=last is None,
        )


def _signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:  # a real-time signal between the two that have names
        return f"SIG{number}"
