"""Carries bytes between two connections, without looking at them."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Final

__all__ = ["carry"]

_BLOCK: Final = 1 << 16
# Seconds for the rest of an answer once the agent has ended its side: it may have ended both without a sign of it.
_REST: Final = 600.0


def carry(client: socket.socket, upstream: socket.socket) -> None:
    """Carries both ways until both have ended; either may end its side first.

    *client* may be shut down meanwhile, which ends it at once.
    """
    for connection in (client, upstream):
        connection.setblocking(True)
    back = threading.Thread(target=_carry_one_way, args=(upstream, client), daemon=True)
    back.start()
    _carry_one_way(client, upstream)
    ended = select.poll()
    ended.register(client, 0)  # hears when both sides of it are shut: by the agent, by the other thread, from outside
    ended.poll(_REST * 1000)
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
