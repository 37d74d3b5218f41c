"""A server that tests hold in their hands, for clients of the fork server."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from runner_e2e.sandbox import quick_client
from runner_e2e.sandbox.request import receive_descriptors, receive_exactly

TOKEN = b"t" * quick_client.TOKEN_BYTES


class Server:
    """A server of the test's own."""

    def __init__(self, place: Path) -> None:
        self.path = str(place / "socket")
        self.listening = socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        os.chdir(place)  # the address must be short
        try:
            self.listening.bind("socket")
        finally:
            os.chdir(here)
        (place / quick_client.TOKEN).write_bytes(TOKEN)
        self.listening.listen()
        self.listening.settimeout(30)
        self.connections: list[socket.socket] = []

    def accept(self, answer: bytes = b"") -> socket.socket:
        connection, _ = self.listening.accept()
        self.connections.append(connection)
        connection.settimeout(30)
        assert connection.recv(len(TOKEN)) in {TOKEN, b""}
        if answer:
            connection.sendall(answer)
        return connection

    def close(self) -> None:
        for one in (self.listening, *self.connections):
            one.close()


def take(connection: socket.socket) -> bytes:
    """The request."""
    head, descriptors = receive_descriptors(connection, 8)
    for descriptor in descriptors:
        os.close(descriptor)
    assert len(descriptors) == 4
    return receive_exactly(connection, int.from_bytes(head, "little")) or b""
