"""What proxy.py does for an agent: CONNECT and plain HTTP, to destinations that the rules allow."""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Final

from proxy.common.flag import FlagParser
from proxy.core.connection import TcpServerConnection
from proxy.http.exception import HttpRequestRejected
from proxy.http.handler import HttpProtocolHandler
from proxy.http.proxy import HttpProxyBasePlugin, HttpProxyPlugin

from runner_e2e.egress.carrying import carry
from runner_e2e.egress.destinations import Book, RefusedDestinationError, find, is_of_this_machine, look_up

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from proxy.http.parser import HttpParser

    from runner_e2e.sandbox.hosts import HostRule

__all__ = ["handler"]

_SILENCE: Final = 24 * 3600  # seconds after which a connection without a byte is given up: a model may think for long
_FORBIDDEN, _BAD_GATEWAY = 403, 502


class _Outward(HttpProxyPlugin):
    """Connects where the rules allow, to the address that was judged. ``flags`` has the rules and the book."""

    def connect_upstream(self) -> None:
        host = (self.request.host or b"").decode("ascii", "replace").removeprefix("[").removesuffix("]")
        port = self.request.port or 0
        rules, book = self.flags.rules, self.flags.book
        try:
            place = find(rules, host, port, resolve=look_up, local=is_of_this_machine)
        except RefusedDestinationError as error:
            book.note(host, port, refused=str(error))
            raise _refusal(_FORBIDDEN, b"Forbidden", f"{host}:{port} is refused: {error}") from error
        upstream = TcpServerConnection(host, port)
        try:
            upstream.connect(addr=place)
        except OSError as error:
            why = f"it cannot be reached: {error.strerror or error}"
            book.note(host, port, refused=why)
            raise _refusal(_BAD_GATEWAY, b"Bad Gateway", f"{host}:{port}: {why}") from error
        upstream.connection.setblocking(False)
        book.note(host, port)
        self.upstream = upstream


class _Handler(HttpProtocolHandler):
    """Steps aside once a tunnel stands: to look after one costs time with every byte, and while there is none."""

    async def handle_events(self, readables: list[int], writables: list[int]) -> bool:
        if await super().handle_events(readables, writables):
            return True
        upstream = self.plugin.upstream if isinstance(self.plugin, _Outward) else None
        if upstream is None or not self.request.is_https_tunnel or self.work.has_buffer() or upstream.has_buffer():
            return False
        carry(self.work.connection, upstream.connection)
        return True


class _OneRequest(HttpProxyBasePlugin):
    """Lets one plain request pass on a connection, with the host that it was judged by.

    The next one may be for another host, and this connection leads to the first.
    """

    passed = False

    def handle_client_request(self, request: HttpParser) -> HttpParser:
        if self.passed:
            raise HttpRequestRejected
        self.passed = True
        if not request.is_https_tunnel:
            host, port = request.host or b"", request.port or 80
            request.del_headers([b"host", b"connection", b"keep-alive"])
            request.add_header(b"Host", host if port == 80 else b"%s:%d" % (host, port))
            request.add_header(b"Connection", b"close")
        return request


def _refusal(status: int, reason: bytes, text: str) -> HttpRequestRejected:
    headers = {b"Content-Type": b"text/plain"}
    return HttpRequestRejected(status_code=status, reason=reason, headers=headers, body=f"sandbox: {text}\n".encode())


def handler() -> Callable[[socket.socket, Sequence[HostRule], Book], None]:
    """What serves one connection of an agent, to its end."""
    # It makes directories for what is not used here: certificates and a cache.
    with tempfile.TemporaryDirectory() as scratch:
        flags = FlagParser.initialize(
            ["--cache-dir", scratch, "--log-level", "CRITICAL"],
            data_dir=scratch,
            plugins=[_OneRequest],
            threaded=True,
            threadless=False,
            timeout=_SILENCE,
        )
    flags.plugins[b"HttpProtocolHandlerPlugin"] = [_Outward]
    return partial(_serve, flags)


def _serve(flags: argparse.Namespace, client: socket.socket, rules: Sequence[HostRule], book: Book) -> None:
    own = argparse.Namespace(**vars(flags), rules=rules, book=book)
    connection = _Handler.create(client, client.getpeername())
    _Handler(connection, flags=own, event_queue=None, upstream_conn_pool=None).run()
