"""The process of the proxy, with doors that the test makes itself."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.egress import server
from runner_e2e.errors import LaunchError
from runner_e2e.sandbox import request
from runner_e2e.sandbox.doors import DOORS
from runner_e2e.sandbox.hosts import doors, parse_rules
from runner_e2e.sandbox.proxy import Asked, Door, Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT = 60.0


class Launch:
    """What a launch is to the proxy: a connection, and listening sockets on some loopback."""

    def __init__(self, proxy: Proxy, rules: list[str]) -> None:
        self.door: Door = proxy.open_door()
        self.listening = [socket.create_server(("127.0.0.1", 0)) for _ in doors(parse_rules(rules))]
        request.send_descriptors(self.door.connection, DOORS, [one.fileno() for one in self.listening])
        self.address = self.listening[0].getsockname()

    def ask(self, content: bytes) -> bytes:
        """What the proxy answers until it closes the connection."""
        with socket.create_connection(self.address, TIMEOUT) as client:
            with contextlib.suppress(OSError):  # it may refuse before it has read everything
                client.sendall(content)
            return read(client)

    def end(self) -> tuple[Asked, ...]:
        for one in self.listening:
            one.close()
        return () if self.door.connection.fileno() < 0 else self.door.end()


def read(client: socket.socket) -> bytes:
    blocks = []
    with contextlib.suppress(ConnectionResetError):
        while block := client.recv(1 << 16):
            blocks.append(block)
    return b"".join(blocks)


class Upstream:
    """A server: its port, and what comes on its connections. It ends each after one answer, unless it *keeps* them."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listening.getsockname()[1]
        self.keeps = False
        self.connections: list[threading.Thread] = []
        self.requests: list[bytes] = []
        """The first block of each connection, as they came: there before it is answered."""
        self._later: list[bytes] = []

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                connection.settimeout(TIMEOUT)
                self.connections.append(threading.Thread(target=self._answer, args=(connection,), daemon=True))
                self.connections[-1].start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self.requests.append(connection.recv(1 << 16))
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            while self.keeps and (block := connection.recv(1 << 16)):
                self._later.append(block)

    def forget(self) -> None:
        self.everything()
        self.keeps = False
        for known in (self.connections, self.requests, self._later):
            known.clear()

    def everything(self) -> bytes:
        """All that ever came, once the proxy has ended its connections."""
        with socket.create_connection(("127.0.0.1", self.port), TIMEOUT) as last:  # which is accepted after all others
            last.shutdown(socket.SHUT_WR)
            assert last.recv(100)
        for connection in self.connections:
            connection.join(TIMEOUT)
            assert not connection.is_alive(), "the proxy keeps a connection whose client has ended"
        return b"".join([*self.requests, *self._later])


@pytest.fixture(scope="module")
def server_of_all() -> Iterator[Upstream]:
    made = Upstream()
    threading.Thread(target=made.serve, daemon=True).start()
    yield made
    made.listening.close()


@pytest.fixture
def upstream(server_of_all: Upstream) -> Upstream:
    """Nothing has come yet. What a launch began has ended with it."""
    server_of_all.forget()
    return server_of_all


@pytest.fixture(scope="module")
def rules(server_of_all: Upstream) -> list[str]:
    return [f"model.example.com:80=127.0.0.1:{server_of_all.port}"]


@pytest.fixture(scope="module")
def proxy(rules: list[str]) -> Iterator[Proxy]:
    """One serves any number of launches."""
    made = Proxy(rules)
    yield made
    made.close()


@pytest.fixture
def launch(proxy: Proxy, rules: list[str]) -> Iterator[Launch]:
    made = Launch(proxy, rules)
    yield made
    made.end()


def test_a_plain_request_says_the_host_it_was_judged_by(launch: Launch, upstream: Upstream) -> None:
    answer = launch.ask(
        b"GET http://model.example.com/a HTTP/1.1\r\nHost: api.github.com\r\nHOST: two.example.com\r\n"
        b"Proxy-Authorization: x\r\nConnection: keep-alive\r\n\r\n"
    )
    assert answer.endswith(b"ok")
    head = upstream.requests[0]
    assert head.startswith(b"GET /a HTTP/1.1\r\n")
    assert head.lower().count(b"host:") == 1
    assert b"Host: model.example.com\r\n" in head
    assert b"Connection: close\r\n" in head
    assert b"proxy-authorization" not in head.lower()
    assert launch.end() == (Asked(host="model.example.com", port=80, times=1),)


