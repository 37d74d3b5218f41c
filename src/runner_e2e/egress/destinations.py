"""Where a request of an agent may go: decided on the name it asks for and on the addresses that name leads to."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from runner_e2e.sandbox.hosts import address_of, allowing, is_public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.sandbox.hosts import Address, HostRule

__all__ = ["Book", "RefusedDestinationError", "find", "is_of_this_machine", "look_up"]

_MOST_ENTRIES: Final = 64  # a report of a launch is read up to 64 kB
_LONGEST_HOST: Final = 253


class RefusedDestinationError(Exception):
    """The rules do not let an agent go there; the text says why."""


@dataclass
class Book:
    """What the agent of one launch asked for: host, port and why it was refused -> how often."""

    entries: dict[tuple[str, int, str], int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def note(self, host: str, port: int, refused: str = "") -> None:
        """Counts one request; of very many different ones, the first are kept."""
        shown = "".join(sign if sign.isascii() and sign.isprintable() else "?" for sign in host[:_LONGEST_HOST])
        key = (shown, port, refused)
        with self.lock:
            if key in self.entries or len(self.entries) < _MOST_ENTRIES:
                self.entries[key] = self.entries.get(key, 0) + 1

    def to_document(self) -> list[dict[str, object]]:
        """The entries as a JSON list of objects."""
        with self.lock:
            entries = sorted(self.entries.items())
        return [{"host": h, "port": p, "refused": why, "times": times} for (h, p, why), times in entries]


def find(
    rules: Sequence[HostRule],
    host: str,
    port: int,
    *,
    resolve: Callable[[str, int], list[Address]],
    local: Callable[[Address], bool],
) -> tuple[str, int]:
    """The address and port to connect to for *host*, a name or an address; raises :class:`RefusedDestinationError`.

    *resolve* looks a name up; *local* says whether an address is one of this machine. A name may lead to public
    addresses only, or to those that a rule lists itself. The address that was judged is the one to use.
    """
    rule = allowing(rules, host, port)
    if rule is None:
        raise RefusedDestinationError("it is not among the allowed hosts")
    if rule.target:
        return rule.target, rule.target_port or port
    literal = address_of(host)
    if literal is not None:
        return str(literal), port
    found = resolve(host, port)
    if not found:
        raise RefusedDestinationError("its name leads to no address")
    for address in found:
        if allowing(rules, str(address), port) or (is_public(address) and not local(address)):
            return str(address), port
    raise RefusedDestinationError(f"its name leads to {found[0]}, which is not public and not listed")


def look_up(host: str, port: int) -> list[Address]:
    """The addresses of *host*, IPv4 first: not every machine reaches IPv6."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    return sorted(dict.fromkeys(addresses), key=lambda address: address.version)


def is_of_this_machine(address: Address) -> bool:
    """Whether *address* belongs to an interface here: packets to it would start from itself."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as any_socket:
            any_socket.connect((str(address), 9))  # sends nothing
            return ipaddress.ip_address(str(any_socket.getsockname()[0])) == address
    except OSError:
        return False
