"""Launches for a harness: quick, from any thread, several at once, through one small prepared process."""

from __future__ import annotations

import logging
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, Self

from runner_e2e import kernel
from runner_e2e.artifacts.listing import prepare_listed
from runner_e2e.errors import LaunchError
from runner_e2e.sandbox import request, service
from runner_e2e.sandbox.events import Streams, parse
from runner_e2e.sandbox.planning import modes_of, read_host
from runner_e2e.sandbox.policy import LISTING_VARIABLE
from runner_e2e.sandbox.prepared import prepare
from runner_e2e.sandbox.progress import Progress, Ways
from runner_e2e.sandbox.proxy import Proxy
from runner_e2e.sandbox.streams import refuse_reopening

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from runner_e2e.sandbox.policy import Policy
    from runner_e2e.sandbox.prepared import Prepared
    from runner_e2e.sandbox.proxy import Door
    from runner_e2e.sandbox.report import Outcome, Report

__all__ = ["Launch", "Launcher", "through_sudo"]

_LOG: Final = logging.getLogger(__name__)
_SIGTERM: Final = 15
_SIGKILL: Final = 9
_BLOCK: Final = 1 << 16


class Launch:
    """A command that runs in the sandbox. Closing it ends the command and everything it started."""

    def __init__(self, progress: Progress, events: int, control: int, door: Door | None = None) -> None:
        self._progress = progress
        self._door = door
        self._events = events
        self._control = control
        self._rest = b""

    @property
    def report(self) -> Report:
        """What protects it."""
        return self._progress.report()

    def wait(self, timeout: float | None = None) -> Outcome:
        """Waits for the end; raises :class:`TimeoutError` after *timeout* seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._events >= 0:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._listen(left):
                raise TimeoutError(f"the command still runs after {timeout} seconds")
        return self._progress.outcome()

    def send_signal(self, signal: int, *, group: bool = False) -> None:
        """Sends *signal* to the command, or to its whole process group; nothing once it has ended."""
        if self._control >= 0:
            try:
                os.write(self._control, bytes([signal, int(group)]))
            except BrokenPipeError:
                return

    def terminate(self, grace: float = 5.0) -> Outcome:
        """Asks the command to end, and kills it after *grace* seconds."""
        self.send_signal(_SIGTERM)
        try:
            return self.wait(grace)
        except TimeoutError:
            self.send_signal(_SIGKILL)
            return self.wait()

    def close(self) -> None:
        """Ends the command and everything it started, if it still runs."""
        if self._control >= 0:
            os.close(self._control)
            self._control = -1
        while self._events >= 0:
            self._listen(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _listen(self, timeout: float | None) -> bool:
        """Takes what there is to hear; False when nothing came in *timeout* seconds."""
        ready, _, _ = select.select([self._events], [], [], timeout)
        if not ready:
            return False
        block = os.read(self._events, _BLOCK)
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            self._progress.hear(parse(line))
        if not block or self._progress.status is not None:  # everything it started has ended, too
            os.close(self._events)
            self._events = -1
            if self._door:
                self._progress.asked = self._door.end()
            if self._control >= 0:
                os.close(self._control)
                self._control = -1
        return True

    def _until_started(self) -> None:
        while self._events >= 0 and not self._progress.started:
            self._listen(None)


class Launcher:
    """Starts commands in the sandbox from a process with threads, memory and other children of its own.

    One small process is started at once and forks every launch. It ends with this object (or this process). Between
    launches it keeps the processes of the next one ready, unless *keep_standby* is false.
    """

    def __init__(self, *, python: str = sys.executable, keep_standby: bool = True) -> None:
        self._keep_standby = keep_standby
        self._host = read_host()
        self._services: dict[bool, _Service] = {}
        self._python = python
        self._lock = threading.Lock()
        self._proxies: dict[tuple[str, ...], Proxy] = {}
        self._service(sudo=False)

    def prepare(
        self,
        policy: Policy,
        *,
        directory: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Prepared:
        """Looks at the paths of *policy* once, for many launches; raises :class:`LaunchError` to refuse it."""
        return prepare(policy, host=self._host, directory=directory, environment=environment)

    def start(self, prepared: Prepared, argv: Sequence[str], *, stdin: int, stdout: int, stderr: int) -> Launch:
        """Starts *argv*; returns once it runs. The three descriptors stay the caller's, who may close them then.

        A program that the listing of artifacts of the prepared environment names is started by its content. Raises
        :class:`LaunchError` (125), :class:`CommandNotExecutableError` (126) or :class:`CommandNotFoundError` (127).
        """
        listed = None
        if prepared.environment.get(LISTING_VARIABLE):
            listed = prepare_listed(argv[0], prepared.environment, prepared.found.directory, log=_LOG.warning)
        with listed or nullcontext():
            streams = Streams(
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                events=-1,
                control=-1,
                program=listed.descriptor if listed else -1,
            )
            return self._start(prepared, argv, streams)

    def _start(self, prepared: Prepared, argv: Sequence[str], streams: Streams) -> Launch:
        ways = Ways(prepared.policy, modes_of(prepared.host))
        while True:
            without = ways.reasons()
            plan, packed = prepared.plan(ways.mode, without)
            plan = plan.replace(argv=tuple(argv))
            refuse_reopening((streams.stdin, streams.stdout, streams.stderr), plan.steps)
            progress = Progress(plan, prepared.found, created=prepared.created, without=without)
            try:
                launch = self._attempt(progress, packed, streams)
            except _SudoRefusedError as error:
                ways.refuse("mounts", str(error))
                continue
            if progress.refused is None:
                return launch
            ways.refuse(*progress.refused)

    def close(self) -> None:
        """Ends the prepared process, and with it every launch that still runs."""
        for one in self._services.values():
            one.close()
        self._services.clear()
        for proxy in self._proxies.values():
            proxy.close()
        self._proxies.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _service(self, *, sudo: bool) -> _Service:
        with self._lock:
            if sudo not in self._services:
                self._services[sudo] = _Service(self._python, sudo=sudo, keep_standby=self._keep_standby)
            return self._services[sudo]

    def _open_door(self, hosts: tuple[str, ...]) -> Door:
        """A way to the proxy for *hosts*, which is started for the first launch that asks for it."""
        with self._lock:
            if hosts in self._proxies and self._proxies[hosts].process.poll() is not None:
                self._proxies.pop(hosts).close()  # killed from outside, or for want of memory: the next launch lives
            if hosts not in self._proxies:
                self._proxies[hosts] = Proxy(hosts)
            return self._proxies[hosts].open_door()

    def _attempt(self, progress: Progress, packed: request.Packed, streams: Streams) -> Launch:
        """One try. Where the host refused it, *progress* knows that, and what is returned has ended."""
        one = self._service(sudo=progress.plan.mode == "sudo")
        door = self._open_door(progress.plan.hosts) if progress.plan.doors else None
        events_read, events_write = os.pipe2(os.O_CLOEXEC)
        control_read, control_write = os.pipe2(os.O_CLOEXEC)
        launch = Launch(progress, events_read, control_write, door)
        inner = streams.replace(events=events_write, control=control_read, proxy=door.descriptor if door else -1)
        try:
            one.send(progress, packed, inner)
        finally:
            os.close(events_write)
            os.close(control_read)
        launch._until_started()  # noqa: SLF001 - the two classes of this file are one
        if not progress.started:
            launch.close()
            if progress.refused is None:
                status = progress.outcome().status
                why = f"something ended its process with signal {status - 128}" if status > 128 else f"status {status}"
                raise LaunchError("the command was ended before it started", why=why, fix="start it again")
        return launch


class _SudoRefusedError(Exception):
    """There is no sudo that asks for no password."""


class _Service:
    """The other end of :func:`service.serve`."""

    def __init__(self, python: str, *, sudo: bool, keep_standby: bool) -> None:
        self.lock = threading.Lock()
        words = [*(_sudo() if sudo else ()), *service.command(python, keep_standby=keep_standby)]
        environment: dict[str, str] | None = None if sudo else {}
        nothing = subprocess.DEVNULL
        self.socket, theirs = socket.socketpair()
        with theirs:
            try:
                self.process = subprocess.Popen(
                    words, stdin=theirs.fileno(), stdout=nothing, stderr=nothing, cwd="/", env=environment
                )
            except OSError as error:
                self.socket.close()
                if sudo:
                    raise _SudoRefusedError(f"sudo cannot be started: {error.strerror}") from error
                raise LaunchError(
                    "the process that starts launches could not be started",
                    why=error.strerror or str(error),
                    fix="end other processes",
                ) from error
        if self.socket.recv(len(service.HELLO), socket.MSG_WAITALL) != service.HELLO:
            self.close()
            if sudo:
                raise _SudoRefusedError("sudo asks for a password or is not allowed")
            raise LaunchError(
                "the process that starts launches ended at once",
                why=f"{python} could not run it (status {self.process.returncode})",
                fix="check that this Python starts with -I -S",
            )

    def send(self, progress: Progress, packed: request.Packed, streams: Streams) -> None:
        """Sends one request."""
        try:
            with self.lock:
                start = request.Start(argv=progress.plan.argv, streams=streams)
                request.send(self.socket, request.Request(packed=packed, start=start))
        except OSError as error:
            raise LaunchError(
                "the process that starts launches is gone", why=str(error), fix="make a new Launcher"
            ) from error

    def close(self) -> None:
        """Ends it and waits for its end."""
        self.socket.close()
        self.process.wait()


def _sudo() -> list[str]:
    path = shutil.which("sudo")
    if path is None:
        raise _SudoRefusedError("there is no sudo")
    return [path, "-n", "--"]


def through_sudo(progress: Progress, streams: Streams, mask: bytes) -> Callable[[], object] | None:
    """Starts a launch of the command line through a service of its own; None when there is no way to root."""
    kernel.unblock_signals(mask)
    try:
        one = _Service(sys.executable, sudo=True, keep_standby=False)
    except _SudoRefusedError as error:
        progress.refused = ("mounts", str(error))
        return None
    finally:
        kernel.block_signals()
    one.send(progress, request.pack(progress.plan), streams)
    return one.close
