"""A server that tests hold in their hands, for clients of the fork server."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from runner_e2e.sandbox.quick_client import introduction
from runner_e2e.sandbox.request import receive_descriptors, receive_exactly

TOKEN = b"a token"


class Server:
    """A server of the test's own: this process, which shows its token as a server does."""

    def __init__(self, place: Path) -> None:
        name = str(os.getpid())
        self.path = str(place / name)
        self.listening = socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        os.chdir(place)  # the address must be short
        try:
            self.listening.bind(name)
        finally:
            os.chdir(here)
        (place / "token").write_bytes(TOKEN)
        self.stdin = os.dup(0)
        with (place / "token").open() as file:
            os.dup2(file.fileno(), 0)
        self.listening.listen()
        self.listening.settimeout(30)
        self.connections: list[socket.socket] = []

    def accept(self, answer: bytes = b"") -> socket.socket:
        connection, _ = self.listening.accept()
        self.connections.append(connection)
        connection.settimeout(30)
        expected = introduction(os.getpid())
        assert expected.startswith(TOKEN)
        assert receive_exactly(connection, len(expected)) in {expected, None}
        if answer:
            connection.sendall(answer)
        return connection

    def close(self) -> None:
        for one in (self.listening, *self.connections):
            one.close()
        os.dup2(self.stdin, 0)
        os.close(self.stdin)


def take(connection: socket.socket) -> bytes:
    """The request."""
    head, descriptors = receive_descriptors(connection, 8)
    for descriptor in descriptors:
        os.close(descriptor)
    assert len(descriptors) == 5
    return receive_exactly(connection, int.from_bytes(head, "little")) or b""
