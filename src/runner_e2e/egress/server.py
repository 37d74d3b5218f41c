"""The process of the proxy, outside every sandbox, with as few rights as it needs.

See :mod:`runner_e2e.sandbox.proxy` for the other end.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import socket
import threading
import time
from typing import TYPE_CHECKING, Final

from runner_e2e import kernel
from runner_e2e.egress.carrying import carry
from runner_e2e.egress.destinations import Book, look_up
from runner_e2e.sandbox import landlock, request
from runner_e2e.sandbox.hosts import HostRule, doors, parse_rules
from runner_e2e.sandbox.proxy import HELLO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Serve = Callable[[socket.socket, Sequence[HostRule], Book], None]

__all__ = ["serve"]

_NOBODY: Final = 65534
_MOST_CONNECTIONS: Final = 256  # of one launch at a time
_MEMORY: Final = 1 << 30  # bytes: a plain request waits in memory until it is whole
_STACK: Final = 1 << 19  # bytes of each connection's thread
_BREATH: Final = 0.05  # seconds until it looks again for a descriptor or a thread that has become free


def serve() -> None:
    """Serves launches from the socket that is standard input until its other end is closed."""
    connection = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    length = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "little")
    rules = parse_rules(json.loads(connection.recv(length, socket.MSG_WAITALL)))
    try:
        from runner_e2e.egress import http

        serve_http = http.handler()
        look_up("localhost", 443)  # loads what looking up needs: nobody may not reach it afterwards
        _give_up_rights()
    except Exception as error:  # noqa: BLE001 - whatever it is, the launcher shows it and starts nothing
        connection.sendall(f"{type(error).__name__}: {error}".encode())
        return
    threading.stack_size(_STACK)
    connection.sendall(HELLO)
    while True:
        message, descriptors = request.receive_descriptors(connection, 1)
        if not message:
            os._exit(0)  # with every connection
        for descriptor in descriptors:
            launch = _Launch(socket.socket(fileno=descriptor), rules, serve_http)
            try:
                threading.Thread(target=launch.run, daemon=True).start()
            except (RuntimeError, MemoryError):
                launch.connection.close()  # which refuses that launch; the others go on


def _give_up_rights() -> None:
    """From here on this process writes no file, starts no program, and is nobody where it was root."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection takes six, and launches share them
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    kernel.set_dumpable(dumpable=False)
    kernel.forbid_new_privileges()
    landlock.restrict_to_reading(kernel.landlock_abi())


class _Launch:
    """The doors of one launch, from when they are handed over to its end."""

    def __init__(self, connection: socket.socket, rules: Sequence[HostRule], serve_http: Serve) -> None:
        self.connection = connection
        self.rules = rules
        self.serve_http = serve_http
        self.book = Book()
        self.free = threading.Semaphore(_MOST_CONNECTIONS)
        self.clients: set[socket.socket] = set()
        self.ended = False
        self.lock = threading.Lock()

    def run(self) -> None:
        """Answers at the doors until the launcher ends the launch, then tells what was asked for."""
        with self.connection, contextlib.suppress(OSError):  # a launcher that is gone hears nothing
            _, descriptors = request.receive_descriptors(self.connection, 1)
            try:
                self._attend([socket.socket(fileno=descriptor) for descriptor in descriptors])
            finally:
                self.connection.sendall(json.dumps(self.book.to_document()).encode())

    def _attend(self, listening: Sequence[socket.socket]) -> None:
        waiting = select.poll()
        waiting.register(self.connection, select.POLLIN)
        known = {}
        for door, place in zip(listening, doors(self.rules), strict=False):
            door.setblocking(False)
            waiting.register(door, select.POLLIN)
            known[door.fileno()] = door, place
        try:
            while listening:
                for descriptor, _ in waiting.poll():
                    if descriptor not in known:
                        return
                    self._accept(*known[descriptor], is_proxy=descriptor == listening[0].fileno())
        finally:
            for door in listening:
                door.close()
            self._end_connections()

    def _end_connections(self) -> None:
        """What the agent began ends with it: otherwise an answer that nobody reads would be paid for."""
        with self.lock:
            self.ended = True
            clients = tuple(self.clients)
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _accept(self, door: socket.socket, place: tuple[str, int], *, is_proxy: bool) -> None:
        try:
            client, _ = door.accept()
        except OSError:
            time.sleep(_BREATH)  # it went away meanwhile, or there are too many: then it still knocks
            return
        if not self.free.acquire(blocking=False):
            client.close()
            return
        try:
            threading.Thread(target=self._answer, args=(client, None if is_proxy else place), daemon=True).start()
        except (RuntimeError, MemoryError):
            client.close()
            self.free.release()
            time.sleep(_BREATH)

    def _answer(self, client: socket.socket, service: tuple[str, int] | None) -> None:
        try:
            client.setblocking(True)
            with self.lock:
                if self.ended:
                    return
                self.clients.add(client)
            if service is None:
                self.serve_http(client, self.rules, self.book)
            else:
                _forward(client, service, self.book)
        except (OSError, RuntimeError, MemoryError):
            return
        finally:
            with self.lock:
                self.clients.discard(client)
            client.close()
            self.free.release()


def _forward(client: socket.socket, service: tuple[str, int], book: Book) -> None:
    """Carries bytes between the agent and a service on this machine's loopback until both have ended."""
    host, port = service
    try:
        upstream = socket.create_connection(service)
    except OSError as error:
        book.note(host, port, refused=f"it cannot be reached: {error.strerror}")
        return
    book.note(host, port)
    with upstream:
        carry(client, upstream)
