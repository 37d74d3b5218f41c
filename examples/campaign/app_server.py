"""A client of ``codex app-server``: JSON-RPC, one message a line, over the standard streams of a process."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

SECONDS = 60.0
Message = dict[str, Any]


class AppServerError(Exception):
    """The app-server answered with an error, ended, or did not answer in time."""


class AppServer:
    """Starts *command* in *directory* and speaks with it; a context manager that ends it.

    Every message that comes is kept in the file *events*, a line each, for a grader; what the program prints beside is
    kept in *log*. Each wait ends after a minute.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        events: Path,
        log: Path,
    ) -> None:
        self._command, self._directory, self._environment = list(command), directory, dict(environment)
        self._events_path, self._log_path = events, log
        self._waiting: list[Message] = []
        self._number = 0
        self._messages: queue.Queue[Message | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name="app-server", daemon=True)

    def __enter__(self) -> Self:
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._reader.start()
        try:
            client = {"name": "runner-e2e", "version": "1"}
            self.request("initialize", clientInfo=client, capabilities={"experimentalApi": True})
            self._send({"method": "initialized"})
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def request(self, method: str, **parameters: object) -> Message:
        """Sends a request; its result. What else comes meanwhile waits for :meth:`until`."""
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": parameters})
        deadline = time.monotonic() + SECONDS
        while True:
            message = self._next(method, deadline)
            if message.get("id") != number or "method" in message:
                self._waiting.append(message)
            elif "error" in message:
                raise AppServerError(f"{method}: {message['error'].get('message')}")
            else:
                result: Message = message["result"]
                return result

    def until(self, *methods: str) -> Message:
        """The next notification or request of the server that is one of *methods*."""
        for position, message in enumerate(self._waiting):
            if message.get("method") in methods:
                return self._waiting.pop(position)
        deadline = time.monotonic() + SECONDS
        while True:
            message = self._next(" or ".join(methods), deadline)
            if message.get("method") in methods:
                return message
            self._waiting.append(message)

    def answer(self, request: Mapping[str, Any], result: object) -> None:
        """Answers a request of the server."""
        self._send({"id": request["id"], "result": result})

    def _send(self, message: Message) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise AppServerError(f"the app-server has ended; see {self._log_path}") from None

    def _next(self, what: str, deadline: float) -> Message:
        try:
            message = self._messages.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise AppServerError(f"no {what} within {SECONDS:g} s") from None
        if message is None:
            raise AppServerError(f"the app-server ended before {what}; see {self._log_path}")
        return message

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._events_path.open("wb") as events:
            for line in self._process.stdout:
                events.write(line)
                events.flush()
                self._messages.put(json.loads(line))
        self._messages.put(None)

    def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()  # the app-server ends by itself when nobody can ask it any more
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        if self._process.stdout is not None:
            self._process.stdout.close()
