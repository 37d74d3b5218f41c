"""The double on loopback: HTTP around the state, with faults where they were ordered."""

from __future__ import annotations

import hashlib
import json
import select
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.github_double import shapes
from tests.github_double.faults import Fault, Faults
from tests.github_double.routes import Reply, Request, answer
from tests.github_double.state import ApiError, State, User

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Entry", "Server"]

_LONGEST_REST = 60.0

_NOBODY = User(id=0, login="nobody", permission="none")


@dataclass
class Entry:
    """One request as it was answered."""

    verb: str
    path: str
    status: int
    fault: str = ""
    query: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


class Server:
    """A running double. Use it as a context manager; ``url`` is the API's root.

    *validating* compares every success with GitHub's models (loading them takes two seconds).
    """

    def __init__(
        self, state: State | None = None, *, faults: Faults | None = None, validating: bool = True, port: int = 0
    ) -> None:
        self.state = state or State()
        self.faults = faults or Faults()
        self.validating = validating
        self.log: list[Entry] = []
        self.defects: list[str] = []
        self.after: Callable[[Entry], None] = lambda _: None
        """Called after each request that was carried out: where a test lets runs go on."""
        self.lock = threading.RLock()
        owner = self

        class Handler(_Handler):
            double = owner

        self._server = _Listener(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        """Starts to serve."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stops; a defect of the double itself is an error of the test."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert not self.defects, "\n".join(self.defects)

    def settle(self) -> None:
        """Waits until what clients have sent that are gone, or gave up, is carried out."""
        place = ("127.0.0.1", self._server.server_address[1])
        with socket.create_connection(place, _LONGEST_REST) as last:  # which is accepted after all that were before
            last.shutdown(socket.SHUT_WR)
            last.recv(1)
        until = time.monotonic() + _LONGEST_REST
        while any(map(_is_left, tuple(self._server.served))):
            assert time.monotonic() < until, "a request does not end"
            time.sleep(0.0005)

    def requests(self, verb: str = "", part: str = "") -> list[Entry]:
        """The requests so far with that verb and that part in their path."""
        return [each for each in self.log if (not verb or each.verb == verb) and part in each.path]

    def handle(self, request: Request, token: str) -> Reply:
        """Carries out one request under the lock."""
        with self.lock:
            try:
                needs_token = not request.path.startswith("/storage/")
                if not needs_token and "authorization" in request.headers:
                    self.defects.append(f"{request.verb} {request.path}: the token went to another host")
                request.user = self.state.user(token) if needs_token else _NOBODY
                reply = answer(self.state, request)
                if self.validating and reply.model:
                    self._validate(request, reply)
            except ApiError as error:
                reply = Reply(status=error.status, data=error.body)
            return reply

    def _validate(self, request: Request, reply: Reply) -> None:
        items = [reply.data] if reply.listed is None else reply.data[reply.listed] if reply.listed else reply.data
        for item in items:
            try:
                shapes.validate(reply.model, item)
            except ValueError as error:
                self.defects.append(f"{request.verb} {request.path}: not a {reply.model}: {error}")


class _Listener(ThreadingHTTPServer):
    """Knows which connections are *served*, from when they are accepted."""

    daemon_threads = True

    def __init__(self, place: tuple[str, int], handler: type[_Handler]) -> None:
        super().__init__(place, handler)
        self.served: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        """One connection was accepted."""
        self.served.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """It is over."""
        super().shutdown_request(request)
        self.served.discard(request)


class _Handler(BaseHTTPRequestHandler):
    double: Server
    protocol_version = "HTTP/1.1"
    # Head and body go out as one: the second of two small packets waits for 40 ms.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Nothing: the log of the double is a list."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        try:
            body = json.loads(raw) if raw.strip() else {}
        except ValueError:
            return self._send(Reply(status=400, data={"message": "Problems parsing JSON"}))
        path = unquote(parts.path)
        request = Request(
            verb=self.command,
            path=path.removeprefix("/api/v3") or "/",
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            body=body if isinstance(body, dict) else {},
            user=_NOBODY,
            base=self.double.url,
            headers={name.lower(): value for name, value in self.headers.items()},
        )
        token = self.headers.get("Authorization", "").partition(" ")[2]
        fault = self.double.faults.next(request)
        entry = Entry(self.command, request.path, 0, fault.name if fault else "", request.query, request.body)
        self.double.log.append(entry)
        reply = fault.instead() if fault is not None and not fault.carried_out else None
        if fault is not None and fault.elsewhere and reply is not None:
            # `localhost` is another host than 127.0.0.1 to a client, and the same server.
            place = self.double.url.replace("127.0.0.1", "localhost")
            reply.headers["Location"] = f"{place}{parts.path}"
        if reply is None:
            reply = self.double.handle(request, token)
            if fault is not None and fault.duplicates and reply.status < 300:
                self.double.handle(request, token)
        entry.status = reply.status
        self.double.after(entry)
        if fault is None:
            return self._send(self._conditional(reply))
        return self._send_broken(fault, reply)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the names are those of the base class

    def _conditional(self, reply: Reply) -> Reply:
        """304 where the client has this answer already."""
        if self.command != "GET" or reply.status != 200 or reply.raw is not None:
            return reply
        etag = f'"{hashlib.sha256(json.dumps(reply.data, sort_keys=True).encode()).hexdigest()[:32]}"'
        if self.headers.get("If-None-Match") == etag:
            return Reply(status=304, headers={**reply.headers, "ETag": etag})
        reply.headers["ETag"] = etag
        return reply

    def _send(self, reply: Reply) -> None:
        content = reply.raw if reply.raw is not None else b"" if reply.data is None else json.dumps(reply.data).encode()
        self._head(reply, len(content))
        self.wfile.write(content)

    def _send_broken(self, fault: Fault, reply: Reply) -> None:
        """What the client gets of *reply* under *fault*."""
        if fault.hangs:
            # Until the client closes the connection.
            self.rfile.read(1)
            self.close_connection = True
            return
        if fault.hangs_up:
            self.close_connection = True
            return
        if fault.cut:
            content = json.dumps(reply.data).encode() if reply.raw is None else reply.raw
            self._head(reply, len(content))
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        if fault.late:
            reply = _without_newest(reply)
        if fault.carried_out and fault.status:
            reply = Reply(status=fault.status, data={"message": "Server Error"})
        self._send(reply)

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The time of the double, which its answers have as ``Date``."""
        return super().date_time_string(self.double.state.clock.now() if timestamp is None else timestamp)

    def _head(self, reply: Reply, length: int) -> None:
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json; charset=utf-8", **reply.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        if reply.status not in {204, 304}:
            self.send_header("Content-Length", str(length))
        self.end_headers()


def _is_left(connection: socket.socket) -> bool:
    """Whether the other side has closed *connection*, and what it had sent may not be carried out yet."""
    try:
        ended = select.poll()
        ended.register(connection, select.POLLRDHUP)
        return bool(ended.poll(0))
    except (OSError, ValueError):  # it is closed here too
        return False


def _without_newest(reply: Reply) -> Reply:
    """A list as a replica gives it that is behind; an answer that is no list stays as it is."""
    data = reply.data
    if isinstance(data, list):
        return Reply(status=reply.status, data=data[1:])
    key = (
        next((key for key, value in data.items() if isinstance(value, list)), None) if isinstance(data, dict) else None
    )
    return Reply(status=reply.status, data={**data, key: data[key][1:]}) if key else reply
