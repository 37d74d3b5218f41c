"""Carries bytes between two connections, without looking at them."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

__all__ = ["carry"]

_BLOCK: Final = 1 << 16
# Seconds for the rest of an answer once the agent has ended its side. Whether it has ended both cannot be seen.
_REST: Final = 600.0


def carry(client: socket.socket, upstream: socket.socket) -> None:
    """Carries both ways until both have ended; either may end its side first."""
    for connection in (client, upstream):
        connection.setblocking(True)
    back = threading.Thread(target=_carry_one_way, args=(upstream, client), daemon=True)
    back.start()
    _carry_one_way(client, upstream)
    back.join(_REST)
    with contextlib.suppress(OSError):
        upstream.shutdown(socket.SHUT_RDWR)
    back.join()


def _carry_one_way(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while block := source.recv(_BLOCK):
            target.sendall(block)
    for end, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            end.shutdown(how)
