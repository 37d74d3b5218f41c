"""Which process made which, from a trace in which a child may act before its parent's call is written."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Process", "ProcessTree"]


@dataclass(kw_only=True, slots=True)
class Process:
    """One process of the traced tree. ``index`` names it for good, since the kernel uses pids again.

    ``words`` is what it runs, shortened and redacted; ``made_by`` the words of its parent when it was made.
    """

    index: int
    pid: int
    parent: int | None = None
    words: str = ""
    made_by: str = ""
    ended: float | None = None
    status: int | None = None
    signal: str = ""


class ProcessTree:
    """All processes seen so far. Threads count as the process that they belong to."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.live: dict[int, Process] = {}
        # Threads other than the first of their process, by their own number.
        self.threads: dict[int, Process] = {}
        # Ended before the call that made them was written.
        self.orphans: dict[int, Process] = {}

    def at(self, pid: int) -> Process:
        """The process that *pid* (or the thread of this number) is now; a new one if it was not seen before."""
        found = self.live.get(pid) or self.threads.get(pid)
        if found is None:
            found = Process(index=len(self.processes), pid=pid)
            self.processes.append(found)
            self.live[pid] = found
        return found

    def add(self, parent_pid: int, child_pid: int, *, thread: bool) -> None:
        """Notes that *parent_pid* made *child_pid*."""
        parent = self.at(parent_pid)
        if thread:
            if child_pid not in self.live:
                self.threads[child_pid] = parent
            return
        self.threads.pop(child_pid, None)
        child = self.live.get(child_pid) or self.orphans.pop(child_pid, None) or self.at(child_pid)
        if child.parent is None and child is not parent:
            child.parent = parent.index
            child.made_by = parent.words
            child.words = child.words or parent.words

    def exec(self, pid: int) -> Process:
        """Notes that *pid* became another program, which ends its other threads."""
        process = self.at(pid)
        if self.threads:
            self.threads = {number: other for number, other in self.threads.items() if other is not process}
        return process

    def keep_first(self) -> None:
        """Forgets every process but the first: what came before the command is not part of it."""
        first = self.processes[0]
        self.processes[:] = [first]
        self.live = {first.pid: first}
        self.threads, self.orphans = {}, {}

    def end(self, pid: int, *, time: float, status: int | None, signal: str) -> Process | None:
        """Notes the end of *pid*; the process that ended, or None for a mere thread."""
        if self.threads.pop(pid, None):
            return None
        process = self.at(pid)
        del self.live[pid]
        process.ended, process.status, process.signal = time, status, signal
        if process.parent is None and process.index:
            self.orphans[pid] = process
        return process
