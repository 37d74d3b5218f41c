"""What proxy.py does for an agent: CONNECT and plain HTTP, to destinations that the rules allow."""

from __future__ import annotations

import argparse
import re
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Final

from proxy.common.flag import FlagParser
from proxy.core.connection import TcpServerConnection
from proxy.http.exception import HttpRequestRejected
from proxy.http.handler import HttpProtocolHandler
from proxy.http.parser import httpParserStates
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
_BAD_REQUEST, _FORBIDDEN, _TOO_LARGE, _HEAD_TOO_LARGE, _BAD_GATEWAY = 400, 403, 413, 431, 502
_LONGEST_HEAD: Final = 1 << 16
_LONGEST_REQUEST: Final = 1 << 27  # bytes: a plain request waits in memory until it is whole
# RFC 9110 5.6.2 and 5.5, RFC 9112 3.2: what stands in a request without ending a line or a word of it.
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET: Final = re.compile(rb"[\x21-\x7e]*")
_VALUE: Final = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
# Besides the host: what is meant for a proxy, or would let more than one request pass.
_NOT_PASSED_ON: Final = (b"host", b"connection", b"keep-alive", b"te", b"trailer", b"upgrade")


class _Outward(HttpProxyPlugin):
    """Connects where the rules allow, to the address that was judged. ``flags`` has the rules and the book."""

    def connect_upstream(self) -> None:
        host = (self.request.host or b"").decode("ascii", "replace").removeprefix("[").removesuffix("]")
        port = self.request.port or 0
        rules, book = self.flags.rules, self.flags.book
        if not self.request.is_https_tunnel and (why := _ambiguity(self.request)):
            book.note(host, port, refused=why)
            raise _refusal(_BAD_REQUEST, b"Bad Request", f"{host}:{port} is refused: {why}")
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

    def on_client_data(self, raw: memoryview) -> None:
        """What follows a plain request is another one, maybe for another host: this connection leads to the first."""
        if self.request.is_https_tunnel:
            super().on_client_data(raw)
        elif raw.tobytes().strip(b"\r\n"):
            raise HttpRequestRejected


def _ambiguity(request: HttpParser) -> str:
    """Why a server could read a plain *request* otherwise than it was judged, or as more than one; "" if it cannot.

    Many servers end a line at a line feed alone, and each goes by another of two lengths.
    """
    fields = dict(request.headers or {})
    length, coding = (fields[name][1] if name in fields else None for name in (b"content-length", b"transfer-encoding"))
    if not _TOKEN.fullmatch(request.method or b"") or not _TARGET.fullmatch(request.path or b""):
        return "its request line has signs that may not stand there"
    if not all(_TOKEN.fullmatch(name) and _VALUE.fullmatch(value) for name, value in fields.values()):
        return "its headers have signs that may not stand there"
    if coding is not None and (coding.lower() != b"chunked" or length is not None):
        return "how long it is can be read in two ways"
    if length is not None and not length.isdigit():
        return "how long it is cannot be read"
    return ""


class _Handler(HttpProtocolHandler):
    """Steps aside once a tunnel stands: to look after one costs time with every byte, and while there is none."""

    def handle_data(self, data: memoryview) -> bool | None:
        request = self.request
        if data is None or request.is_complete:
            return super().handle_data(data)
        in_head = request.state < httpParserStates.HEADERS_COMPLETE
        if request.total_size > (_LONGEST_HEAD if in_head else _LONGEST_REQUEST):
            status, reason = (_HEAD_TOO_LARGE, b"Header") if in_head else (_TOO_LARGE, b"Content")
            return self._refuse(_refusal(status, reason + b" Too Large", "the request is too large"))
        ended = super().handle_data(data)
        if request.state == httpParserStates.RCVING_BODY and not request.body_expected:
            return self._refuse(_refusal(_BAD_REQUEST, b"Bad Request", "more follows the request than it announces"))
        return ended

    def _refuse(self, refusal: HttpRequestRejected) -> bool:
        if answer := refusal.response(self.request):
            self.work.queue(answer)
        return True

    async def handle_events(self, readables: list[int], writables: list[int]) -> bool:
        if await super().handle_events(readables, writables):
            return True
        upstream = self.plugin.upstream if isinstance(self.plugin, _Outward) else None
        if upstream is None or not self.request.is_https_tunnel or self.work.has_buffer() or upstream.has_buffer():
            return False
        carry(self.work.connection, upstream.connection)
        return True


class _OneRequest(HttpProxyBasePlugin):
    """Sends a plain request on with the host that it was judged by, as the only one on its connection."""

    def handle_client_request(self, request: HttpParser) -> HttpParser:
        if not request.is_https_tunnel:
            host, port = request.host or b"", request.port or 80
            request.del_headers(list(_NOT_PASSED_ON))
            request.add_header(b"Host", host if port == 80 else b"%s:%d" % (host, port))
            request.add_header(b"Connection", b"close")
            if request.is_chunked_encoded and not request.body:  # it would be built without an end
                request.del_header(b"transfer-encoding")
                request.add_header(b"Content-Length", b"0")
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
