"""Runs a command under strace and hands out the lines that strace writes, without a file in between.

The tracer's own command line and environment hold nothing of the command: what to run goes through a socket to
:mod:`runner_e2e.sandbox.traced_start`, which is the first program under the tracer.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from runner_e2e.errors import LaunchError
from runner_e2e.sandbox import traced_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

__all__ = ["Request", "Tracer", "find_strace"]

CALLS = "trace=execve,?execveat,?fork,?vfork,?clone,?clone3"
# The kernel's limit of one argument or variable (MAX_ARG_STRLEN, 32 pages), so strace never shortens a string.
STRING_LIMIT = 32 * resource.getpagesize()
PIPE_SIZE = 1 << 20
GATHER_SECONDS = 0.002
SOCKET_NUMBER, TRACE_NUMBER = 3, 4
# si_code of a signal that the kernel itself sent: the terminal's ^C reaches the command without our help.
SI_KERNEL = 0x80
FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to run. ``descriptors`` maps the numbers that the command sees to descriptors of this process."""

    program: bytes
    command: Sequence[bytes]
    environ: Mapping[bytes, bytes]
    directory: bytes
    descriptors: Mapping[int, int]
    plant_program: bytes
    plant_command: Sequence[bytes]
    plant_environ: Mapping[bytes, bytes]
    seccomp: bool = True


def find_strace(path: str | None = None) -> str:
    """The path of strace on *path* (``PATH`` of this process unless given). Raises :class:`LaunchError` without one."""
    found = shutil.which("strace", path=path)
    if not found:
        raise LaunchError(
            "strace is not installed",
            why="the exec audit reads every exec from the kernel through it",
            fix="sudo apt-get install strace (Fedora: sudo dnf install strace)",
        )
    return str(Path(found).absolute())


def entries(environ: Mapping[bytes, bytes]) -> list[bytes]:
    return [name + b"=" + value for name, value in environ.items()]


def encoded(request: Request, blocked: set[int]) -> bytes:
    """The request as :mod:`traced_start` reads it, with its length in front."""
    fields = [
        request.directory,
        request.program,
        b" ".join(b"%d" % number for number in request.descriptors),
        b" ".join(b"%d" % number for number in blocked),
        request.plant_program,
    ]
    for values in (request.plant_command, entries(request.plant_environ), request.command, entries(request.environ)):
        fields += [b"%d" % len(values), *values]
    content = traced_start.FIELD.join(fields)
    return len(content).to_bytes(8, "big") + content


