"""Attempts at the network of the harness: its services, what the kernel tells of connections, sockets past it."""

from __future__ import annotations

import os
import socket
import struct

from runner_e2e import kernel
from runner_e2e.sandbox.attempts.model import AbsentError, Attempt, Targets

__all__ = ["ATTEMPTS"]

_WAIT = 10.0  # seconds for an answer on a busy host; where nobody listens the kernel says so at once
_IO_URING_SETUP = 425
_CLONE_NEWNET = 0x40000000
_ALL_LINK_LAYERS = 0x0300  # ETH_P_ALL, in network order
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _DUMP_REQUEST, _DONE = 4, 20, 0x301, 3
_LISTENING = 1 << 10  # TCP_LISTEN


def tcp_service(targets: Targets) -> str:
    """Talk to a service of the harness on loopback."""
    return _ask_tcp("127.0.0.1", targets.tcp_port)


def tcp_service_by_ipv6(targets: Targets) -> str:
    """Talk to a service of the harness on loopback by IPv6."""
    if not targets.tcp6_port:
        raise AbsentError("this host has no IPv6")
    return _ask_tcp("::1", targets.tcp6_port)


def _ask_tcp(address: str, port: int) -> str:
    with socket.create_connection((address, port), timeout=_WAIT) as client:
        return client.recv(4000).decode(errors="replace")


def udp_service(targets: Targets) -> str:
    """Ask a service of the harness by UDP, as one asks for a name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(_WAIT)
        client.connect(("127.0.0.1", targets.udp_port))  # else nothing tells that nobody listens
        client.send(b"who")
        return client.recv(4000).decode(errors="replace")


def connections(targets: Targets) -> str:
    """Find the harness's service in the kernel's table of connections."""
    return _in_table("/proc/net/tcp", targets)


def connections_of_harness(targets: Targets) -> str:
    """Find the harness's service in the table of connections that its /proc entry shows."""
    return _in_table(f"/proc/{targets.harness}/net/tcp", targets)


def _in_table(path: str, targets: Targets) -> str:
    with open(path) as file:
        table = file.read()
    if f":{targets.tcp_port:04X} " not in table:
        raise PermissionError(1, "it is not in the table")
    return "found"


def diagnostics(targets: Targets) -> str:
    """Find the harness's service by asking the kernel over netlink."""
    query = struct.pack("=BBBBI48s", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _LISTENING, bytes(48))
    header = struct.pack("=IHHII", 16 + len(query), _SOCK_DIAG_BY_FAMILY, _DUMP_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as link:
        link.settimeout(_WAIT)
        link.sendto(header + query, (0, 0))
        while True:
            answer = link.recv(1 << 16)
            # struct inet_diag_msg: the port of the socket, in network order, is at its fifth byte.
            at = 0
            while at + 16 <= len(answer):
                length, kind = struct.unpack_from("=IH", answer, at)
                if kind == _SOCK_DIAG_BY_FAMILY and struct.unpack_from(">H", answer, at + 20)[0] == targets.tcp_port:
                    return "found"
                if kind <= _DONE:
                    raise PermissionError(1, "it is not among the answers")
                at += (length + 3) & ~3


def interfaces(targets: Targets) -> str:
    """List the interfaces of the machine."""
    del targets
    found = [name for _, name in socket.if_nameindex() if name != "lo"]
    if not found:
        raise AbsentError("there are none but loopback")
    return " ".join(found)


def host_of_virtual_machine(targets: Targets) -> str:
    """Make a socket to the host of a virtual machine, which no network namespace holds back."""
    del targets
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return "made"


def raw_socket(targets: Targets) -> str:
    """Make a raw socket."""
    del targets
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return "made"


def packet_socket(targets: Targets) -> str:
    """Make a socket that sees every packet."""
    del targets
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, _ALL_LINK_LAYERS).close()
    return "made"


def ring(targets: Targets) -> str:
    """Set up an io_uring, which makes sockets past a filter of system calls."""
    del targets
    os.close(kernel.system_call(_IO_URING_SETUP, 4, bytearray(120)))
    return "set up"


def network_namespace(targets: Targets) -> str:
    """Enter the harness's network namespace and talk to its service there."""
    descriptor = os.open(f"/proc/{targets.harness}/ns/net", os.O_RDONLY)
    kernel.library_call("setns", descriptor, _CLONE_NEWNET)
    return tcp_service(targets)


ATTEMPTS = (
    Attempt(name="tcp-service", run=tcp_service),
    Attempt(name="tcp-service-ipv6", run=tcp_service_by_ipv6),
    Attempt(name="udp-service", run=udp_service),
    Attempt(name="connections", run=connections, reads=False),
    Attempt(name="connections-of-harness", run=connections_of_harness, reads=False),
    Attempt(name="socket-diagnostics", run=diagnostics, reads=False, may_lack=True),
    Attempt(name="interfaces", run=interfaces, reads=False),
    Attempt(name="vsock", run=host_of_virtual_machine, reads=False, may_lack=True),
    Attempt(name="raw-socket", run=raw_socket, reads=False, may_lack=True),
    Attempt(name="packet-socket", run=packet_socket, reads=False, may_lack=True),
    Attempt(name="io-uring-setup", run=ring, reads=False, may_lack=True),
    Attempt(name="network-namespace", run=network_namespace, may_lack=True),
)
