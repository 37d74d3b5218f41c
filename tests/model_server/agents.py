"""Starts the real agents against a scripted model: offline, without key or login, with nothing of this user's own."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

from model_server.server import MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from model_server.script import Json
    from model_server.server import ModelServer

MODULES = Path(__file__).resolve().parent.parent / "node" / "node_modules"
CODEX = MODULES / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
OPENCODE = MODULES / "opencode-linux-x64/bin/opencode"
TIMEOUT = 120.0


def environment(home: Path) -> dict[str, str]:
    """All that an agent gets to know of the machine: where programs are, and a home of its own."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "CODEX_HOME": str(home), "LANG": "C.UTF-8"}


def codex_settings(server: ModelServer, writable: Sequence[Path] = ()) -> list[str]:
    """Codex's ``-c`` options: the scripted provider, and a profile that reads everything and writes ``writable``.

    Codex mounts a private ``/tmp`` and would not find its own helper there: home and workspace must lie elsewhere.
    """
    provider = f"model_providers.{MODEL}"
    filesystem = ", ".join(
        [json.dumps(":root") + '="read"', *(f'{json.dumps(str(path))}="write"' for path in writable)]
    )
    values = {
        "model": json.dumps(MODEL),
        "model_provider": json.dumps(MODEL),
        f"{provider}.name": json.dumps(MODEL),
        f"{provider}.base_url": json.dumps(server.url),
        f"{provider}.wire_api": '"responses"',
        f"{provider}.request_max_retries": "0",
        f"{provider}.stream_max_retries": "1",
        "default_permissions": '"scripted"',
        "permissions.scripted.filesystem": f"{{{filesystem}}}",
        "permissions.scripted.network": "{enabled=true}",
    }
    return [word for name, value in values.items() for word in ("-c", f"{name}={value}")]


def codex_words(
    server: ModelServer, prompt: str, *, workspace: Path, writable: Sequence[Path] = (), more: Sequence[str] = ()
) -> list[str]:
    """The words of ``codex exec --json`` with ``more`` options."""
    command = [str(CODEX), "exec", "--json", "--skip-git-repo-check", "-C", str(workspace)]
    return [*command, *codex_settings(server, writable), *more, prompt]


def run_codex(
    server: ModelServer, prompt: str, *, home: Path, workspace: Path, writable: Sequence[Path] = ()
) -> subprocess.CompletedProcess[str]:
    """``codex exec --json``: one turn from ``prompt`` to the end."""
    return subprocess.run(
        codex_words(server, prompt, workspace=workspace, writable=writable),
        env=environment(home),
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def run_opencode(server: ModelServer, prompt: str, *, home: Path, workspace: Path) -> subprocess.CompletedProcess[str]:
    """``opencode run --format json``: one turn from ``prompt`` to the end."""
    return subprocess.run(
        opencode_words(prompt),
        env={**environment(home), **opencode_variables(server)},
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def opencode_words(prompt: str) -> list[str]:
    """The words of ``opencode run --format json``."""
    return [str(OPENCODE), "run", "--format", "json", "--model", f"{MODEL}/{MODEL}", prompt]


def opencode_variables(server: ModelServer) -> dict[str, str]:
    """What tells OpenCode of the scripted provider.

    ``@ai-sdk/openai`` is part of OpenCode's own binary, so that nothing is downloaded for the provider.
    """
    model = f"{MODEL}/{MODEL}"
    provider: Json = {
        "npm": "@ai-sdk/openai",
        "options": {"baseURL": server.url, "apiKey": "none"},
        "models": {MODEL: {"tool_call": True}},
    }
    configuration: Json = {
        "share": "disabled",
        "autoupdate": False,
        "model": model,
        "small_model": model,
        "enabled_providers": [MODEL],
        "provider": {MODEL: provider},
        "permission": {"bash": "allow", "edit": "allow", "external_directory": "allow"},
    }
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {
        **{f"OPENCODE_DISABLE_{switch}": "1" for switch in switches},
        "OPENCODE_CONFIG_CONTENT": json.dumps(configuration),
    }


def events(output: str) -> list[dict[str, Json]]:
    """The JSON lines that an agent wrote."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


class CodexAppServer:
    """``codex app-server``: JSON-RPC, one message a line, over its standard streams.

    Notifications and requests of the server wait in the order in which they came; ``until`` reads up to one of them.
    """

    def __init__(self, server: ModelServer, *, home: Path, workspace: Path, writable: Sequence[Path] = ()) -> None:
        self.workspace = workspace
        self.seen: list[dict[str, Json]] = []
        self._number = 0
        self._process = subprocess.Popen(
            [str(CODEX), *codex_settings(server, writable), "app-server"],
            env=environment(home),
            cwd=workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._messages: queue.Queue[dict[str, Json]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        self.request("initialize", clientInfo={"name": "tests", "version": "1"}, capabilities={"experimentalApi": True})
        self._send({"method": "initialized"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def request(self, method: str, **parameters: Json) -> Mapping[str, Json]:
        """Sends a request and waits for its result; what else comes meanwhile stays in ``seen``."""
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": parameters})
        while True:
            message = self._next()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                result = message["result"]
                assert isinstance(result, dict)
                return result
            self.seen.append(message)

    def answer(self, request: Mapping[str, Json], result: Json) -> None:
        """Answers a request of the server."""
        self._send({"id": request["id"], "result": result})

    def start_thread(self) -> str:
        """A new thread in the workspace; its id."""
        started = self.request(
            "thread/start",
            cwd=str(self.workspace),
            permissions="scripted",
            approvalPolicy="never",
            experimentalRawEvents=True,
        )
        thread = started["thread"]
        assert isinstance(thread, dict)
        return str(thread["id"])

    def start_turn(self, thread: str, text: str, *, mode: str = "default") -> str:
        """A turn in ``mode`` (``default`` or ``plan``); its id."""
        started = self.request(
            "turn/start",
            threadId=thread,
            permissions="scripted",
            input=[{"type": "text", "text": text}],
            collaborationMode={"mode": mode, "settings": {"model": MODEL}},
        )
        turn = started["turn"]
        assert isinstance(turn, dict)
        return str(turn["id"])

    def until(self, method: str) -> Mapping[str, Json]:
        """Reads up to the next message of this method, which may have come already."""
        for position, message in enumerate(self.seen):
            if message.get("method") == method:
                return self.seen.pop(position)
        while True:
            message = self._next()
            if message.get("method") == method:
                return message
            self.seen.append(message)

    def _send(self, message: Mapping[str, Json]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._messages.put(json.loads(line))
        self._messages.put({"method": "closed"})

    def _next(self) -> dict[str, Json]:
        message = self._messages.get(timeout=TIMEOUT)
        if message.get("method") == "closed":
            raise AssertionError(f"app-server ended, after {[one.get('method') for one in self.seen]}")
        return message
