"""Owns the process tree of one attempt: starts the harness and ends everything that came of it.

Runs as a process of its own for each attempt (``python3 -I -S``, standard library only). As the *subreaper* of its
attempt (prctl(2)) it becomes the parent of every descendant that lost its own, double-forked daemons too, so a tree
has ended exactly when this process has no child any more. No control group is needed and nothing escapes by forking.

It reads one JSON line from standard input (:mod:`runner_e2e.engine.processes` writes it), which alone carries the
environment of the harness: the id of a cell never stands in this process's own environment or command line. Later
lines are orders. When standard input ends, the engine is gone, however it went, and the tree is ended.
It writes one JSON line an event to standard output. The harness writes to descriptor 2, which is the engine's pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import time
from typing import Final, NamedTuple, NoReturn, TypedDict

from runner_e2e import kernel

__all__ = ["main"]

# How long what ends with the harness by itself may take for it: nothing is asked before, nor counted as left.
FOLLOWING: Final = 0.5
# How long processes that outlived the harness have between SIGTERM and SIGKILL, at most.
LEFT_GRACE: Final = 1.0
# After this long of SIGKILL, what still lives (another user's, or stuck in the kernel) is reported as a survivor.
KILL_LIMIT: Final = 10.0
KILL_BURST: Final = 0.05
SETUP_FAILED: Final = 127

IGNORED_SIGNALS: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
# Python itself ignores the last two; the harness must get every disposition as a program expects it.
CHANGED_SIGNALS: Final = (*IGNORED_SIGNALS, signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


class Specification(TypedDict):
    """What is to be run. ``program`` is the file, ``command`` the argument vector; times are seconds."""

    program: str
    command: list[str]
    environment: dict[str, str]
    directory: str
    timeout: float
    grace: float


class Supervisor:
    """The state of one tree: running, then stopping (SIGTERM was sent), then killing, then ended."""

    def __init__(self, *, timeout: float, grace: float) -> None:
        self.harness = 0
        self.status: int | None = None
        self.grace = grace
        self.deadline = time.monotonic() + timeout
        self.timed_out = False
        self.stopping = False
        self.kill_at: float | None = None
        self.followed_at: float | None = None
        self.gave_up_at: float | None = None
        self.left: set[int] = set()
        self.signalled: set[tuple[int, str]] = set()

    def stop(self, grace: float) -> None:
        """Asks the tree to end: SIGTERM now, SIGKILL after *grace* seconds (or earlier, if that was said before)."""
        kill_at = time.monotonic() + grace
        self.kill_at = kill_at if self.kill_at is None else min(kill_at, self.kill_at)
        if not self.stopping:
            self.stopping = True
            if self.status is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.harness, signal.SIGTERM)

    def reap(self) -> bool:
        """Collects every child that ended; False when none is left at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.harness and self.status is None:
                self.status = status
                self.followed_at = time.monotonic() + FOLLOWING
                report(event="exited", status=status, timed_out=self.timed_out)

    def advance(self) -> float | None:
        """Does what the clock asks for; returns seconds until it must be called again, None when it need not be."""
        now = time.monotonic()
        if self.status is None and not self.stopping and now >= self.deadline:
            self.timed_out = True
            report(event="timed_out")
            self.stop(self.grace)
        if self.followed_at is not None:
            at = self.followed_at if self.kill_at is None else min(self.followed_at, self.kill_at)
            if now < at:
                return at - now
            self._end_what_is_left(now)
        if self.kill_at is not None and now >= self.kill_at:
            if self.gave_up_at is None:
                self.gave_up_at = now + KILL_LIMIT
                signal_all(descendants(), signal.SIGKILL)
            self._kill_children()
            return 0.01
        waits = [self.kill_at] if self.kill_at is not None else [] if self.stopping else [self.deadline]
        return max(0.0, min(waits) - now) if waits else None

    def _end_what_is_left(self, now: float) -> None:
        """The harness has ended: its remaining descendants are asked once each, then killed."""
        tree = descendants()
        new = [one for one in tree if one not in self.signalled]
        self.left |= {pid for pid, _ in tree}
        if not self.stopping or self.kill_at is None or self.kill_at > now + LEFT_GRACE:
            self.kill_at = now + min(self.grace, LEFT_GRACE)
        self.stopping = True
        self.signalled.update(new)
        signal_all(new, signal.SIGTERM)

    def _kill_children(self) -> None:
        """Kills the children of this process, again and again for a moment.

        What they leave becomes a child of this process, so the whole tree comes by. A process that keeps forking away
        lives shorter than a look through all of ``/proc`` takes, but longer than this look at the children alone.
        """
        until = time.monotonic() + KILL_BURST
        while time.monotonic() < until:
            found = children()
            if self.status is not None:
                self.left.update(found)
            kill_children(found)
            if not self.reap():
                return

    @property
    def gave_up(self) -> bool:
        """Whether killing has lasted too long."""
        return self.gave_up_at is not None and time.monotonic() >= self.gave_up_at


def main() -> None:
    """Runs one attempt's harness to its end, and its tree to nothing."""
    # A new session keeps the terminal's Ctrl-C with the engine, which decides; SIGTERM means end now.
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    kernel.set_child_subreaper()
    wake = _wake_on(signal.SIGCHLD, signal.SIGTERM)
    try:
        _run(_Orders(), wake)
    except Exception as error:  # noqa: BLE001 - a defect here must reach the engine, and leave no process behind
        for _ in range(100):
            signal_all(descendants(), signal.SIGKILL)
        report(event="defect", what=f"{type(error).__name__}: {error}")


