"""Turns as events of the OpenAI Responses API, and the events as bytes of a server-sent stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from model_server.script import Answer, Item, Json, Message, Reasoning, ResponseFailure, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

Event: TypeAlias = "dict[str, Json]"
CREATED_AT = 1_700_000_000


def stream_events(turn: Answer | ResponseFailure, *, response: str, model: str) -> Iterator[Event]:
    """The events of one response called ``response``, numbered as the API numbers them."""
    bodies = failed(turn, response, model) if isinstance(turn, ResponseFailure) else answered(turn, response, model)
    for number, event in enumerate(bodies):
        yield {**event, "sequence_number": number}


def encode(event: Event) -> bytes:
    """One event as server-sent bytes."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def body(response: str, model: str, status: str, **more: Json) -> dict[str, Json]:
    """The response object that opens and closes a stream."""
    return {
        "id": response,
        "object": "response",
        "created_at": CREATED_AT,
        "model": model,
        "status": status,
        "output": [],
        **more,
    }


def failed(turn: ResponseFailure, response: str, model: str) -> Iterator[Event]:
    yield {"type": "response.created", "response": body(response, model, "in_progress")}
    error: Json = {"code": turn.code, "message": turn.message}
    yield {"type": "response.failed", "response": body(response, model, "failed", error=error)}


def answered(turn: Answer, response: str, model: str) -> Iterator[Event]:
    yield {"type": "response.created", "response": body(response, model, "in_progress")}
    finished: list[Json] = []
    for index, item in enumerate(turn.items):
        identity = f"{response}_item_{index}"
        yield from item_events(item, identity, index)
        finished.append(item_body(item, identity, "completed"))
    usage = usage_body(turn.usage)
    if turn.incomplete:
        details: Json = {"reason": turn.incomplete}
        final = body(response, model, "incomplete", usage=usage, incomplete_details=details)
        yield {"type": "response.incomplete", "response": {**final, "output": finished}}
        return
    final = body(response, model, "completed", usage=usage)
    yield {"type": "response.completed", "response": {**final, "output": finished}}


def usage_body(usage: Usage) -> dict[str, Json]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def item_events(item: Item, identity: str, index: int) -> Iterator[Event]:
    """An output item from ``added`` to ``done``, with its deltas."""
    place: Event = {"item_id": identity, "output_index": index}
    yield {
        "type": "response.output_item.added",
        "output_index": index,
        "item": item_body(item, identity, "in_progress"),
    }
    if isinstance(item, Message):
        part: Event = {**place, "content_index": 0}
        yield {**part, "type": "response.content_part.added", "part": text_part("")}
        for start in range(0, len(item.text), item.piece):
            yield {**part, "type": "response.output_text.delta", "delta": item.text[start : start + item.piece]}
        yield {**part, "type": "response.output_text.done", "text": item.text}
        yield {**part, "type": "response.content_part.done", "part": text_part(item.text)}
    elif isinstance(item, Reasoning):
        part = {**place, "summary_index": 0}
        yield {**part, "type": "response.reasoning_summary_part.added", "part": summary_part("")}
        yield {**part, "type": "response.reasoning_summary_text.delta", "delta": item.summary}
        yield {**part, "type": "response.reasoning_summary_text.done", "text": item.summary}
        yield {**part, "type": "response.reasoning_summary_part.done", "part": summary_part(item.summary)}
    else:
        yield {**place, "type": "response.function_call_arguments.delta", "delta": arguments(item)}
        yield {**place, "type": "response.function_call_arguments.done", "arguments": arguments(item)}
    yield {
        "type": "response.output_item.done",
        "output_index": index,
        "item": item_body(item, identity, "completed"),
    }


def item_body(item: Item, identity: str, status: str) -> dict[str, Json]:
    """The item as it stands when it is ``in_progress`` (still empty) or ``completed``."""
    done = status == "completed"
    if isinstance(item, Message):
        content: list[Json] = [text_part(item.text)] if done else []
        return {"type": "message", "id": identity, "role": "assistant", "status": status, "content": content}
    if isinstance(item, Reasoning):
        summary: list[Json] = [summary_part(item.summary)] if done else []
        return {"type": "reasoning", "id": identity, "summary": summary}
    return {
        "type": "function_call",
        "id": identity,
        "call_id": call_id(identity),
        "name": item.name,
        "arguments": arguments(item) if done else "",
        "status": status,
    }


def call_id(identity: str) -> str:
    """The number by which the agent returns a tool's output."""
    return f"call_{identity}"


def arguments(item: ToolCall) -> str:
    return json.dumps(item.arguments) if item.raw is None else item.raw


def text_part(text: str) -> dict[str, Json]:
    return {"type": "output_text", "text": text, "annotations": []}


def summary_part(text: str) -> dict[str, Json]:
    return {"type": "summary_text", "text": text}
