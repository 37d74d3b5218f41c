"""Tells the forms of an event stream apart and translates each line into :mod:`events`.

Four forms are known: Codex's ``exec --json``, its ``app-server`` (JSON-RPC, one message a line), its session files
(``$CODEX_HOME/sessions/…/rollout-*.jsonl``), and the generic form ``runner-e2e.agent-events/v1``. Lines of different
forms may stand in one file. Measured with Codex 0.160.0.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Final, TypeGuard

from runner_e2e.graders.events import (
    Answer,
    Event,
    FileChange,
    Header,
    Patch,
    Plan,
    Request,
    ShellText,
    Tool,
    Trouble,
    TurnEnd,
    TurnStart,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.graders.json_lines import JsonObject

__all__ = ["GENERIC_SCHEMA", "LONGEST_TEXT", "PIECES", "events_of", "patch_paths"]

GENERIC_SCHEMA: Final = "runner-e2e.agent-events/v1"
LONGEST_TEXT: Final = 1 << 20

# Pieces of what comes whole later: most of a long stream.
PIECES: Final = re.compile(rb'\{\s*"method"\s*:\s*"[^"\\]*[dD]elta"')

_EXITED = re.compile(r"^Process exited with code (-?\d{1,10})$", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID ", re.MULTILINE)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_SESSION_LINES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})


def events_of(message: JsonObject) -> Iterator[Event]:
    """The events in one line; none for a line that tells nothing or is of no known form."""
    kind = message.get("type")
    if "method" in message or (kind is None and ("error" in message or "result" in message)):
        yield from _app_server(message)
    elif isinstance(kind, str) and kind in _SESSION_LINES:
        yield from _session(kind, _object(message, "payload"))
    elif message.get("schema") == GENERIC_SCHEMA:
        yield Header(every_call=True, directory=_optional(message, "cwd"))
    elif isinstance(kind, str):
        yield from _exec(kind, message) if "." in kind or kind == "error" else _generic(kind, message)


def patch_paths(text: str) -> tuple[str, ...]:
    """The files that a patch in Codex's own form names."""
    return tuple(first or second for first, second in _PATCHED.findall(text[:LONGEST_TEXT]))


# --- codex exec --json


def _exec(kind: str, message: JsonObject) -> Iterator[Event]:
    if kind == "turn.started":
        yield TurnStart(turn="")
    elif kind == "turn.completed":
        yield TurnEnd(turn="")
    elif kind == "turn.failed":
        yield TurnEnd(turn="", problem=_text(_object(message, "error"), "message") or "the turn failed")
    elif kind == "error":
        yield Trouble(message=_text(message, "message"))
    elif kind in ("item.started", "item.completed"):
        item = _object(message, "item")
        yield from _item(item, f"item:{_text(item, 'id')}", done=kind == "item.completed")


def _item(item: JsonObject, key: str, *, done: bool) -> Iterator[Event]:
    """An item of ``exec`` (snake case) or of the app-server (camel case)."""
    kind = _text(item, "type").replace("_", "").lower()
    if kind == "commandexecution":
        yield Request(key=key, work=ShellText(text=_command(item.get("command")), directory=_directory(item)))
        if done:
            output = _text(item, "aggregated_output") or _text(item, "aggregatedOutput")
            code = _number(item, "exit_code", "exitCode")
            yield Answer(key=key, output=output, exit_code=code, running=False)
    elif kind == "filechange":
        yield from _file_change(item, done=done)
    elif kind in ("mcptoolcall", "dynamictoolcall"):
        yield Request(key=key, work=Tool(name=_text(item, "tool")))
        if done:
            yield Answer(key=key, output="")
    elif kind == "plan" and done:
        yield Plan(text=_text(item, "text"))
    elif kind == "error":
        yield Trouble(message=_text(item, "message"))
    elif kind == "agentmessage" and done:
        yield from _plans(_text(item, "text"))


