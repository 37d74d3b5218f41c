"""A launch as it is asked for: a message with a plan, and descriptors that travel beside it.

The message is eight bytes of length, then the plan, the command and the names of the descriptors, marshalled. Only the
launcher that made the receiving process, and that it works for, can send one, and a plan can ask for more than a
crafted message could gain. ``marshal`` needs no import, where that of ``json`` costs as much as all mounts of a launch.
"""

from __future__ import annotations

import _socket  # `socket` makes its constants enumerations: as dear as a launch's other imports together
import errno
import marshal
import os
import struct

from runner_e2e import kernel
from runner_e2e.sandbox.events import Streams
from runner_e2e.sandbox.mounts import owners
from runner_e2e.sandbox.plan import Plan
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = [
    "Kind",
    "Packed",
    "Request",
    "Start",
    "pack",
    "pair",
    "receive",
    "receive_descriptors",
    "receive_exactly",
    "receive_start",
    "send",
    "send_descriptors",
    "send_start",
]

NO_MAPS: Mapping[tuple[int, int], int] = {}

_OLDEST_FORMAT = 2  # of marshal: the launcher's Python may be older or newer than that of its service
_LONGEST = 64 << 20
_MOST_DESCRIPTORS = 250  # the kernel takes 253 in one message


class Kind(Record):
    """What two launches must share to start from the same processes: flags of clone(2), and the launcher's ids."""

    namespaces: int
    user: int
    group: int


class Packed(Record):
    """A plan as it travels, packed once for many launches: marshalled, with what must be known of it on the way.

    ``agent`` are the agent's user and group, ``owners`` those of what it gets as its own on disk.
    """

    plan: bytes
    kind: Kind
    agent: tuple[int, int]
    owners: tuple[tuple[int, int], ...]


class Start(Record):
    """What only the launch itself brings: the command and the descriptors."""

    argv: tuple[str, ...]
    streams: Streams

    def descriptors(self) -> dict[str, int]:
        """Those that are there, by their names."""
        return {name: number for name, number in self.streams.values().items() if number >= 0}


class Request(Record):
    """A plan, the user namespaces that show files of an owner as the agent's, and the start.

    Without the last it asks to prepare the launch: the start follows by itself, or never.
    """

    packed: Packed
    start: Start | None = None
    maps: Mapping[tuple[int, int], int] = NO_MAPS

    def plan(self) -> Plan:
        """The plan with the command."""
        document = marshal.loads(self.packed.plan)  # noqa: S302 - from our own launcher, see above
        return Plan.from_document({**document, "argv": self.start.argv if self.start else ()})

    def close(self) -> None:
        """Closes every descriptor."""
        streams = self.start.descriptors() if self.start else {}
        for descriptor in (*streams.values(), *self.maps.values()):
            os.close(descriptor)


def pack(plan: Plan) -> Packed:
    """Packs *plan*; its command is left out."""
    return Packed(
        plan=marshal.dumps(plan.replace(argv=()).to_document(), _OLDEST_FORMAT),
        kind=Kind(namespaces=plan.namespaces & ~kernel.CLONE_NEWNS, user=plan.launcher_user, group=plan.launcher_group),
        agent=(plan.user, plan.group),
        owners=owners(plan),
    )


def pair() -> tuple[_socket.socket, _socket.socket]:
    """Two ends of a new connection, both closed by an exec."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)


def send(connection: _socket.socket, request: Request) -> None:
    """Sends *request*; its descriptors stay the sender's."""
    packed, start = request.packed, request.start
    kind = tuple(packed.kind.values().values())
    streams = start.descriptors() if start else {}
    command = (start.argv, tuple(streams)) if start else None
    fields = (packed.plan, kind, packed.agent, packed.owners, command, tuple(request.maps))
    _send(connection, fields, (*streams.values(), *request.maps.values()))


def send_start(connection: _socket.socket, start: Start) -> None:
    """Sends *start* after a request without one; its descriptors stay the sender's."""
    streams = start.descriptors()
    _send(connection, (start.argv, tuple(streams)), tuple(streams.values()))


def _send(connection: _socket.socket, fields: tuple[Any, ...], descriptors: Sequence[int]) -> None:
    content = marshal.dumps(fields, _OLDEST_FORMAT)
    send_descriptors(connection, len(content).to_bytes(8, "little"), descriptors)
    connection.sendall(content)


def receive(connection: _socket.socket) -> Request | None:
    """The next request; None once the sender is gone.

    Raises :class:`OSError` where this process had no room for its descriptors; the one after can be received then.
    """
    received = _receive(connection)
    if received is None:
        return None
    (plan, kind, agent, owners, command, maps), descriptors = received
    _expect(descriptors, len(maps) + (len(command[1]) if command else 0))
    start = _start(command, descriptors) if command else None
    return Request(
        packed=Packed(
            plan=plan, kind=Kind(**dict(zip(Kind.__fields__, kind, strict=True))), agent=agent, owners=owners
        ),
        start=start,
        maps=dict(zip(maps, descriptors[len(command[1]) if command else 0 :], strict=True)),
    )


def receive_start(connection: _socket.socket) -> Start | None:
    """What starts a launch that was prepared; None once the sender is gone. Raises as :func:`receive`."""
    received = _receive(connection)
    if received is None:
        return None
    command, descriptors = received
    _expect(descriptors, len(command[1]))
    return _start(command, descriptors)


def _expect(descriptors: Sequence[int], count: int) -> None:
    """The kernel leaves out those for which there is no room."""
    if len(descriptors) < count:
        for descriptor in descriptors:
            os.close(descriptor)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _start(command: tuple[Any, ...], descriptors: Sequence[int]) -> Start:
    argv, names = command
    return Start(argv=argv, streams=Streams(**dict(zip(names, descriptors, strict=False))))


def _receive(connection: _socket.socket) -> tuple[tuple[Any, ...], tuple[int, ...]] | None:
    head, descriptors = receive_descriptors(connection, 8)
    content = receive_exactly(connection, int.from_bytes(head, "little")) if len(head) == 8 else None
    if content is None:
        return None
    return marshal.loads(content), descriptors  # noqa: S302 - see above


def receive_exactly(connection: _socket.socket, length: int) -> bytes | None:
    """The next *length* bytes; None once the sender is gone, or where they are more than a request can have."""
    if length > _LONGEST:
        return None
    blocks = []
    while length:
        block = connection.recv(length)
        if not block:
            return None
        blocks.append(block)
        length -= len(block)
    return b"".join(blocks)


def send_descriptors(connection: _socket.socket, message: bytes, descriptors: Sequence[int]) -> None:
    """Sends a short *message* with *descriptors*."""
    packed = struct.pack(f"{len(descriptors)}i", *descriptors)
    connection.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])


def receive_descriptors(connection: _socket.socket, length: int) -> tuple[bytes, tuple[int, ...]]:
    """At most *length* bytes, none once the sender is gone, and the descriptors that came with the first of them."""
    room = _socket.CMSG_LEN(_MOST_DESCRIPTORS * struct.calcsize("i"))
    message, ancillary, _, _ = connection.recvmsg(length, room, _socket.MSG_CMSG_CLOEXEC)
    found: list[int] = []
    for _, _, content in ancillary:
        found += struct.unpack(f"{len(content) // struct.calcsize('i')}i", content)
    return message, tuple(found)
