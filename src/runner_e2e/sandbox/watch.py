"""Watches what all processes of a launch use together, and ends them when they pass a limit.

The first process of a launch looks ten times a second, from outside of what the agent can touch. That works on every
host, where control groups need one that lets them be made.
"""

from __future__ import annotations

import os
import time

from runner_e2e.sandbox.limits import Crossing, show
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["Usage", "Watch", "usage"]

_INTERVAL = 0.1
_GRACE = 2.0
_UNLIMITED = 1 << 62
_SIGTERM = 15
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(Record):
    """What one process uses, from its ``/proc`` files: seconds of processor time, bytes of memory, threads."""

    name: str
    seconds: float
    memory: int
    threads: int


class Watch:
    """Looks at the processes of a launch and ends them when together they pass a limit.

    *processes* lists their ids, *kill* ends them all at once, *ask* sends a signal to the agent's own group.
    """

    def __init__(
        self,
        limits: Mapping[str, int],
        *,
        processes: Callable[[], Iterable[int]],
        kill: Callable[[], None],
        ask: Callable[[int], None],
    ) -> None:
        self._limits = limits
        self._processes = processes
        self._kill = kill
        self._ask = ask
        self._start = time.monotonic()
        self._looks = bool({"memory", "cpu", "processes"} & limits.keys())
        self._kill_at: float | None = None
        self.crossing: Crossing | None = None

    @property
    def pause(self) -> int | None:
        """Milliseconds until the next look; None when there is nothing to look at."""
        if self._kill_at is not None:
            return self._until(self._kill_at)
        if self._looks:
            return int(_INTERVAL * 1000)
        return self._until(self._start + self._limits["time"]) if "time" in self._limits else None

    def _until(self, moment: float) -> int:
        return max(0, min(int((moment - time.monotonic()) * 1000) + 1, 1 << 30))

    def look(self) -> None:
        """Looks once; acts on the first limit that is passed, and only on that one."""
        now = time.monotonic()
        if self._kill_at is not None:
            if now >= self._kill_at:
                self._kill()
                self._kill_at = now + _GRACE
            return
        if "time" in self._limits and now - self._start >= self._limits["time"]:
            self.crossing = Crossing(limit="time", seen=f"it ran {show('time', round(now - self._start, 1))}")
            self._ask(_SIGTERM)
            self._kill_at = now + _GRACE
        elif self._looks and (crossing := self._crossed()):
            self.crossing = crossing
            self._kill()
            self._kill_at = now + _GRACE

    def _crossed(self) -> Crossing | None:
        found = {process: use for process in self._processes() if (use := usage(process)) is not None}
        limits = self._limits
        count = sum(use.threads for use in found.values())
        if count > limits.get("processes", count):
            return Crossing(limit="processes", seen=f"there were {count}")
        seconds = sum(use.seconds for use in found.values()) + _own_children()
        if seconds > limits.get("cpu", seconds):
            return Crossing(limit="cpu", seen=f"all used {show('cpu', round(seconds, 2))}")
        if sum(use.memory for use in found.values()) <= limits.get("memory", _UNLIMITED):
            return None
        # Pages that processes share were counted for each of them: ask again, dearly and exactly.
        exact = {process: _proportional(process, use.memory) for process, use in found.items()}
        if (total := sum(exact.values())) <= limits["memory"]:
            return None
        largest = max(exact, key=lambda process: exact[process])
        return Crossing(
            limit="memory",
            seen=f"all used {show('memory', total)}, the largest ({found[largest].name}) "
            f"{show('memory', exact[largest])}",
        )


def usage(process: int) -> Usage | None:
    """What *process* uses; None once it is gone.

    Its processor time includes that of its ended children, which moves up when their end is collected.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            head, _, rest = file.read().rpartition(b")")
        with open(f"/proc/{process}/status", "rb") as file:
            status = file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = rest.split()
    kilobytes = 0
    for line in status.splitlines():
        if line.startswith((b"RssAnon:", b"RssShmem:", b"VmSwap:")):
            kilobytes += int(line.split()[1])
    return Usage(
        name=" ".join(head.partition(b"(")[2].decode("utf-8", "replace").split()),
        seconds=sum(map(int, fields[11:15])) / _TICKS,
        memory=kilobytes << 10,
        threads=int(fields[17]),
    )


def _proportional(process: int, otherwise: int) -> int:
    """Bytes of memory and swap that *process* uses, shared pages divided among those that share them."""
    try:
        with open(f"/proc/{process}/smaps_rollup", "rb") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return 0
    except OSError:
        return otherwise
    return sum(
        int(line.split()[1]) << 10 for line in lines if line.startswith((b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    )


def _own_children() -> float:
    """Seconds of processor time of the children of this process that have ended."""
    times = os.times()
    return times.children_user + times.children_system
