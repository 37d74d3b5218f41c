"""Boundaries: the points of a client at which it may die, reported to who plays the schedule.

Before and after every request (as ``requests`` sends it, whoever asks), before and after every statement that ends a
transaction of the ledger, at every wait, and at any line of the client where one is ordered.
"""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import github.Requester
from requests.adapters import HTTPAdapter
from tests.github_double.direct import as_requested, with_query
from urllib3 import HTTPResponse

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping
    from types import FrameType

    import requests
    from tests.dispatch.campaigns.clock import SharedClock

__all__ = ["GO", "INTERRUPT", "Report", "report_lines", "report_requests", "report_time", "report_transactions"]

GO, INTERRUPT = b"g", b"i"
_CHANGE = re.compile(r"\s*(?:INSERT (?:OR \w+ )?INTO|UPDATE|DELETE FROM)\s+(\w+)", re.IGNORECASE)
_END = re.compile(r"\s*(?:COMMIT|END)\b", re.IGNORECASE)


class Report:
    """Tells the other side where this process is.

    It waits there for the word to go on where *stop_at* boundaries have been counted (of those whose name matches
    *stop_name*, and then *stop_after* others), and where time or others must have their turn. What else it passed is
    told together with that.
    """

    def __init__(self, connection: socket.socket, *, stop_at: int, stop_name: str, stop_after: int) -> None:
        self._connection = connection
        self._left, self._name, self._after = stop_at, re.compile(stop_name), stop_after
        self._passed: list[str] = []

    def at(self, name: str, *, waits: bool = False) -> None:
        """One boundary. Raises ``KeyboardInterrupt`` where that is the word."""
        self._passed.append(name)
        stops = self._stops(name)
        if not waits and not stops:
            return
        self._say("stop" if stops else "at", None)
        if self._received(1) == INTERRUPT:
            raise KeyboardInterrupt

    def _stops(self, name: str) -> bool:
        if self._left > 0:
            self._left -= bool(self._name.search(name))
            if self._left:
                return False
        elif self._left < 0:
            return False
        self._after -= 1
        if self._after >= 0:
            return False
        self._left = -1
        return True

    def ask(self, question: object) -> Any:
        """What comes back for a request that the other side carries out; the boundary before it was told as one."""
        self._say("http", question)
        return json.loads(self._received(int.from_bytes(self._received(4), "big")))

    def end(self, found: object) -> None:
        """The last word."""
        self._say("end", found)

    def _say(self, kind: str, data: object) -> None:
        self._connection.sendall(json.dumps([kind, self._passed, data]).encode() + b"\n")
        self._passed = []

    def _received(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self._connection.recv(size - len(found))
            if not part:  # nobody plays any more
                os._exit(1)
            found += part
        return found


def report_requests(report: Report, *, over_the_wire: bool) -> None:
    """From now on each exchange over HTTP has a boundary before and after it.

    *over_the_wire* it is one. Else PyGithub's part is left out and the other side asked what would come back, which
    takes a tenth of the time.
    """
    if not over_the_wire:
        github.Requester.Requester.requestJson = _asking(report)  # type: ignore[assignment,method-assign]
    original = HTTPAdapter.send

    def send(self: HTTPAdapter, request: requests.PreparedRequest, **settings: Any) -> requests.Response:
        name = f"{request.method} {urlsplit(str(request.url)).path}"
        report.at(f"before {name}", waits=over_the_wire)
        try:
            return original(self, request, **settings) if over_the_wire else _fetched(report, self, request)
        finally:
            report.at(f"after {name}")

    HTTPAdapter.send = send  # type: ignore[assignment,method-assign]


def _asking(report: Report) -> Callable[..., tuple[int, Mapping[str, str], str]]:
    """In place of PyGithub's ``requestJson``."""

    def request_json(
        self: Any, verb: str, path: str, parameters: dict[str, object], headers: dict[str, str], data: object, _: object
    ) -> tuple[int, Mapping[str, str], str]:
        report.at(f"before {verb} {path}")
        sent = {"authorization": f"Bearer {self.auth.token}", **headers}
        body = "" if data is None else json.dumps(data)
        try:
            return as_requested(report.ask([verb, with_query(path, parameters), sent, body]))
        finally:
            report.at(f"after {verb} {path}")

    return request_json


def _fetched(report: Report, adapter: HTTPAdapter, request: requests.PreparedRequest) -> requests.Response:
    """A file, which is asked for without PyGithub."""
    found = report.ask([request.method, request.url, dict(request.headers), ""])
    as_requested(found)
    content = found["body"].encode("latin-1")
    headers = {**found["headers"], "content-length": str(len(content))}
    raw = HTTPResponse(body=io.BytesIO(content), headers=headers, status=found["status"], preload_content=False)
    return adapter.build_response(request, raw)


def report_transactions(report: Report) -> None:
    """From now on each end of a transaction of SQLite has a boundary before and after it."""
    original = sqlite3.connect

    class Connection(sqlite3.Connection):
        """Says where a transaction ends, and what it changed last."""

        changed = "nothing"

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if changed := _CHANGE.match(sql):
                self.changed = changed[1]
            if not _END.match(sql):
                return super().execute(sql, *parameters)
            report.at(f"before COMMIT {self.changed}")
            cursor = super().execute(sql, *parameters)
            report.at(f"after COMMIT {self.changed}")
            return cursor

        def executemany(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if changed := _CHANGE.match(sql):
                self.changed = changed[1]
            return super().executemany(sql, *parameters)

    def connect(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = original(*arguments, **{"factory": Connection, **settings})
        return database

    sqlite3.connect = connect  # type: ignore[assignment]


def report_time(report: Report, clock: SharedClock) -> None:
    """From now on the time of this process is that of *clock*, and a wait is a boundary at which time passes."""

    def wait(seconds: float) -> None:
        report.at(f"wait {seconds:.3f}", waits=True)

    time.time = clock.now
    time.sleep = wait  # type: ignore[assignment]


def report_lines(report: Report, *, number: int, part: str) -> None:
    """From now on, the line *number* (from 1) that is run in a file with *part* in its path is a boundary."""
    left = number

    def in_function(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                report.at(f"line {Path(frame.f_code.co_filename).name}:{frame.f_lineno}", waits=True)
                return None
        return in_function

    def at_call(frame: FrameType, _: str, __: object) -> Any:
        return in_function if left > 0 and part in frame.f_code.co_filename else None

    sys.settrace(at_call)
