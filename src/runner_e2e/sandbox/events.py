"""How the processes of a launch and its launcher speak: events through a pipe, one line each, fields by tabs."""

from __future__ import annotations

import os

from runner_e2e.sandbox.record import Record

__all__ = ["Event", "Reporter", "Streams", "parse"]


class Streams(Record):
    """Descriptors handed to a launch: the agent's three streams, the pipe of events, the pipe of signals."""

    stdin: int
    stdout: int
    stderr: int
    events: int
    control: int


class Event(Record):
    """One event.

    ``layer`` (name, state, why) · ``limit`` (text) · ``started`` · ``unavailable`` (layer, why: try another way) ·
    ``failed`` (status, what, why, fix) · ``exit`` (wait status).
    """

    kind: str
    fields: tuple[str, ...] = ()


class Reporter:
    """Writes events. A line is short enough for a pipe to take it whole."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def tell(self, kind: str, *fields: object) -> None:
        """Writes one event; a launcher that is gone hears nothing."""
        line = "\t".join([kind, *(" ".join(str(field).split()) for field in fields)])
        try:
            os.write(self.descriptor, os.fsencode(line)[:4000] + b"\n")
        except BrokenPipeError:
            return

    def layer(self, name: str, state: str, why: str = "") -> None:
        """Says what became of a layer."""
        self.tell("layer", name, state, why)


def parse(line: bytes) -> Event:
    """Reads one line without its end."""
    kind, *fields = os.fsdecode(line).split("\t")
    return Event(kind=kind, fields=tuple(fields))
