"""A model provider on loopback that plays a script and keeps what it was asked.

It speaks ``POST /v1/responses`` of the OpenAI API as server-sent events and ``GET /v1/models``. An agent that is
pointed at it runs for real: it parses the stream, runs its tools, and sends their output back.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from model_server.events import encode, stream_events
from model_server.script import Answer, Garbage, HttpFailure, Json, ResponseFailure, Turn, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

LARGEST_REQUEST = 64 << 20
MODEL = "scripted"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it came in. ``turn`` is what it was answered with, None when the script had no answer left."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Json]
    turn: Turn | None
    aside: bool

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the function tools that the agent offers."""
        tools = self.body.get("tools")
        return tuple(
            str(tool["name"])
            for tool in (tools if isinstance(tools, list) else [])
            if isinstance(tool, dict) and "name" in tool
        )

    @property
    def tool_outputs(self) -> tuple[str, ...]:
        """What the tools returned so far, in the order of the conversation."""
        return tuple(
            output if isinstance(output := item.get("output"), str) else json.dumps(output)
            for item in self.input
            if item.get("type") == "function_call_output"
        )

    @property
    def input(self) -> tuple[Mapping[str, Json], ...]:
        """The items of the conversation."""
        items = self.body.get("input")
        return tuple(item for item in (items if isinstance(items, list) else []) if isinstance(item, dict))

    def said(self, text: str) -> bool:
        """Whether the conversation holds ``text`` anywhere."""
        return text in json.dumps(self.body.get("input"), ensure_ascii=False)


class ScriptError(AssertionError):
    """The agent asked more often, or less often, than the script says."""


def never(request: Mapping[str, Json]) -> bool:
    """No request is aside of the script."""
    del request
    return False


def without_tools(request: Mapping[str, Json]) -> bool:
    """A request that offers no tools is not part of the turn: an agent asks for a title that way."""
    return not request.get("tools")


class ModelServer:
    """Plays ``script``, one turn a request, in the order of the requests. A turn may be a function of its request.

    Requests for which ``aside`` holds are answered with ``aside_answer`` and take no turn. Use it as a context manager;
    at its end it is an error when turns are left or requests were too many, unless the body raised already.
    """

    def __init__(
        self,
        script: Sequence[Turn | Callable[[Request], Turn]],
        *,
        aside: Callable[[Mapping[str, Json]], bool] = never,
        aside_answer: Answer | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self._left = list(script)
        self._aside = aside
        self._aside_answer = aside_answer or say("aside")
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._http = _Server(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="model-server", daemon=True)

    @property
    def url(self) -> str:
        """The base URL that an agent is configured with."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def turns(self) -> tuple[Request, ...]:
        """The requests that took a turn of the script."""
        return tuple(request for request in self.requests if not request.aside)

    @property
    def last(self) -> Request:
        """The last request that took a turn."""
        return self.turns[-1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises ScriptError when the script was not played exactly."""
        beyond = [request for request in self.requests if request.turn is None]
        if beyond:
            last = json.dumps(beyond[0].input[-1:], ensure_ascii=False)[:400]
            raise ScriptError(f"{len(beyond)} requests came after the end of the script, the first with {last}")
        if self._left:
            raise ScriptError(f"the agent ended with {len(self._left)} turns left, the next: {self._left[0]}")

    def next_turn(self, path: str, headers: Mapping[str, str], request: Mapping[str, Json]) -> tuple[int, Turn]:
        """Records a request; its number and what it is answered with."""
        with self._lock:
            aside = self._aside(request)
            asked = Request(path=path, headers=headers, body=request, turn=None, aside=aside)
            next_one = self._aside_answer if aside else self._left.pop(0) if self._left else None
            turn = next_one(asked) if callable(next_one) else next_one
            self.requests.append(replace(asked, turn=turn))
            number = len(self.requests)
        return number, turn or HttpFailure(status=400, code="script_over", message="the script has no turn left")

    def wait(self, seconds: float | None) -> bool:
        """Sleeps, or until the server stops; whether it stops."""
        return self._stopping.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Says nothing: what was asked is in ``requests``."""

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            models: Json = {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "script"}]}
            self._send_json(HTTPStatus.OK, models)
        else:
            self._send_failure(HttpFailure(status=404, code="not_found", message=f"no {self.path} here"))

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        if length > LARGEST_REQUEST:
            self._send_failure(HttpFailure(status=413, code="too_large", message="the request is too large"))
            return
        request = self._read_json(self.rfile.read(length))
        if request is None or not self.path.endswith("/responses"):
            self._send_failure(HttpFailure(status=404, code="not_found", message=f"no such call: {self.path}"))
            return
        number, turn = self.server.model.next_turn(self.path, dict(self.headers.items()), request)
        if isinstance(turn, HttpFailure):
            self._send_failure(turn)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self._send_stream(turn, f"resp_{number}", str(request.get("model", MODEL)))
        except ConnectionError:
            self.close_connection = True  # the agent went away, as it does when it is interrupted

    @staticmethod
    def _read_json(content: bytes) -> Mapping[str, Json] | None:
        try:
            request = json.loads(content)
        except ValueError:
            return None
        return request if isinstance(request, dict) else None

    def _send_stream(self, turn: Answer | ResponseFailure | Garbage, response: str, model: str) -> None:
        if isinstance(turn, Garbage):
            self._chunk(turn.content)
        else:
            for number, event in enumerate(stream_events(turn, response=response, model=model)):
                if isinstance(turn, Answer) and not self._go_on(turn, number):
                    self.close_connection = True
                    return
                self._chunk(encode(event))
        self.wfile.write(b"0\r\n\r\n")

    def _go_on(self, turn: Answer, number: int) -> bool:
        """Waits as the turn says; False when the connection is to break here."""
        if turn.hang_after is not None and number >= turn.hang_after:
            self.server.model.wait(None)
            return False
        if turn.cut_after is not None and number >= turn.cut_after:
            return False
        return not (turn.pace and self.server.model.wait(turn.pace))

    def _chunk(self, content: bytes) -> None:
        if content:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
            self.wfile.flush()

    def _send_failure(self, failure: HttpFailure) -> None:
        retry = {} if failure.retry_after is None else {"Retry-After": f"{failure.retry_after:g}"}
        error: Json = {"code": failure.code, "message": failure.message, "type": failure.code}
        self._send_json(failure.status, {"error": error}, retry)

    def _send_json(self, status: int, content: Json, headers: Mapping[str, str] | None = None) -> None:
        encoded = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(encoded)