def test_a_second_request_does_not_ride_on_the_first(launch: Launch, upstream: Upstream) -> None:
    upstream.keeps = True
    with socket.create_connection(launch.address, TIMEOUT) as client:
        client.sendall(b"GET http://model.example.com/a HTTP/1.1\r\nHost: model.example.com\r\n\r\n")
        assert client.recv(1 << 16).endswith(b"ok")
        client.sendall(b"GET http://api.github.com/b HTTP/1.1\r\nHost: api.github.com\r\n\r\n")
        read(client)
    assert b"github" not in upstream.everything()


SECOND = b"GET /b HTTP/1.1\r\nHost: api.github.com\r\n\r\n"
FIRST = b"POST http://model.example.com/a HTTP/1.1\r\n"


@pytest.mark.parametrize(
    "content",
    [
        b"GET http://model.example.com/a\nHost:api.github.com HTTP/1.1\r\n\r\n",
        b"GET http://model.example.com/a\tHTTP/1.1\nHost:api.github.com HTTP/1.1\r\n\r\n",
        b"GET\t/b\tHTTP/1.1\nHost:api.github.com\n\n http://model.example.com/a HTTP/1.1\r\n\r\n",
        FIRST + b"X: y\nHost: api.github.com\r\n\r\n",
        FIRST + b"X: y\n\n" + SECOND.replace(b"\r", b"") + b"\r\n\r\n",
        FIRST + b"X: y\rHost: api.github.com\r\n\r\n",
        FIRST + b"X: y\0Host: api.github.com\r\n\r\n",
        FIRST + b"X\nHost: api.github.com\r\n\r\n",
        FIRST + b"Host\x01: api.github.com\r\n\r\n",
        FIRST + b"Transfer-Encoding: gzip, chunked\r\nContent-Length: 46\r\n\r\n0\r\n\r\n" + SECOND,
        FIRST + b"Transfer-Encoding: xchunked\r\nContent-Length: 46\r\n\r\n0\r\n\r\n" + SECOND,
        FIRST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n29\r\n" + SECOND + b"\r\n0\r\n\r\n",
        FIRST + b"Content-Length: 4_1\r\n\r\n" + SECOND,
        FIRST + b"Content-Length: +41\r\n\r\n" + SECOND,
        FIRST + b"\r\n" + SECOND,
    ],
)
def test_no_request_is_sent_that_a_server_could_read_otherwise(
    launch: Launch, upstream: Upstream, content: bytes
) -> None:
    assert launch.ask(content).startswith(b"HTTP/1.1 400 ")
    assert upstream.everything() == b""


def test_nothing_follows_a_request_that_asks_for_another_protocol(launch: Launch, upstream: Upstream) -> None:
    upstream.keeps = True
    with socket.create_connection(launch.address, TIMEOUT) as client:
        client.sendall(FIRST + b"Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n")
        assert client.recv(1 << 16).endswith(b"ok")
        with contextlib.suppress(OSError):
            # The head of a second one, not yet ended, that asks for a protocol without requests.
            client.sendall(b"GET http://model.example.com/ HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n")
            time.sleep(0.1)
            client.sendall(SECOND)
        read(client)
    assert b"github" not in upstream.everything()
    assert b"upgrade" not in upstream.everything().lower()


