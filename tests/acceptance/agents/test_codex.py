"""The real Codex plays whole turns against the scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from model_server.script import (
    Answer,
    Garbage,
    HttpFailure,
    Message,
    Question,
    Reasoning,
    ResponseFailure,
    ToolCall,
    Usage,
    ask,
    plan,
    say,
    shell,
)
from model_server.server import ModelServer
from tests.model_server.agents import CodexAppServer, events, run_codex

if TYPE_CHECKING:
    from model_server.script import Json, Turn
    from tests.acceptance.agents.conftest import Desk

WRITE = "printf 'by the agent\\n' > made.txt && cat made.txt"


def completed(output: str, kind: str) -> list[dict[str, Json]]:
    """The completed items of one type in Codex's JSON lines."""
    items = [event["item"] for event in events(output) if event["type"] == "item.completed"]
    return [item for item in items if isinstance(item, dict) and item["type"] == kind]


def test_a_turn_with_a_tool_call_that_writes_a_file(desk: Desk) -> None:
    script = [
        Answer(
            items=(Reasoning(summary="A file is wanted."), *shell(WRITE).items),
            usage=Usage(input=100, output=20, cached=60, reasoning=7),
        ),
        say("I wrote made.txt.", "It has one line."),
    ]
    with ModelServer(script) as server:
        done = run_codex(server, "Make a file.", home=desk.home, workspace=desk.workspace, writable=[desk.workspace])
    assert done.returncode == 0, done.stderr
    assert (desk.workspace / "made.txt").read_text() == "by the agent\n"
    assert [item["text"] for item in completed(done.stdout, "agent_message")] == [
        "I wrote made.txt.",
        "It has one line.",
    ]
    assert completed(done.stdout, "command_execution")[0]["exit_code"] == 0
    usage = events(done.stdout)[-1]["usage"]
    assert isinstance(usage, dict)
    assert (usage["input_tokens"], usage["cached_input_tokens"], usage["output_tokens"]) == (110, 60, 25)

    first, second = server.turns
    assert first.path == "/v1/responses"
    assert "exec_command" in first.tools
    assert first.said("Make a file.")
    assert first.tool_outputs == ()
    assert "by the agent" in second.tool_outputs[0]
    assert "Authorization" not in {name.title() for name in first.headers}


def test_a_write_that_the_profile_forbids_does_not_happen(desk: Desk) -> None:
    with ModelServer([shell(f"{WRITE}; echo rc=$?"), say("I could not.")]) as server:
        done = run_codex(server, "Make a file.", home=desk.home, workspace=desk.workspace)
    assert done.returncode == 0, done.stderr
    assert not (desk.workspace / "made.txt").exists()
    assert "Read-only file system" in server.last.tool_outputs[0]


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (HttpFailure(status=401, code="invalid_api_key", message="the key is wrong"), "401"),
        (HttpFailure(status=400, code="bad_request", message="the request is wrong"), "the request is wrong"),
        (ResponseFailure(code="invalid_prompt", message="the prompt is wrong"), "the prompt is wrong"),
    ],
    ids=["unauthorized", "bad-request", "response-failed"],
)
def test_a_failure_of_the_provider_fails_the_turn(desk: Desk, turn: Turn, words: str) -> None:
    # Codex asks once more after a 401, with whatever key it may have got meanwhile.
    script = [turn] * (2 if isinstance(turn, HttpFailure) and turn.status == 401 else 1)
    with ModelServer(script) as server:
        done = run_codex(server, "Say something.", home=desk.home, workspace=desk.workspace)
    assert done.returncode == 1
    failures = [event for event in events(done.stdout) if event["type"] == "turn.failed"]
    assert words in json.dumps(failures)


@pytest.mark.parametrize(
    "broken",
    [
        Answer(items=(Message(text="This answer breaks off in the middle of a sentence."),), cut_after=5),
        Garbage(content=b": no event at all\n\n"),
        Garbage(content=b"event: response.created\ndata: {not json\n\n"),
    ],
    ids=["cut", "empty", "not-json"],
)
def test_a_broken_stream_is_tried_again(desk: Desk, broken: Turn) -> None:
    with ModelServer([broken, say("Whole.")]) as server:
        done = run_codex(server, "Say something.", home=desk.home, workspace=desk.workspace)
    assert done.returncode == 0, done.stdout
    assert completed(done.stdout, "agent_message")[-1]["text"] == "Whole."
    assert len(server.turns) == 2


def test_a_slow_stream_is_read_to_its_end(desk: Desk) -> None:
    slow = Answer(items=(Message(text="One word after another.", piece=4),), pace=0.05)
    with ModelServer([slow]) as server:
        done = run_codex(server, "Say something.", home=desk.home, workspace=desk.workspace)
    assert completed(done.stdout, "agent_message")[-1]["text"] == "One word after another."


def test_arguments_that_are_no_json_come_back_as_the_tools_error(desk: Desk) -> None:
    broken = Answer(items=(ToolCall(name="exec_command", raw='{"cmd": '),))
    with ModelServer([broken, say("I see.")]) as server:
        done = run_codex(server, "Do something.", home=desk.home, workspace=desk.workspace)
    assert done.returncode == 0, done.stdout
    assert "failed to parse" in server.last.tool_outputs[0]


def test_a_plan_in_plan_mode(desk: Desk) -> None:
    with (
        ModelServer([plan("1. Look.\n2. Do nothing.")]) as server,
        CodexAppServer(server, home=desk.home, workspace=desk.workspace) as codex,
    ):
        codex.start_turn(codex.start_thread(), "Plan it.", mode="plan")
        codex.until("turn/completed")
        items = [message["params"] for message in codex.seen if message.get("method") == "item/completed"]
    plans = [
        item["item"]["text"]
        for item in items
        if isinstance(item, dict) and isinstance(item["item"], dict) and item["item"]["type"] == "plan"
    ]
    assert [str(text).strip() for text in plans] == ["1. Look.\n2. Do nothing."]


def test_a_question_is_answered(desk: Desk) -> None:
    question = Question(
        id="go_on", header="Go on", text="Shall I go on?", options=(("Yes", "Go on."), ("No", "Stop here."))
    )
    with (
        ModelServer([ask(question), plan("1. Go on.")]) as server,
        CodexAppServer(server, home=desk.home, workspace=desk.workspace) as codex,
    ):
        codex.start_turn(codex.start_thread(), "Plan it.", mode="plan")
        asked = codex.until("item/tool/requestUserInput")
        assert "Shall I go on?" in json.dumps(asked["params"])
        codex.answer(asked, {"answers": {"go_on": {"answers": ["Yes"]}}})
        codex.until("turn/completed")
    assert "Yes" in server.last.tool_outputs[0]


def test_a_turn_that_hangs_is_interrupted(desk: Desk) -> None:
    hanging = Answer(items=(Message(text="It begins and then it stops."),), hang_after=5)
    with (
        ModelServer([hanging]) as server,
        CodexAppServer(server, home=desk.home, workspace=desk.workspace) as codex,
    ):
        thread = codex.start_thread()
        turn = codex.start_turn(thread, "Say something.")
        codex.until("item/agentMessage/delta")
        codex.request("turn/interrupt", threadId=thread, turnId=turn)
        ended = codex.until("turn/completed")
    assert "interrupted" in json.dumps(ended["params"])