def _file_change(item: JsonObject, *, done: bool) -> Iterator[Event]:
    outcome = {"completed": "written", "failed": "failed", "declined": "declined"}.get(_text(item, "status"))
    if done and outcome:
        changes = item.get("changes")
        paths = [_text(change, "path") for change in changes if isinstance(change, dict)] if _is_list(changes) else []
        if isinstance(changes, dict):
            paths = list(changes)
        yield FileChange(paths=tuple(paths), outcome=outcome)


# --- codex app-server


def _app_server(message: JsonObject) -> Iterator[Event]:
    method = message.get("method")
    if not isinstance(method, str):
        if "error" in message:
            yield Trouble(message=_text(_object(message, "error"), "message"))
        return
    parameters = _object(message, "params")
    turn = _object(parameters, "turn")
    if method == "turn/started":
        yield TurnStart(turn=_text(turn, "id"))
    elif method == "turn/completed":
        status = _text(turn, "status")
        reason = _text(_object(turn, "error"), "message") or f"the turn ended as {status or 'unknown'}"
        yield TurnEnd(turn=_text(turn, "id"), problem="" if status == "completed" else reason)
    elif method == "error":
        yield Trouble(message=_text(_object(parameters, "error"), "message"))
    elif method == "thread/started":
        yield Header(directory=_optional(_object(parameters, "thread"), "cwd"))
    elif method in ("item/started", "item/completed"):
        item = _object(parameters, "item")
        yield from _item(item, f"call:{_text(item, 'id')}", done=method == "item/completed")
    elif method == "rawResponseItem/completed":
        yield Header(every_call=True)
        yield from _response_item(_object(parameters, "item"))


# --- session file, and the raw items of the app-server


def _session(kind: str, payload: JsonObject) -> Iterator[Event]:
    inner = _text(payload, "type")
    if kind == "session_meta":
        yield Header(every_call=True, directory=_optional(payload, "cwd"))
    elif kind == "turn_context":
        yield Header(directory=_optional(payload, "cwd"))
    elif kind == "response_item":
        yield Header(every_call=True)
        yield from _response_item(payload)
    elif inner == "task_started":
        yield TurnStart(turn=_text(payload, "turn_id"))
    elif inner == "task_complete":
        yield TurnEnd(turn=_text(payload, "turn_id"))
    elif inner == "turn_aborted":
        yield TurnEnd(turn=_text(payload, "turn_id"), problem="the turn was interrupted")
    elif inner == "error":
        yield Trouble(message=_text(payload, "message"))
    elif inner == "item_completed":
        item = _object(payload, "item")
        yield from _item(item, f"call:{_text(item, 'id')}", done=True)


def _response_item(item: JsonObject) -> Iterator[Event]:
    kind = _text(item, "type")
    key = f"call:{_text(item, 'call_id')}"
    if kind == "function_call":
        yield Request(key=key, work=_function_call(item))
    elif kind == "local_shell_call":
        action = _object(item, "action")
        text = _command(action.get("command"))
        yield Request(key=key, work=ShellText(text=text, directory=_optional(action, "working_directory")))
    elif kind == "custom_tool_call":
        name = _text(item, "name")
        patch = name == "apply_patch"
        yield Request(key=key, work=Patch(paths=patch_paths(_text(item, "input"))) if patch else Tool(name=name))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield _tool_output(key, item.get("output"))
    elif kind == "message" and item.get("role") == "assistant":
        contents = item.get("content")
        for content in contents if _is_list(contents) else []:
            if isinstance(content, dict):
                yield from _plans(_text(content, "text"))


def _function_call(item: JsonObject) -> ShellText | Patch | Tool:
    name = _text(item, "name")
    try:
        decoded = json.loads(_text(item, "arguments"))
    except (ValueError, RecursionError):
        return Tool(name=name)
    arguments: JsonObject = decoded if isinstance(decoded, dict) else {}
    directory = _optional(arguments, "workdir")
    if name == "write_stdin":
        return ShellText(text=_text(arguments, "chars"), directory=directory)
    if name == "apply_patch":
        return Patch(paths=patch_paths(_text(arguments, "input") or _text(arguments, "patch")), directory=directory)
    command = arguments.get("cmd", arguments.get("command"))
    if name in ("exec_command", "shell", "shell_command", "container.exec", "local_shell") and command is not None:
        return ShellText(text=_command(command), directory=directory)
    return Tool(name=name)


