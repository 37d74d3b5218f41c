"""A launch as it is asked for: a message with a plan, and descriptors that travel beside it.

The message is eight bytes of length, then the plan and the names of the descriptors, marshalled. Who may send one is
the launcher that the receiving process was made by and works for, and a plan can ask for more than a crafted message
could gain; ``marshal`` needs no import, where ``json`` costs a launch as much as its mounts.
"""

from __future__ import annotations

import _socket  # `socket` makes its constants enumerations: as dear as a launch's other imports together
import marshal
import os
import struct

from runner_e2e.sandbox.events import Streams
from runner_e2e.sandbox.plan import Plan
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Request", "pair", "receive", "receive_descriptors", "send", "send_descriptors"]

_OLDEST_FORMAT = 2  # of marshal: the launcher's Python may be older or newer than that of its service
_LONGEST = 64 << 20
_MOST_DESCRIPTORS = 250  # the kernel takes 253 in one message


class Request(Record):
    """A plan, the descriptors of its launch, and the user namespaces that show files of an owner as the agent's."""

    plan: Plan
    streams: Streams
    maps: Mapping[tuple[int, int], int]

    def close(self) -> None:
        """Closes every descriptor."""
        for descriptor in (*self.streams.values().values(), *self.maps.values()):
            if descriptor >= 0:
                os.close(descriptor)


def pair() -> tuple[_socket.socket, _socket.socket]:
    """Two ends of a new connection, both closed by an exec."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)


def send(connection: _socket.socket, request: Request) -> None:
    """Sends *request*; its descriptors stay the sender's."""
    streams = {name: number for name, number in request.streams.values().items() if number >= 0}
    content = marshal.dumps((request.plan.to_document(), tuple(streams), tuple(request.maps)), _OLDEST_FORMAT)
    descriptors = (*streams.values(), *request.maps.values())
    send_descriptors(connection, len(content).to_bytes(8, "little"), descriptors)
    connection.sendall(content)


def receive(connection: _socket.socket) -> Request | None:
    """The next request; None once the sender is gone."""
    head, descriptors = receive_descriptors(connection, 8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or length > _LONGEST:
        return None
    blocks = []
    while length:
        block = connection.recv(length)
        if not block:
            return None
        blocks.append(block)
        length -= len(block)
    document, streams, owners = marshal.loads(b"".join(blocks))  # noqa: S302 - from our own launcher, see above
    return Request(
        plan=Plan.from_document(document),
        streams=Streams(**dict(zip(streams, descriptors, strict=False))),
        maps=dict(zip(owners, descriptors[len(streams) :], strict=True)),
    )


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