def _run(orders: _Orders, wake: int) -> None:
    specification = orders.first()
    if specification is None:
        return
    supervisor = Supervisor(timeout=specification["timeout"], grace=specification["grace"])
    try:
        supervisor.harness = start(specification)
    except OSError as error:
        report(event="not_started", errno=error.errno, what=error.filename or "")
        return
    report(event="started", pid=supervisor.harness)
    del specification
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)  # only the tree holds the output now, so its end can be seen
    kernel.set_dumpable(dumpable=False)
    _supervise(supervisor, orders, wake)


def _supervise(supervisor: Supervisor, orders: _Orders, wake: int) -> None:
    while supervisor.reap():
        for order in orders.taken():
            supervisor.stop(order["stop"])
        if orders.ended:
            supervisor.stop(0.0)
        if supervisor.gave_up:
            break
        wait = supervisor.advance()
        ready, _, _ = select.select([wake] if orders.ended else [wake, 0], [], [], wait)
        if wake in ready and signal.SIGTERM in os.read(wake, 4096):
            supervisor.stop(0.0)
        if 0 in ready:
            orders.read()
    survivors = [_described(pid) for pid, _ in sorted(descendants())]
    report(event="ended", left=len(supervisor.left), complete=not supervisor.gave_up, survivors=survivors)


class _Orders:
    """Lines of JSON from the engine."""

    def __init__(self) -> None:
        self.ended = False
        self._buffer = b""

    def first(self) -> Specification | None:
        """Waits for the specification; None when the engine ended before it sent one."""
        while b"\n" not in self._buffer:
            chunk = os.read(0, 65536)
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        specification: Specification = json.loads(line)
        return specification

    def read(self) -> None:
        """Reads what the engine has written, without waiting when there is something."""
        chunk = os.read(0, 65536)
        self.ended = not chunk
        self._buffer += chunk

    def taken(self) -> list[dict[str, float]]:
        """The whole orders that were read, each once; some may have come together with the specification."""
        *lines, self._buffer = self._buffer.split(b"\n")
        return [json.loads(line) for line in lines]


def report(**event: object) -> None:
    """Tells the engine; if it is gone there is nobody to tell."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(event).encode() + b"\n")


def _wake_on(*numbers: signal.Signals) -> int:
    """A descriptor that becomes readable when one of the signals comes, and holds its number."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reader


def start(specification: Specification) -> int:
    """Forks and executes the harness; returns its process id. Raises OSError with the reason of the exec.

    The child gets its own session, dies with this process (PR_SET_PDEATHSIG), has default signal dispositions, no
    core dump (it would hold the environment), nothing on standard input, and no other descriptor of ours.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _execute(specification, writer, parent)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        failure = stream.read()
    if failure:
        os.waitpid(pid, 0)
        number, what = json.loads(failure)
        raise OSError(number, os.strerror(number), what)
    return pid


def _execute(specification: Specification, writer: int, parent: int) -> NoReturn:
    """In the child: becomes the harness, or tells why not."""
    what = "the process"
    try:
        signal.set_wakeup_fd(-1)
        for number in CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        kernel.set_parent_death_signal(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(SETUP_FAILED)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        what = specification["directory"]
        os.chdir(what)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        what = specification["program"]
        os.execve(what, specification["command"], specification["environment"])  # noqa: S606
    except OSError as error:
        os.write(writer, json.dumps([error.errno, what]).encode())
    except BaseException:  # noqa: BLE001 - this child must never return into the supervisor's code
        os.write(writer, json.dumps([0, what]).encode())
    os._exit(SETUP_FAILED)


def children() -> list[int]:
    """The children of this process, zombies too, by the kernel's own list where it has one (proc_pid_children(5))."""
    found: list[int] = []
    try:
        for task in os.listdir("/proc/self/task"):  # noqa: PTH208
            with open(f"/proc/self/task/{task}/children", "rb") as stream:  # noqa: PTH123
                found += map(int, stream.read().split())
    except FileNotFoundError:
        own = os.getpid()
        entries = [_entry(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        return [entry.pid for entry in entries if entry and entry.parent == own]
    return found


def kill_children(pids: list[int]) -> None:
    """Kills children of this process. Until it is reaped a child's id is its own, so no descriptor is needed."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def descendants() -> list[tuple[int, str]]:
    """Every living process below this one, parents first: its id and start time, which together name it for good."""
    children: dict[int, list[_Entry]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the start-up time
        if name.isdigit() and (entry := _entry(name)):
            children.setdefault(entry.parent, []).append(entry)
    result = []
    generation = [os.getpid()]
    while generation:
        entries = [entry for pid in generation for entry in children.pop(pid, [])]
        result += [(entry.pid, entry.start) for entry in entries if entry.alive]
        generation = [entry.pid for entry in entries]
    return result


class _Entry(NamedTuple):
    """One process in ``/proc``. A zombie is not alive, unless other threads of it are."""

    pid: int
    parent: int
    start: str
    alive: bool


def _entry(pid: str) -> _Entry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123
            # The name in parentheses may hold anything; fields count from 3 behind it (proc_pid_stat(5)).
            fields = stream.read().rpartition(b")")[2].split()
        state, parent, threads, start = fields[0], int(fields[4 - 3]), int(fields[20 - 3]), fields[22 - 3].decode()
    except (OSError, IndexError, ValueError):
        return None
    return _Entry(pid=int(pid), parent=parent, start=start, alive=state not in {b"Z", b"X"} or threads > 1)


def signal_all(processes: list[tuple[int, str]], number: signal.Signals) -> None:
    """Signals exactly these processes.

    A descriptor is opened first, then the start time compared: an id given to another process meanwhile is not hit.
    """
    for pid, start_time in processes:
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(pid)
            try:
                entry = _entry(str(pid))
                if entry and entry.start == start_time:
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def _described(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            return f"{pid} ({stream.read().strip()})"
    except OSError:
        return str(pid)
