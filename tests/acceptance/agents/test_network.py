"""Real agents do their task with nothing but the model's endpoint in reach, and do not learn the name of their job."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from model_server.script import call, say, shell
from model_server.server import ModelServer, without_tools
from tests.model_server.agents import codex_words, environment, opencode_variables, opencode_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.acceptance.agents.conftest import Desk

ENTRY = Path(__file__).resolve().parents[3] / "scripts" / "agent_sandbox.py"
MODEL = "model.example.com"
JOB = "evaluate suite.profile.local.a-telling-case"
TASK = "printf 'the task is done' > made.txt && cat made.txt"
# How an agent would look for its own job: as it was told, past the proxy, by UDP, and at the machine's metadata.
LOOKING = """
curl -sS --max-time 60 {api}/actions/jobs/1
curl -sS --max-time 60 --noproxy '*' {api}/actions/jobs/1
curl -sS --max-time 60 -x '' {local}/actions/jobs/1
python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"?", ("192.0.2.1", 53))'
curl -sS --max-time 2 http://169.254.169.254/latest/meta-data/
true
"""


class Api(http.server.BaseHTTPRequestHandler):
    """Answers as GitHub's API does: with the job's name."""

    def do_GET(self) -> None:
        content = json.dumps({"name": JOB}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def api() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def run(words: Sequence[str], options: Sequence[str], variables: dict[str, str], desk: Desk) -> str:
    """Runs an agent to its end, in the sandbox with *options*, if there are some."""
    prefix = [sys.executable, "-I", "-S", str(ENTRY), "--quiet", "--home", str(desk.home)]
    prefix += ["--workspace", str(desk.workspace), *options, "--"]
    done = subprocess.run(
        [*(prefix if options else []), *words],
        env=variables,
        cwd=desk.workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def play(provider: str, desk: Desk, api_port: int, *, by_name: bool, allowed: Sequence[str] | None) -> tuple[str, Path]:
    """What the model's script found out, and the report of the launch; *allowed*: hosts beside the model's."""
    local = f"http://127.0.0.1:{api_port}"
    # Outside the sandbox the API is found where the test has put it.
    looking = LOOKING.format(api="http://api.github.com" if allowed is not None else local, local=local)
    make = shell if provider == "codex" else lambda text: call("bash", command=text, description="Does it")
    script = [make(f"{{ {looking} }} 2>&1"), make(TASK), say("I did the task.")]
    report = desk.home.parent / "report.json"
    with ModelServer(script, aside=without_tools, aside_answer=say("A title")) as server:
        port = server.url.rpartition(":")[2].partition("/")[0]
        variables = {**environment(desk.home), "TMPDIR": str(desk.workspace)}
        words = opencode_words("Do the task.")
        if provider == "codex":
            bypass = ["--dangerously-bypass-approvals-and-sandbox"]
            words = codex_words(server, "Do the task.", workspace=desk.workspace, more=bypass)
        else:
            variables |= opencode_variables(server)
        options: list[str] = []
        if allowed is not None:
            model = f"{MODEL}:80=127.0.0.1:{port}" if by_name else f"127.0.0.1:{port}"
            options = ["--report", str(report), "--network", ",".join([model, *allowed])]
        if by_name:
            found, there = f"127.0.0.1:{port}", f"{MODEL}:80"
            words = [word.replace(found, there) for word in words]
            variables = {name: value.replace(found, there) for name, value in variables.items()}
        run(words, options, variables, desk)
        first = server.last.tool_outputs
    assert "the task is done" in first[1]
    assert (desk.workspace / "made.txt").read_text() == "the task is done"
    return first[0], report


@pytest.mark.parametrize("provider", ["codex", "opencode"])
def test_with_an_open_network_an_agent_reads_the_name_of_its_job(provider: str, desk: Desk) -> None:
    with api() as port:
        found, _ = play(provider, desk, port, by_name=False, allowed=None)
    assert found.count(JOB) == 3


@pytest.mark.parametrize(
    ("provider", "by_name"),
    [("codex", True), ("opencode", True), ("codex", False)],
    ids=["codex", "opencode", "codex-forwarded"],
)
def test_with_the_model_alone_in_reach_it_does_its_task_and_reads_nothing(
    provider: str, by_name: bool, desk: Desk
) -> None:
    with api() as port:
        found, report = play(provider, desk, port, by_name=by_name, allowed=[])
    assert JOB not in found
    assert "api.github.com:80 is refused: it is not among the allowed hosts" in found
    assert "Could not resolve host: api.github.com" in found
    assert "Network is unreachable" in found
    assert "Failed to connect to 127.0.0.1" in found or "Couldn't connect to server" in found
    told = {entry["host"]: entry for entry in json.loads(report.read_text())["asked"]}
    assert not told[MODEL if by_name else "127.0.0.1"]["refused"]
    assert told["169.254.169.254"]["refused"]


def test_the_api_is_found_where_it_is_allowed(desk: Desk) -> None:
    """Or the test before could not fail."""
    with api() as port:
        found, report = play("codex", desk, port, by_name=False, allowed=[f"api.github.com:80=127.0.0.1:{port}"])
    assert found.count(JOB) == 1
    assert "the agent can ask GitHub for the name of its own job" in report.read_text()
