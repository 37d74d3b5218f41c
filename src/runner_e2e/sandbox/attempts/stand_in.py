"""Stands in for a harness: a process that holds the canary everywhere a harness could hold a secret.

Started as ``python3 -c … CANARY`` with the canary in its environment too; reads what it needs from standard input as
JSON, writes where it put everything to standard output, and stays until standard input is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import sys
import threading
from typing import Any

from runner_e2e import kernel

__all__ = ["main"]

_ADD_KEY = {"x86_64": 248, "aarch64": 217}
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_KEYCTL_SETPERM, _USER_KEYRING, _EVERY_RIGHT_OF_POSSESSOR_AND_USER = 5, -4, 0x3F3F0000
_IPC_CREATE_FOR_ALL = 0o1666
_TRACE_BY_ANYONE = 0x59616D61  # PR_SET_PTRACER, which a kernel without Yama does not know


def main() -> None:
    """Puts the canary everywhere, says where, and waits."""
    canary = sys.argv[1].encode()
    asked = sys.stdin.readline()
    if not asked:
        return  # the probe was interrupted
    wishes = json.loads(asked)
    with contextlib.suppress(OSError):
        kernel.library_call("prctl", _TRACE_BY_ANYONE, -1, 0, 0, 0)
    os.umask(0)
    held = bytearray(canary.ljust(64, b"\0"))
    os.chdir(wishes["hidden"])
    places = {
        "harness": os.getpid(),
        "harness_descriptor": os.open(wishes["secret"], os.O_RDONLY),
        "harness_address": kernel.address_of(held),
        "abstract_socket": _serve("\0" + wishes["abstract_socket"], canary),
        "hidden_socket": _serve(wishes["hidden_socket"], canary),
        "tcp_port": _serve_tcp("127.0.0.1", canary),
        "tcp6_port": _serve_tcp("::1", canary) if socket.has_ipv6 else 0,
        "udp_port": _serve_udp(canary),
        "memory_segment": _memory_segment(canary),
        "memory_file": _memory_file(wishes["name"], canary),
        "message_queue": _message_queue(wishes["name"], canary),
        "key": _key(wishes["name"], canary),
        "handle": _handle(wishes["secret"]),
    }
    sys.stdout.write(json.dumps(places) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    _clean(places)


def _serve(address: str, answer: bytes) -> str:
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    _accept(server, answer)
    return address.lstrip("\0")


def _serve_tcp(address: str, answer: bytes) -> int:
    """The port of a service at *address*; 0 where there is no such address."""
    server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        server.bind((address, 0))
    except OSError:
        server.close()
        return 0
    _accept(server, answer)
    return int(server.getsockname()[1])


def _accept(server: socket.socket, answer: bytes) -> None:
    server.listen()

    def accept() -> None:
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer)

    threading.Thread(target=accept, daemon=True).start()


def _serve_udp(answer: bytes) -> int:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def reply() -> None:
        while True:
            _, client = server.recvfrom(100)
            server.sendto(answer, client)

    threading.Thread(target=reply, daemon=True).start()
    return int(server.getsockname()[1])


def _memory_segment(content: bytes) -> int:
    number = kernel.library_call("shmget", 0, 4096, _IPC_CREATE_FOR_ALL)
    kernel.overwrite(kernel.library_call("shmat", number, 0, 0, wide=True), content)
    return number


def _memory_file(name: str, content: bytes) -> str:
    path = f"/dev/shm/{name}"  # noqa: S108 - POSIX shared memory lives there
    with open(path, "xb") as file:
        file.write(content)
    return path


def _message_queue(name: str, content: bytes) -> str:
    try:
        queue = kernel.library_call("mq_open", f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    except OSError:
        return ""
    kernel.library_call("mq_send", queue, content, len(content), 0)
    return f"/{name}"


def _key(name: str, content: bytes) -> int:
    machine = os.uname().machine
    if machine not in _ADD_KEY:
        return 0
    arguments = (b"user", name.encode(), content, len(content), _USER_KEYRING)
    try:
        number = kernel.system_call(_ADD_KEY[machine], *arguments)
        kernel.system_call(_KEYCTL[machine], _KEYCTL_SETPERM, number, _EVERY_RIGHT_OF_POSSESSOR_AND_USER)
    except OSError:
        return 0
    return number


def _handle(path: str) -> str:
    handle = bytearray(struct.pack("<Ii", 128, 0) + bytes(128))
    try:
        kernel.library_call("name_to_handle_at", -100, os.fsencode(path), handle, bytearray(4), 0)
    except OSError:
        return ""
    return handle.hex()


def _clean(places: dict[str, Any]) -> None:
    """Takes away what would outlast this process."""
    os.unlink(places["memory_file"])
    kernel.library_call("shmctl", places["memory_segment"], 0, None)
    if places["message_queue"]:
        kernel.library_call("mq_unlink", places["message_queue"].encode())
    if places["key"]:
        keyctl_invalidate = 21
        kernel.system_call(_KEYCTL[os.uname().machine], keyctl_invalidate, places["key"])
