"""The real OpenCode plays whole turns against the scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from model_server.script import HttpFailure, call, say
from model_server.server import ModelServer, without_tools
from tests.model_server.agents import events, run_opencode

if TYPE_CHECKING:
    from tests.acceptance.agents.conftest import Desk


def test_a_turn_with_tool_calls_that_write_files(desk: Desk) -> None:
    command = "printf 'by the shell\\n' > made.txt && cat made.txt"
    script = [
        call("bash", command=command, description="Makes a file"),
        call("write", filePath=str(desk.workspace / "written.txt"), content="by the tool\n"),
        say("I wrote two files."),
    ]
    with ModelServer(script, aside=without_tools, aside_answer=say("A title")) as server:
        done = run_opencode(server, "Make two files.", home=desk.home, workspace=desk.workspace)
    assert done.returncode == 0, done.stderr
    assert (desk.workspace / "made.txt").read_text() == "by the shell\n"
    assert (desk.workspace / "written.txt").read_text() == "by the tool\n"
    shown = events(done.stdout)
    assert "I wrote two files." in json.dumps([event for event in shown if event["type"] == "text"])
    assert "by the shell" in json.dumps([event for event in shown if event["type"] == "tool_use"])

    first, second, third = server.turns
    assert {"bash", "edit", "write"} <= set(first.tools)
    assert first.said("Make two files.")
    assert second.tool_outputs == ("by the shell\n",)
    assert len(third.tool_outputs) == 2
    assert all(request.path == "/v1/responses" for request in server.requests)


def test_a_failure_of_the_provider_is_shown(desk: Desk) -> None:
    refused = HttpFailure(status=401, code="invalid_api_key", message="the key is wrong")
    with ModelServer([refused], aside=without_tools, aside_answer=say("A title")) as server:
        done = run_opencode(server, "Say something.", home=desk.home, workspace=desk.workspace)
    assert "the key is wrong" in json.dumps([event for event in events(done.stdout) if event["type"] == "error"])
