"""How the processes of a launch and its launcher speak: events through a pipe, one line each, fields by tabs."""

from __future__ import annotations

import os

from runner_e2e.sandbox.record import Record

__all__ = ["Event", "Reporter", "Streams", "parse"]


class Streams(Record):
    """Descriptors handed to a launch: the agent's three streams, the pipe of events, the pipe of signals.

    ``program`` is the open file to execute, or -1 to look for the program by its name. ``terminal`` is the launcher's
    terminal where the agent gets one of its own. ``proxy`` is the connection on which the proxy waits for the sockets
    that lead to it.
    """

    stdin: int
    stdout: int
    stderr: int
    events: int
    control: int
    program: int = -1
    terminal: int = -1
    proxy: int = -1


class Event(Record):
    """One event.

    ``layer`` (name, state, why) · ``limit`` (text) · ``started`` · ``unavailable`` (layer, why: try another way) ·
    ``failed`` (status, what, why, fix) · ``exit`` (wait status).
    """

    kind: str
    fields: tuple[str, ...] = ()


class Reporter:
    """Writes events. What is only noted goes out with the next one that is told: each write wakes the launcher."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.noted = b""

    def note(self, kind: str, *fields: object) -> None:
        """Keeps one event for later."""
        line = "\t".join([kind, *(" ".join(str(field).split()) for field in fields)])
        self.noted += os.fsencode(line)[:4000] + b"\n"

    def tell(self, kind: str, *fields: object) -> None:
        """Writes one event and those noted before."""
        self.note(kind, *fields)
        self.flush()

    def flush(self) -> None:
        """Writes what is noted; a launcher that is gone hears nothing."""
        noted, self.noted = self.noted, b""
        try:
            while noted:
                noted = noted[os.write(self.descriptor, noted) :]
        except BrokenPipeError:
            return

    def layer(self, name: str, state: str, why: str = "") -> None:
        """Notes what became of a layer."""
        self.note("layer", name, state, why)


def parse(line: bytes) -> Event:
    """Reads one line without its end."""
    kind, *fields = os.fsdecode(line).split("\t")
    return Event(kind=kind, fields=tuple(fields))
