"""What an agent reaches in a network namespace of its own: its loopback, and doors on it that lead to the proxy.

A socket keeps the network namespace in which it was made, whoever holds it. So the doors are made inside, and handed to
the proxy outside: nothing inside leads out but what the proxy answers.
"""

from __future__ import annotations

import _socket  # see request.py
import fcntl
import os
import struct

from runner_e2e import kernel
from runner_e2e.sandbox import landlock, request, seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runner_e2e.sandbox.events import Reporter
    from runner_e2e.sandbox.plan import Plan

__all__ = ["DOORS", "enter", "forbid_other_sockets"]

DOORS = b"d"  # the message with which the doors are handed over
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_WAITING = 128  # connections that the kernel keeps for a door until the proxy takes them


def enter(plan: Plan, proxy: int) -> None:
    """Makes ready what *plan* lets the agent reach, in the network namespace of this process, which must be new.

    *proxy* is the connection on which the proxy waits for the doors that lead to it, where there are any.
    """
    if plan.network != "none":
        _raise_loopback()
    if plan.doors:
        made = [_open_door(address, port) for address, port in plan.doors]
        with_proxy = _socket.socket(fileno=proxy)
        request.send_descriptors(with_proxy, DOORS, made)
        with_proxy.close()
        for door in made:
            os.close(door)


def _raise_loopback() -> None:
    """Switches on the one interface of a new network namespace."""
    any_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
    question = struct.pack("16sH22x", b"lo", 0)
    flags = struct.unpack("16sH22x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, question))[1]
    fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | _IFF_UP))
    any_socket.close()


def _open_door(address: str, port: int) -> int:
    family = _socket.AF_INET6 if ":" in address else _socket.AF_INET
    door = _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    door.bind((address, port))
    door.listen(_WAITING)
    return door.detach()


def forbid_other_sockets(plan: Plan, report: Reporter) -> None:
    """Leaves this process, for good, no kinds of sockets that a network namespace does not hold back.

    Without one, none but local sockets. Needs ``forbid_new_privileges``; raises :class:`OSError`.
    """
    separate = bool(plan.namespaces & kernel.CLONE_NEWNET)
    kernel.install_filter(seccomp.socket_program(seccomp.NETWORK_FAMILIES if separate else seccomp.LOCAL_FAMILIES))
    if not separate:
        landlock.restrict_connections(plan.abi)
    report.layer("network", "active", plan.network if separate else f"{plan.network}, by system calls")
