"""The real OpenCode plays whole turns against the scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from model_server.script import HttpFailure, call, say
from model_server.server import ModelServer, without_tools
from tests.model_server.agents import events, run_opencode

if TYPE_CHECKING:
    from tests.acceptance.agents.conftest import Desk


def test_a_turn_with_a_tool_call_that_writes_a_file(desk: Desk) -> None:
    command = "printf 'by the agent\\n' > made.txt && cat made.txt"
    script = [call("bash", command=command, description="Makes a file"), say("I wrote made.txt.")]
    with ModelServer(script, aside=without_tools, aside_answer=say("A title")) as server:
        done = run_opencode(server, "Make a file.", home=desk.home, workspace=desk.workspace)
    assert done.returncode == 0, done.stderr
    assert (desk.workspace / "made.txt").read_text() == "by the agent\n"
    shown = events(done.stdout)
    assert "I wrote made.txt." in json.dumps([event for event in shown if event["type"] == "text"])
    assert "by the agent" in json.dumps([event for event in shown if event["type"] == "tool_use"])

    first, second = server.turns
    assert {"bash", "edit", "write"} <= set(first.tools)
    assert first.said("Make a file.")
    assert second.tool_outputs == ("by the agent\n",)
    assert all(request.path == "/v1/responses" for request in server.requests)


def test_a_file_is_written_with_the_agents_own_tool(desk: Desk) -> None:
    target = desk.workspace / "made.txt"
    script = [call("write", filePath=str(target), content="whole\n"), say("Written.")]
    with ModelServer(script, aside=without_tools, aside_answer=say("A title")) as server:
        done = run_opencode(server, "Make a file.", home=desk.home, workspace=desk.workspace)
    assert done.returncode == 0, done.stderr
    assert target.read_text() == "whole\n"


def test_a_failure_of_the_provider_is_shown(desk: Desk) -> None:
    refused = HttpFailure(status=401, code="invalid_api_key", message="the key is wrong")
    with ModelServer([refused], aside=without_tools, aside_answer=say("A title")) as server:
        done = run_opencode(server, "Say something.", home=desk.home, workspace=desk.workspace)
    assert "the key is wrong" in json.dumps([event for event in events(done.stdout) if event["type"] == "error"])