def test_a_body_in_chunks_passes(launch: Launch, upstream: Upstream) -> None:
    head = FIRST + b"Transfer-Encoding: chunked\r\n\r\n"
    assert launch.ask(head + b"3\r\nabc\r\n0\r\n\r\n").endswith(b"ok")
    assert upstream.requests[0].endswith(b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert launch.ask(head + b"0\r\n\r\n").endswith(b"ok")
    assert b"Content-Length: 0\r\n" in upstream.requests[1]


def test_a_head_without_end_is_not_kept(launch: Launch) -> None:
    answer = launch.ask(b"GET http://model.example.com/ HTTP/1.1\r\nX: " + b"y" * (1 << 20))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")
    assert launch.ask(b"GET http://model.example.com/ HTTP/1.1\r\n\r\n").endswith(b"ok")


@pytest.mark.parametrize(
    "content",
    [
        b"\r\n\r\n",
        b"\0" * 1000,
        b"GET / HTTP/1.1\r\nHost: model.example.com\r\n\r\n",
        b"GET //model.example.com@evil.example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://model.example.com@evil.example.com/ HTTP/1.1\r\nHost: model.example.com\r\n\r\n",
        b"GET http://evil.example.com#model.example.com/ HTTP/1.1\r\nHost: model.example.com\r\n\r\n",
        b"GET http://model.example.com.evil.example.com/ HTTP/1.1\r\nHost: model.example.com\r\n\r\n",
        b"GET ftp://model.example.com/ HTTP/1.1\r\n\r\n",
        b"GET http:/// HTTP/1.1\r\nHost: model.example.com\r\n\r\n",
        b"GET http://model.example.com:99999/ HTTP/1.1\r\n\r\n",
        b"GET http://model.example.com:-80/ HTTP/1.1\r\n\r\n",
        b"CONNECT model.example.com:443 HTTP/1.1\r\n\r\n",
        b"CONNECT model.example.com HTTP/1.1\r\n\r\n",
        b"CONNECT model.example.com:80:443 HTTP/1.1\r\n\r\n",
        b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n\r\n",
        b"CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1\r\n\r\n",
        b"CONNECT evil.example.com:80 HTTP/1.1\r\nHost: model.example.com:80\r\n\r\n",
        b"CONNECT model.example.com\0.evil.example.com:80 HTTP/1.1\r\n\r\n",
        b"CONNECT \xff\xfe.example.com:80 HTTP/1.1\r\n\r\n",
        b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET http://evil.example.com/ HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_not_wholly_right_leads_nowhere(launch: Launch, upstream: Upstream, content: bytes) -> None:
    with socket.create_connection(launch.address, TIMEOUT) as client:
        client.sendall(content)
        client.shutdown(socket.SHUT_WR)
        answer = read(client)
    assert not answer.startswith(b"HTTP/1.1 200"), answer
    assert upstream.everything() == b""
    assert launch.ask(b"GET http://model.example.com/ HTTP/1.1\r\n\r\n").endswith(b"ok")  # it goes on
    assert all(entry.refused for entry in launch.end() if (entry.host, entry.port) != ("model.example.com", 80))


def test_more_connections_than_it_takes_do_not_stop_it(launch: Launch) -> None:
    deadline = time.monotonic() + TIMEOUT
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(launch.address, TIMEOUT)) for _ in range(300)]
        for one in held:
            one.setblocking(False)
        closed = 0
        while closed < 300 - 256 and time.monotonic() < deadline:
            closed = sum(_is_closed(one) for one in held)
            time.sleep(0.05)
    assert closed == 300 - 256
    while time.monotonic() < deadline:
        if launch.ask(b"GET http://model.example.com/ HTTP/1.1\r\n\r\n").endswith(b"ok"):
            break
    else:
        pytest.fail("it did not go on")


def test_what_an_agent_began_ends_with_its_launch() -> None:
    with socket.create_server(("127.0.0.1", 0)) as answering, socket.socket() as client:
        proxy = Proxy(rules := [f"model.example.com:80=127.0.0.1:{answering.getsockname()[1]}"])
        made = Launch(proxy, rules)
        client.settimeout(TIMEOUT)
        answering.settimeout(TIMEOUT)
        client.connect(made.address)
        client.sendall(b"CONNECT model.example.com:80 HTTP/1.1\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        upstream, _ = answering.accept()
        with upstream:
            upstream.settimeout(TIMEOUT)
            client.shutdown(socket.SHUT_WR)
            assert upstream.recv(1) == b""  # half open: the rest of an answer may come
            made.end()
            assert read(client) == b""
            deadline = time.monotonic() + TIMEOUT
            while not _is_reset(upstream) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert _is_reset(upstream)  # the proxy holds nothing of it any more
        proxy.close()


def _is_reset(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"x")
    except OSError:
        return True
    return False


def test_a_connection_that_gets_no_thread_is_closed_and_the_launch_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ours, theirs = socket.socketpair()
    with ours, theirs, socket.create_server(("127.0.0.1", 0)) as door:
        launch = server._Launch(theirs, (), lambda *_: None)
        with monkeypatch.context() as patch, socket.create_connection(door.getsockname(), TIMEOUT) as client:
            patch.setattr(threading.Thread, "start", refuse)
            launch._accept(door, ("127.0.0.1", 1), is_proxy=True)
            assert client.recv(1) == b""
        assert launch.free._value == 256  # its place is free again


def _is_closed(client: socket.socket) -> bool:
    try:
        return not client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_launches_are_told_apart_and_share_the_process(proxy: Proxy, rules: list[str]) -> None:
    first, second = Launch(proxy, rules), Launch(proxy, rules)
    first.ask(b"GET http://one.example.com/ HTTP/1.1\r\n\r\n")
    second.ask(b"GET http://two.example.com/ HTTP/1.1\r\n\r\n")
    assert [entry.host for entry in first.end()] == ["one.example.com"]
    second.ask(b"GET http://two.example.com/ HTTP/1.1\r\n\r\n")
    assert [(entry.host, entry.times) for entry in second.end()] == [("two.example.com", 2)]


def test_it_has_few_rights(proxy: Proxy) -> None:
    status = dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines()
        if ":\t" in line
    )
    assert int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert status["Uid"].split()[1] != "0"


def test_without_its_package_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as refused:
        Proxy(["api.example.com"], python=str(tmp_path / "no-python"))
    assert "No such file" in refused.value.problem.why
    assert "runner-e2e-action[network]" in refused.value.problem.fix
