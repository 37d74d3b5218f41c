"""A small prepared process that starts launches for a harness.

Forking a harness copies its page tables and, where it has threads, its locks; starting an interpreter for every launch
costs more than the launch. This process does neither: it is started once, holds nothing, and forks itself. Through
``sudo`` it gives a launcher without rights the strongest way.

A request is eight bytes of length with five descriptors (the agent's three streams, the pipe of events, the pipe of
signals), then a plan as JSON. Answers come through the pipe of events.
"""

from __future__ import annotations

import array
import gc
import json
import os
import socket

from runner_e2e import kernel
from runner_e2e.sandbox import init, inside, mounts
from runner_e2e.sandbox.events import Reporter, Streams
from runner_e2e.sandbox.plan import Plan

__all__ = ["HELLO", "command", "request", "serve"]

HELLO = b"sandbox service 1\n"
_SIGCHLD = 17
_LONGEST_REQUEST = 64 << 20


def command(python: str) -> list[str]:
    """The command that starts a service whose socket is its standard input."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    code = "import sys; sys.path.insert(0, sys.argv.pop()); from runner_e2e.sandbox.service import serve; serve()"
    return [python, "-I", "-S", "-c", code, source]


def request(connection: socket.socket, plan: Plan, streams: Streams) -> None:
    """Sends one request."""
    content = json.dumps(plan.to_document()).encode()
    descriptors = array.array("i", [number for number in streams.values().values() if number >= 0])
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
    connection.sendmsg([len(content).to_bytes(8, "little")], rights)
    connection.sendall(content)


def serve() -> None:
    """Serves requests from the socket that is standard input until its other end is closed."""
    connection = socket.socket(fileno=os.dup(0))
    os.set_inheritable(connection.fileno(), False)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    kernel.set_dumpable(dumpable=False)
    # What every launch would do again, in this process once.
    init.hide_arguments()
    inside.drop_bounding_set()
    gc.disable()
    gc.freeze()
    kernel.ignore(_SIGCHLD)
    connection.sendall(HELLO)
    maps: dict[tuple[int, int, int], int] = {}
    while received := _receive(connection):
        plan, streams = received
        _start(plan, streams, maps)
        for descriptor in streams.values().values():
            if descriptor >= 0:
                os.close(descriptor)


def _receive(connection: socket.socket) -> tuple[Plan, Streams] | None:
    """The next request; None once the harness is gone."""
    room = socket.CMSG_LEN(6 * array.array("i").itemsize)
    head, ancillary, _, _ = connection.recvmsg(8, room, socket.MSG_CMSG_CLOEXEC)
    if len(head) < 8:
        return None
    descriptors = array.array("i")
    for _, _, content in ancillary:
        descriptors.frombytes(content)
    length = int.from_bytes(head, "little")
    if length > _LONGEST_REQUEST or len(descriptors) not in {5, 6}:
        return None
    text = bytearray()
    while len(text) < length:
        block = connection.recv(length - len(text))
        if not block:
            return None
        text += block
    names = Streams.__fields__
    return Plan.from_document(json.loads(text)), Streams(**dict(zip(names, descriptors, strict=False)))


def _start(plan: Plan, streams: Streams, known: dict[tuple[int, int, int], int]) -> None:
    """Starts one launch; what goes wrong is told through its pipe of events."""
    report = Reporter(streams.events)
    try:
        maps = _maps(plan, known)
    except OSError as error:
        report.tell("unavailable", "identity", f"files cannot be shown as another user's: {error.strerror}")
        return
    try:
        first = kernel.clone_process(plan.namespaces)
    except OSError as error:
        report.tell("unavailable", "mounts", f"new namespaces are refused: {error.strerror}")
        return
    if first == 0:
        kernel.default_action(_SIGCHLD)
        init.run(plan, streams, maps)


def _maps(plan: Plan, known: dict[tuple[int, int, int], int]) -> dict[tuple[int, int], int]:
    """The namespaces of :func:`mounts.ownership_maps`, each made once for all launches."""
    wanted = mounts.owners(plan)
    missing = [owner for owner in wanted if (*owner, plan.user) not in known]
    for owner, descriptor in mounts.ownership_maps(plan, missing).items():
        known[(*owner, plan.user)] = descriptor
    return {owner: known[(*owner, plan.user)] for owner in wanted}