def _tool_output(key: str, output: object) -> Answer:
    """What a tool gave the model: text with a head, a list of texts, or JSON with metadata (older tools)."""
    if isinstance(output, dict):
        output = output.get("content", output.get("output"))
    if isinstance(output, list):
        output = "".join(_text(piece, "text") for piece in output if isinstance(piece, dict))
    text = output if isinstance(output, str) else ""
    if text.startswith("{"):
        try:
            decoded = json.loads(text)
        except (ValueError, RecursionError):
            decoded = None
        if isinstance(decoded, dict) and isinstance(decoded.get("output"), str):
            code = _number(_object(decoded, "metadata"), "exit_code")
            return Answer(key=key, output=_bounded(decoded["output"]), exit_code=code)
    head, found, body = text.partition("\nOutput:\n")
    if not found:
        return Answer(key=key, output=_bounded(text))
    exited = _EXITED.search(head)
    return Answer(
        key=key,
        output=_bounded(body),
        exit_code=int(exited[1]) if exited else None,
        running=bool(_RUNNING.search(head)),
    )


# --- runner-e2e.agent-events/v1


def _generic(kind: str, message: JsonObject) -> Iterator[Event]:
    key = f"generic:{_text(message, 'id')}"
    if kind == "command":
        directory = _optional(message, "cwd")
        yield Request(key=key, work=ShellText(text=_command(message.get("command")), directory=directory))
        if "output" in message or "exit_code" in message:
            yield Answer(key=key, output=_text(message, "output"), exit_code=_number(message, "exit_code"))
    elif kind == "write":
        path = _text(message, "path")
        yield Request(key=key, work=Patch(paths=(path,), directory=_optional(message, "cwd")))
        if "outcome" in message:
            done = _text(message, "outcome") == "written"
            yield Answer(key=key, output=f"{path}: {_text(message, 'error')}", exit_code=0 if done else 1)
    elif kind == "tool":
        yield Request(key=key, work=Tool(name=_text(message, "name")))
        yield Answer(key=key, output="")
    elif kind == "start":
        yield TurnStart(turn=_text(message, "turn"))
    elif kind == "end":
        yield TurnEnd(turn=_text(message, "turn"), problem=_text(message, "problem"))
    elif kind == "trouble":
        yield Trouble(message=_text(message, "message"))
    elif kind == "plan":
        yield Plan(text=_text(message, "text"))


# --- fields of lines that nobody vouches for


def _plans(text: str) -> Iterator[Plan]:
    """The plans that a message proposes, in the tags by which Codex knows one."""
    _, *proposed = text.split("<proposed_plan>")
    for part in proposed:
        plan, closed, _ = part.partition("</proposed_plan>")
        if closed:
            yield Plan(text=plan.strip())


def _directory(item: JsonObject) -> str | None:
    directory = _optional(item, "cwd")
    return directory.removeprefix("file://") if directory else None


def _command(value: object) -> str:
    """A command line from a text or from an argument vector."""
    if isinstance(value, str):
        return _bounded(value)
    if _is_list(value):
        return _bounded(shlex.join(str(word) for word in value))
    return ""


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _object(values: JsonObject, name: str) -> JsonObject:
    value = values.get(name)
    return value if isinstance(value, dict) else {}


def _text(values: JsonObject, name: str) -> str:
    value = values.get(name)
    return _bounded(value) if isinstance(value, str) else ""


def _optional(values: JsonObject, name: str) -> str | None:
    return _text(values, name) or None


def _number(values: JsonObject, *names: str) -> int | None:
    for name in names:
        value = values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _bounded(text: str) -> str:
    """Head and tail of a text that is too long to keep."""
    if len(text) <= LONGEST_TEXT:
        return text
    return text[: LONGEST_TEXT // 2] + "\n…\n" + text[-LONGEST_TEXT // 2 :]
