"""Clients as processes: forked from one that is warm, led from boundary to boundary, killed."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.dispatch.campaigns.boundaries import GO, INTERRUPT

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ClientProcess", "Nursery", "fast_directory"]

Exchange = Callable[[str, str, "Mapping[str, str]", str], "dict[str, Any]"]
ROOT = Path(__file__).resolve().parents[3]
LONGEST_SILENCE = 120.0


def fast_directory() -> str | None:
    """Where files cost no disk: what SIGKILL leaves behind is the same there. None: the usual place."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Nursery:
    """Makes client processes. A context manager; one serves any number of schedules, one after the other."""

    def __enter__(self) -> Self:
        """Starts the process that they are forked from."""
        self._directory = tempfile.TemporaryDirectory(prefix="runner-e2e-clients-")
        self._socket = f"{self._directory.name}/socket"
        command = [sys.executable, "-m", "tests.dispatch.campaigns.fork_server", self._socket]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src")))}
        self._server = subprocess.Popen(
            command, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.seconds = 0.0
        """Time of the processor that clients have used."""
        self._ends: dict[int, int] = {}
        self._text = b""
        self._expect_line(LONGEST_SILENCE)
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it; its children have ended before."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(60)
        self._server.stdout.close()
        self._directory.cleanup()

    def start(self, order: Mapping[str, Any], exchange: Exchange) -> ClientProcess:
        """A new client that waits at its first boundary. *exchange* answers its requests that go over no wire."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._socket)
        connection.settimeout(LONGEST_SILENCE)
        connection.sendall(json.dumps(order).encode() + b"\n")
        return ClientProcess(self, connection, exchange)

    def status_of(self, pid: int) -> int:
        """How the process *pid* ended, as ``waitpid`` tells it. Waits until it has."""
        while pid not in self._ends:
            text = self._expect_line(LONGEST_SILENCE)
            number, status, seconds = text.split()
            self._ends[int(number)] = int(status)
            self.seconds += float(seconds)
        return self._ends.pop(pid)

    def _expect_line(self, seconds: float) -> str:
        assert self._server.stdout is not None
        while b"\n" not in self._text:
            ready, _, _ = select.select([self._server.stdout], [], [], seconds)
            read = self._server.stdout.read(4096) if ready else b""
            if not read:
                raise AssertionError(f"the process that forks clients says nothing (status {self._server.poll()})")
            self._text += read
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()


class ClientProcess:
    """One client. It has :attr:`passed` boundaries and waits at the last of them, :attr:`at`; :attr:`end` is what it
    found when it is over."""

    def __init__(self, nursery: Nursery, connection: socket.socket, exchange: Exchange) -> None:
        self._nursery, self._connection, self._text = nursery, connection, b""
        self._exchange = exchange
        self._question: list[Any] | None = None
        self.pid = int.from_bytes(self._read(4), "big")
        self.at = ""
        self.stops = False
        """Whether it waits where it was told to stop."""
        self.passed: list[str] = []
        self.end: dict[str, Any] | None = None
        self._next()

    def go(self) -> None:
        """On to the next boundary where it waits, or to the end."""
        self.release()
        self._next()

    def interrupt(self) -> None:
        """Ctrl-C at this boundary; then on to the next one."""
        self._connection.sendall(INTERRUPT)
        self._next()

    def release(self) -> None:
        """Lets it go on without waiting for where it gets to: for :meth:`kill` at any moment."""
        if self._question is None:
            self._connection.sendall(GO)
            return
        found = json.dumps(self._exchange(*self._question)).encode()
        self._connection.sendall(len(found).to_bytes(4, "big") + found)

    def kill(self) -> int:
        """SIGKILL; returns the status when the kernel has cleaned up."""
        os.kill(self.pid, signal.SIGKILL)
        return self._over()

    def _over(self) -> int:
        status = self._nursery.status_of(self.pid)
        self._connection.close()
        return status

    def _next(self) -> None:
        while b"\n" not in self._text:
            self._text += self._read(1 << 16, whole=False)
        line, _, self._text = self._text.partition(b"\n")
        kind, self.passed, data = json.loads(line)
        self.at = self.passed[-1] if self.passed else self.at
        self._question = data if kind == "http" else None
        self.stops = kind == "stop"
        if kind == "end":
            self.end = data
            self._over()

    def _read(self, size: int, *, whole: bool = True) -> bytes:
        found = b""
        while not found or (whole and len(found) < size):
            read = b""
            with contextlib.suppress(TimeoutError):
                read = self._connection.recv(size - len(found))
            if not read:
                self._connection.close()
                raise AssertionError(f"the client says nothing after {getattr(self, 'at', 'its start')!r}")
            found += read
        return found
