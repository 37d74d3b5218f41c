"""Fetching a repository from a server on this machine: what is sent to whom, and every way to be refused."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from tests.remote.test_archive import archive

from runner_e2e.errors import GitHubError, UsageError
from runner_e2e.remote import download
from runner_e2e.remote.archive import ArchiveLimits
from runner_e2e.remote.download import Api, fetch
from runner_e2e.remote.name import RemoteName

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = RemoteName(owner="org", name="repo", ref="v1/x")
DATA = archive((".github/workflows/w.yml", b"on: push\n"))


@dataclass
class Reply:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = DATA
    length: int | None = None
    """What Content-Length says, when it is not the truth."""


@dataclass
class Server:
    url: str
    replies: dict[str, Reply]
    seen: list[tuple[str, dict[str, str]]]


@contextmanager
def serving(replies: dict[str, Reply]) -> Iterator[Server]:
    """A server that answers GET by path, and notes paths and headers."""
    seen: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
            reply = replies.get(self.path, Reply(status=404, body=b'{"message": "Not Found"}'))
            self.send_response(reply.status)
            for key, value in reply.headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Server(url=f"http://127.0.0.1:{server.server_port}", replies=replies, seen=seen)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


PATH = "/repos/org/repo/tarball/v1/x"


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def refused(folder: Path, reply: Reply, *, token: str = "", name: RemoteName = NAME) -> str:
    path = PATH if name.ref else "/repos/org/repo/tarball"
    with serving({path: reply}) as server, pytest.raises(GitHubError) as caught:
        fetch(name, folder, api=Api(url=server.url, token=token))
    assert caught.value.problem.fix
    assert "secret-token" not in str(caught.value)
    return str(caught.value)


def test_files_come_from_where_the_api_sends_us_without_the_token(tmp_path: Path) -> None:
    with serving({"/elsewhere": Reply()}) as other:
        sent_on = Reply(status=302, headers={"Location": f"{other.url.replace('127.0.0.1', 'localhost')}/elsewhere"})
        with serving({PATH: sent_on}) as server:
            assert fetch(NAME, tmp_path, api=Api(url=server.url, token="secret-token")) == 1
    assert (tmp_path / ".github/workflows/w.yml").read_text() == "on: push\n"
    ((_, first),) = server.seen
    ((_, second),) = other.seen
    assert first["authorization"] == "Bearer secret-token"
    assert "authorization" not in second


def test_without_a_token_and_a_ref(tmp_path: Path) -> None:
    with serving({"/api/v3/repos/org/repo/tarball": Reply()}) as server:
        fetch(RemoteName(owner="org", name="repo"), tmp_path, api=Api(url=f"{server.url}/api/v3/"))
    ((_, headers),) = server.seen
    assert "authorization" not in headers
    assert headers["user-agent"].startswith("runner-e2e/")


def test_what_does_not_exist(tmp_path: Path) -> None:
    reply = Reply(status=404, body=b'{"message": "Not Found"}')
    said = refused(tmp_path, reply)
    assert "there is no org/repo@v1/x, or no such branch, tag or commit" in said
    assert "GitHub says: Not Found" in said
    assert "a private repository needs a token" in said
    assert "the token may not see it" in refused(tmp_path, reply, token="secret-token")
    assert "no such branch" not in refused(tmp_path, reply, name=RemoteName(owner="org", name="repo"))


def test_a_bad_token(tmp_path: Path) -> None:
    reply = Reply(status=401, body=b'{"message": "Bad credentials"}')
    assert "does not accept the token" in refused(tmp_path, reply, token="secret-token")


def test_the_rate_limit(tmp_path: Path) -> None:
    used = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1790000000"}
    said = refused(tmp_path, Reply(status=403, headers=used, body=b'{"message": "API rate limit exceeded"}'))
    assert "rate limit is used up" in said
    assert "set GH_TOKEN" in said
    assert f"{time.strftime('%H:%M', time.gmtime(1790000000))} UTC" in said
    said = refused(tmp_path, Reply(status=429, headers={"retry-after": "60"}, body=b""), token="secret-token")
    assert "rate limit is used up" in said
    assert "set GH_TOKEN" not in said
    assert "wait some minutes" in refused(
        tmp_path, Reply(status=429, headers={"retry-after": "60", "x-ratelimit-reset": "soon"}, body=b"")
    )


@pytest.mark.parametrize(
    ("status", "body", "part"),
    [
        (403, b'{"message": "Resource protected by\\n organization SAML"}', "Resource protected by organization SAML"),
        (403, b"<html>", "the answer was 403"),
        (451, b"{}", "is blocked"),
        (500, b"[]", "the answer was 500"),
        (502, b'{"message": 1}', "did not send"),
        (503, b"[" * 60_000, "did not send"),
    ],
)
def test_other_refusals(tmp_path: Path, status: int, body: bytes, part: str) -> None:
    assert part in refused(tmp_path, Reply(status=status, body=body))


def test_a_reply_that_ends_early(tmp_path: Path) -> None:
    said = refused(tmp_path, Reply(body=DATA[:-20], length=len(DATA)))
    assert "cut or damaged" in said or "did not send" in said


def test_a_reply_that_is_too_large(tmp_path: Path) -> None:
    with serving({PATH: Reply()}) as server, pytest.raises(GitHubError, match="too large"):
        fetch(NAME, tmp_path, api=Api(url=server.url), limits=ArchiveLimits(packed=10))


def test_a_page_instead_of_an_archive(tmp_path: Path) -> None:
    assert "cut or damaged" in refused(tmp_path, Reply(body=b"<html>sign in</html>"))


@pytest.mark.parametrize("location", ["http://example.org/x", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_it_is_not_sent_on_to_plain_http_or_files(tmp_path: Path, location: str) -> None:
    reply = Reply(status=302, headers={"Location": location})
    with serving({PATH: reply}) as server, pytest.raises((UsageError, GitHubError)):
        fetch(NAME, tmp_path, api=Api(url=server.url, token="secret-token"))
    assert list(tmp_path.iterdir()) == []


def test_a_ring_of_redirects_ends(tmp_path: Path) -> None:
    assert "did not send" in refused(tmp_path, Reply(status=302, headers={"Location": PATH}))


@pytest.mark.parametrize("url", ["http://example.org", "ftp://example.org", "example.org", "https://"])
def test_an_api_that_would_get_the_token_in_clear(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="no https address"):
        fetch(NAME, tmp_path, api=Api(url=url, token="secret-token"))


def test_nobody_answers(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else gets the port meanwhile
        with pytest.raises(GitHubError, match="did not send org/repo@v1/x") as caught:
            fetch(NAME, tmp_path, api=Api(url=f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert "refused" in caught.value.problem.why


def test_a_server_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(GitHubError, match="did not send") as caught:
            fetch(NAME, tmp_path, api=Api(url=f"http://127.0.0.1:{silent.getsockname()[1]}"))
    assert "timed out" in caught.value.problem.why