class Tracer:
    """A command under strace. A context manager: leaving it closes what it opened and ends nothing that still runs."""

    def __init__(self, request: Request, *, strace: str) -> None:
        self.request = request
        self.strace = strace
        self.root = 0
        self.parts: list[bytes] = []
        self.stack = contextlib.ExitStack()
        self.pending: list[int] = []
        self.root_ended = False
        self.reaped = False

    def __enter__(self) -> Self:
        # Nothing stays open when the start fails half-way.
        with contextlib.ExitStack() as stack:
            self.errors = stack.enter_context(tempfile.TemporaryFile())
            blocked = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}
            if threading.current_thread() is threading.main_thread():
                stack.enter_context(self._forward_signals())
            self._start(stack, blocked)
            self.stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stack.close()

    def _start(self, stack: contextlib.ExitStack, blocked: set[int]) -> None:
        ours, theirs = socket.socketpair()
        stack.callback(ours.close)
        trace, writer = os.pipe()
        stack.callback(os.close, trace)
        # Where the user's pipe budget is spent the pipe stays small, which costs time only.
        with contextlib.suppress(OSError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        self.trace = trace
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self.pid = os.posix_spawn(
                self.strace,
                self._arguments(),
                own_environment(),
                file_actions=self._actions(theirs.fileno(), writer, null),
            )
        except OSError as error:
            raise LaunchError(
                f"{self.strace} cannot be started",
                why=error.strerror or str(error),
                fix="install strace, or check its permissions",
            ) from error
        finally:
            theirs.close()
            os.close(writer)
            os.close(null)
        sender = threading.Thread(target=self._send, args=(ours, encoded(self.request, blocked)), daemon=True)
        sender.start()

    def _arguments(self) -> list[str]:
        follow = ["--seccomp-bpf", "-f"] if self.request.seccomp else ["-f"]
        return [
            *("strace", *follow, "-q", "-ttt", "-v", "-y", "-a1", f"-s{STRING_LIMIT}", "--decode-pids=pidns"),
            *("-e", CALLS, "-e", "signal=!chld", "-o", f"/dev/fd/{TRACE_NUMBER}", "--"),
            *(sys.executable, "-I", "-S", traced_start.__file__, str(SOCKET_NUMBER), str(TRACE_NUMBER)),
        ]

    def _actions(self, control: int, writer: int, null: int) -> list[tuple[int, int, int] | tuple[int, int]]:
        """Puts the socket and the pipe at their numbers in strace, and keeps every other descriptor out of it."""
        free = max(control, writer, self.errors.fileno(), TRACE_NUMBER, *inheritable(), *self.request.descriptors) + 1
        moves = [(control, free), (writer, free + 1), (self.errors.fileno(), free + 2), (null, free + 3)]
        actions: list[tuple[int, int, int] | tuple[int, int]] = [(os.POSIX_SPAWN_DUP2, *move) for move in moves]
        actions += [(os.POSIX_SPAWN_CLOSE, number) for number in inheritable() if number > TRACE_NUMBER]
        placed = [(free + 3, 0), (free + 3, 1), (free + 2, 2), (free, SOCKET_NUMBER), (free + 1, TRACE_NUMBER)]
        actions += [(os.POSIX_SPAWN_DUP2, *move) for move in placed]
        return [*actions, *((os.POSIX_SPAWN_CLOSE, number) for number in range(free, free + 4))]

    def _send(self, control: socket.socket, content: bytes) -> None:
        # A tracer that could not start closes the socket; its own message, read elsewhere, says why.
        with contextlib.suppress(OSError):
            socket.send_fds(control, [content[:8]], list(self.request.descriptors.values()))
            control.sendall(content[8:])

    def lines(self, seconds: float) -> list[bytes] | None:
        """Whole lines written within *seconds* (perhaps none), or None after the last one."""
        ready, _, _ = select.select([self.trace], [], [], max(0.0, seconds))
        if not ready:
            return []
        # strace writes line by line: a moment later there are several, and fewer wake-ups for both.
        time.sleep(GATHER_SECONDS)
        chunk = os.read(self.trace, PIPE_SIZE)
        if not chunk:
            return None
        if b"\n" not in chunk:
            self.parts.append(chunk)
            return []
        *found, rest = b"".join([*self.parts, chunk]).split(b"\n")
        self.parts = [rest]
        return found

    def finish(self) -> None:
        """Waits for strace, whose trace has ended."""
        os.waitpid(self.pid, 0)
        self.reaped = True

    def abandon(self, seconds: float = 2.0) -> None:
        """Reaps strace if it ends soon, which it does once all that it traces is killed."""
        end = time.monotonic() + seconds
        while not self.reaped and time.monotonic() < end:
            self.reaped = os.waitpid(self.pid, os.WNOHANG) != (0, 0)
            time.sleep(0.01)

    def said(self) -> str:
        """What strace wrote to its standard error."""
        self.errors.seek(0)
        return self.errors.read(8192).decode("utf-8", "replace").strip()

    def ended_root(self) -> None:
        """From now on signals have nobody to go to."""
        self.root_ended = True

    def started_root(self, pid: int) -> None:
        """Signals go to *pid* from now on, and those that came before."""
        self.root = pid
        for number in self.pending:
            self._forward(number)

    def _forward(self, number: int) -> None:
        if not self.root:
            self.pending.append(number)
        elif not self.root_ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.root, number)

    @contextlib.contextmanager
    def _forward_signals(self) -> Iterator[None]:
        """Passes signals sent to this process on to the command, so that a cancelled job ends it."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        stop = threading.Event()

        def relay() -> None:
            while not stop.is_set():
                received = signal.sigtimedwait(FORWARDED, 0.1)
                if received and stop.is_set():
                    os.kill(os.getpid(), received.si_signo)
                elif received and received.si_code != SI_KERNEL:
                    self._forward(received.si_signo)

        threading.Thread(target=relay, daemon=True).start()
        try:
            yield
        finally:
            stop.set()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def own_environment() -> dict[str, str]:
    """What strace and the first program need; Python of a tool cache finds its library by the last one."""
    kept = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    if library := os.environ.get("LD_LIBRARY_PATH"):
        kept["LD_LIBRARY_PATH"] = library
    return kept


def inheritable() -> list[int]:
    """Descriptors of this process that a child would inherit."""
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.get_inheritable(int(name)):
                found.append(int(name))
    return found
