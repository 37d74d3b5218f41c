"""The scripted model itself: what it sends, what it keeps, and how it fails."""

from __future__ import annotations

import http.client
import json
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from model_server.script import (
    Answer,
    Garbage,
    HttpFailure,
    Message,
    Reasoning,
    ResponseFailure,
    ToolCall,
    Usage,
    call,
    plan,
    say,
)
from model_server.server import ModelServer, ScriptError, without_tools

if TYPE_CHECKING:
    from model_server.script import Json


TIMEOUT = 60


def post(server: ModelServer, body: Json, path: str = "/responses") -> tuple[http.client.HTTPResponse, bytes]:
    """One request; its response and the bytes of it."""
    url = urlsplit(server.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT)
    try:
        connection.request("POST", url.path + path, json.dumps(body), {"Content-Type": "application/json"})
        with connection.getresponse() as response:
            return response, response.read()
    finally:
        connection.close()


def stream(content: bytes) -> list[dict[str, Json]]:
    """The events in a stream, each of which names itself twice."""
    events = []
    for block in content.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def test_an_answer_is_a_numbered_stream_from_created_to_completed() -> None:
    answer = Answer(
        items=(Reasoning(summary="Why"), Message(text="abcdef", piece=4), ToolCall(name="run", arguments={"x": 1})),
        usage=Usage(input=7, output=3, cached=2, reasoning=1),
    )
    with ModelServer([answer]) as server:
        response, content = post(server, {"model": "some-model", "input": []})
    assert response.headers["Content-Type"] == "text/event-stream"
    events = stream(content)
    kinds = [str(event["type"]) for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 3
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert deltas == ["abcd", "ef"]
    final = events[-1]["response"]
    assert isinstance(final, dict)
    assert final["model"] == "some-model"
    assert final["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 10,
    }
    output = final["output"]
    assert isinstance(output, list)
    assert [item["type"] for item in output if isinstance(item, dict)] == ["reasoning", "message", "function_call"]
    assert json.loads(str(output[2]["arguments"])) == {"x": 1}


def test_requests_are_kept_as_they_came() -> None:
    outputs: Json = [
        {"type": "message", "role": "user", "content": "Größe"},
        {"type": "function_call_output", "call_id": "1", "output": "one"},
        {"type": "function_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "two"}]},
    ]
    body: Json = {"input": outputs, "tools": [{"type": "function", "name": "run"}, {"type": "web_search"}]}
    with ModelServer([say("one"), say("two")]) as server:
        post(server, {"input": []})
        post(server, body)
    assert [request.body.get("input") for request in server.turns] == [[], outputs]
    assert server.last.tools == ("run",)
    assert server.last.tool_outputs == ("one", '[{"type": "input_text", "text": "two"}]')
    assert server.last.said("Größe")
    assert not server.turns[0].said("Größe")


@pytest.mark.parametrize(
    ("failure", "header"),
    [
        (HttpFailure(status=429, code="rate_limit_exceeded", message="slow down", retry_after=1.5), "1.5"),
        (HttpFailure(status=500, code="server_error", message="broken"), None),
    ],
)
def test_a_status_instead_of_a_stream(failure: HttpFailure, header: str | None) -> None:
    with ModelServer([failure]) as server:
        response, content = post(server, {"input": []})
    assert response.status == failure.status
    assert response.headers["Retry-After"] == header
    assert json.loads(content)["error"]["message"] == failure.message


def test_a_response_that_fails_and_one_that_is_incomplete() -> None:
    with ModelServer(
        [
            ResponseFailure(code="server_error", message="broken"),
            Answer(items=(Message(text="half"),), incomplete="max_output_tokens"),
        ]
    ) as server:
        failed = stream(post(server, {"input": []})[1])
        incomplete = stream(post(server, {"input": []})[1])
    assert [event["type"] for event in failed] == ["response.created", "response.failed"]
    assert failed[-1]["response"]["error"] == {"code": "server_error", "message": "broken"}  # type: ignore[call-overload,index]
    assert incomplete[-1]["type"] == "response.incomplete"


def test_a_stream_that_is_cut_has_no_end() -> None:
    cut_short = Answer(items=(Message(text="abc"),), cut_after=3)
    with ModelServer([cut_short]) as server, pytest.raises(http.client.IncompleteRead) as cut:
        post(server, {"input": []})
    assert len(stream(cut.value.partial)) == 3


def test_a_stream_that_hangs_ends_with_the_server() -> None:
    server = ModelServer([Answer(items=(Message(text="abc"),), hang_after=1)])
    with server:
        url = urlsplit(server.url)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT)
        connection.request("POST", f"{url.path}/responses", "{}")
        response = connection.getresponse()
        assert response.read1().startswith(b"event: response.created")
    with pytest.raises(http.client.IncompleteRead):
        response.read()
    response.close()
    connection.close()


def test_pace_is_kept() -> None:
    with ModelServer([Answer(items=(Message(text="abcd", piece=1),), pace=0.02)]) as server:
        began = time.monotonic()
        events = stream(post(server, {"input": []})[1])
    assert time.monotonic() - began >= 0.02 * len(events)


def test_a_turn_can_depend_on_its_request() -> None:
    with ModelServer([lambda request: say("hello" if request.said("hi") else "what?")]) as server:
        assert b"hello" in post(server, {"input": [{"type": "message", "content": "hi"}]})[1]
    assert server.last.turn == say("hello")


def test_garbage_is_sent_as_it_is() -> None:
    with ModelServer([Garbage(content=b"\xff\x00no event")]) as server:
        assert post(server, {"input": []})[1] == b"\xff\x00no event"


def test_requests_aside_take_no_turn() -> None:
    with ModelServer([call("run")], aside=without_tools, aside_answer=say("a title")) as server:
        aside = post(server, {"input": []})[1]
        turn = post(server, {"input": [], "tools": [{"name": "run"}]})[1]
    assert b"a title" in aside
    assert b"function_call" in turn
    assert len(server.turns) == 1
    assert len(server.requests) == 2


def test_a_request_beyond_the_script_is_refused_and_an_error_at_the_end() -> None:
    with pytest.raises(ScriptError, match="1 requests came after the end"), ModelServer([]) as server:
        assert post(server, {"input": []})[0].status == 400


def test_turns_that_are_left_are_an_error_at_the_end() -> None:
    with pytest.raises(ScriptError, match="ended with 1 turns left"), ModelServer([say("never asked for")]):
        pass


def test_an_error_of_the_test_itself_is_not_replaced() -> None:
    with pytest.raises(ZeroDivisionError), ModelServer([say("never asked for")]):
        _ = 1 / 0


def test_what_is_no_response_request_is_refused() -> None:
    with ModelServer([]) as server:
        assert post(server, ["a list"])[0].status == 404
        assert post(server, {"input": []}, "/completions")[0].status == 404
        assert not server.requests


def test_a_plan_stands_in_its_tags() -> None:
    item = plan("\n1. Look.\n").items[0]
    assert item == Message(text="<proposed_plan>\n1. Look.\n</proposed_plan>")
