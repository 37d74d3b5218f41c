"""Streams of events for tests: the generic form, and Codex's raw response items."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.graders.planning_read_only import Grade, grade_planning_read_only
from runner_e2e.graders.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.graders.workspace import Difference

RECORDED = Path(__file__).parent / "recorded"
WORKSPACE = "/home/agent/workspace"
REFUSAL = "/bin/bash: line 1: probe.txt: Read-only file system\n"
Json = dict[str, object]

START: Json = {"method": "turn/started", "params": {"turn": {"id": "turn-1"}}}
END: Json = {"method": "turn/completed", "params": {"turn": {"id": "turn-1", "status": "completed"}}}


def raw(**item: object) -> Json:
    return {"method": "rawResponseItem/completed", "params": {"item": item}}


def asked(command: str, key: str = "1", **arguments: object) -> Json:
    text = json.dumps({"cmd": command, **arguments})
    return raw(type="function_call", name="exec_command", call_id=key, arguments=text)


def answered(output: str, code: int | None, key: str = "1") -> Json:
    ended = "Process running with session ID 7" if code is None else f"Process exited with code {code}"
    return raw(type="function_call_output", call_id=key, output=f"Chunk ID: 1\n{ended}\nOutput:\n{output}")


def command(text: str, output: str, code: int | None, key: str = "1") -> list[Json]:
    return [asked(text, key), answered(output, code, key)]


def turn(*messages: Json) -> list[Json]:
    return [START, *messages, END]


def lines(messages: Iterable[Json]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def grade_bytes(
    *contents: bytes,
    workspace: str | None = WORKSPACE,
    probe: str | None = None,
    differences: tuple[Difference, ...] | None = None,
) -> Grade:
    transcript = Transcript(workspace=workspace)
    for content in contents:
        transcript.read(io.BytesIO(content), "events.jsonl")
    return grade_planning_read_only(transcript, probe=probe, differences=differences)


def grade(
    *messages: Json,
    workspace: str | None = WORKSPACE,
    probe: str | None = None,
    differences: tuple[Difference, ...] | None = None,
) -> Grade:
    return grade_bytes(lines(messages), workspace=workspace, probe=probe, differences=differences)


def recorded(*names: str, differences: tuple[Difference, ...] | None = None) -> Grade:
    return grade_bytes(*((RECORDED / name).read_bytes() for name in names), differences=differences)
