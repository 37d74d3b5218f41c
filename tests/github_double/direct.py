"""Exchanges with the double without sockets: what a server would make of a request, and what the wire would make of it.

Jobs of runs talk to the double so, and most clients in the schedules of campaigns; all others do over loopback.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from email.utils import formatdate
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import requests
from tests.github_double.routes import Reply, Request
from tests.github_double.server import Entry, Server, _without_newest
from tests.github_double.state import User
from urllib3.exceptions import ProtocolError

from runner_e2e.dispatch.github_api import GitHubApi, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.github_double.faults import Fault

__all__ = ["DirectApi", "Received", "as_requested", "carry_out", "request_of", "with_query"]

NO_REPLY, BROKEN_OFF = "no reply", "broken off"
_NOBODY: Final = User(id=0, login="nobody")


@dataclass(frozen=True, kw_only=True)
class Received:
    """What comes back over the wire; *broken* says why nothing does."""

    status: int = 0
    headers: Mapping[str, str]
    body: bytes = b""
    broken: str = ""


def request_of(double: Server, verb: str, url: str, headers: Mapping[str, str], body: str) -> Request:
    """A request as the double takes it."""
    parts = urlsplit(url)
    return Request(
        verb=verb, path=unquote(parts.path), query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        body=json.loads(body) if body else {}, user=_NOBODY, base=double.url,
        headers={name.lower(): value for name, value in headers.items()},
    )  # fmt: skip


def carry_out(double: Server, request: Request) -> Received:
    """One exchange, with the fault that was ordered for it: what :class:`tests.github_double.server.Server` does."""
    token = request.headers.get("authorization", "").partition(" ")[2]
    fault = double.faults.next(request)
    entry = Entry(request.verb, request.path, 0, fault.name if fault else "", request.query, request.body)
    double.log.append(entry)
    reply = fault.instead() if fault is not None and not fault.carried_out else None
    if reply is not None and fault is not None and fault.elsewhere:
        reply.headers["Location"] = double.url.replace("127.0.0.1", "localhost") + request.path
    if reply is None:
        reply = double.handle(request, token)
        if fault is not None and fault.duplicates and reply.status < 300:
            double.handle(request, token)
    entry.status = reply.status
    double.after(entry)
    return _received(double, request, reply, fault)


def _received(double: Server, request: Request, reply: Reply, fault: Fault | None) -> Received:
    if fault is not None:
        if fault.hangs:
            return Received(broken=NO_REPLY, headers={})
        if fault.hangs_up or fault.cut:
            return Received(broken=BROKEN_OFF, headers={})
        if fault.late:
            reply = _without_newest(reply)
        if fault.carried_out and fault.status:
            reply = Reply(status=fault.status, data={"message": "Server Error"})
    body = reply.raw if reply.raw is not None else b"" if reply.data is None else json.dumps(reply.data).encode()
    headers = {"content-type": "application/json", "date": formatdate(double.state.clock.now(), usegmt=True)}
    headers |= {name.lower(): value for name, value in reply.headers.items()}
    status = reply.status
    if fault is None and request.verb == "GET" and status == 200 and reply.raw is None:
        headers["etag"] = f'"{sha256(body).hexdigest()[:32]}"'
        if request.headers.get("if-none-match") == headers["etag"]:
            status, body = 304, b""
    return Received(status=status, headers=headers, body=body)


class DirectApi(GitHubApi):
    """The same API for the jobs of a run."""

    def __init__(self, double: Server, *, token: str, limits: Limits) -> None:
        super().__init__(repository=double.state.repository, token=token, url=double.url, limits=limits)
        self._requester = _Requester(double, token)  # type: ignore[assignment]


class _Requester:
    """What PyGithub's requester does for one request, without PyGithub and sockets."""

    def __init__(self, double: Server, token: str) -> None:
        self._double, self._token = double, token

    def requestJson(  # noqa: N802 - PyGithub's name
        self,
        verb: str,
        path: str,
        parameters: Mapping[str, object],
        headers: Mapping[str, str],
        data: object,
        _: object,
    ) -> tuple[int, Mapping[str, str], str]:
        sent = {"authorization": f"Bearer {self._token}", **headers}
        url, body = with_query(path, parameters), "" if data is None else json.dumps(data)
        return as_requested(asdict(carry_out(self._double, request_of(self._double, verb, url, sent, body))))


def with_query(path: str, parameters: Mapping[str, object]) -> str:
    """A path with its parameters."""
    return f"{quote(path)}?{urlencode(parameters)}" if parameters else quote(path)


def as_requested(found: Mapping[str, Any]) -> tuple[int, Mapping[str, str], str]:
    """What PyGithub's requester makes of a :class:`Received`: status, headers, text; or what ``requests`` raises."""
    if found["broken"] == NO_REPLY:
        raise requests.exceptions.ReadTimeout(NO_REPLY)
    if found["broken"]:
        raise requests.exceptions.ConnectionError(ProtocolError(BROKEN_OFF))
    body = found["body"]
    return found["status"], found["headers"], body.decode(errors="replace") if isinstance(body, bytes) else body
