"""What a scripted model says: answers, and every way in which an answer can fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


@dataclass(frozen=True, kw_only=True)
class Message:
    """Text for the user, streamed in pieces of ``piece`` characters."""

    text: str
    piece: int = 16


@dataclass(frozen=True, kw_only=True)
class Reasoning:
    """A summary of what the model thought."""

    summary: str


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call of a function tool. ``raw`` replaces the encoded arguments, for a model that writes broken JSON."""

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    raw: str | None = None


Item: TypeAlias = Message | Reasoning | ToolCall


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens, as the provider bills them; ``cached`` is a part of ``input``, ``reasoning`` one of ``output``."""

    input: int = 10
    output: int = 5
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One whole response.

    ``pace``: seconds before each event. ``cut_after``: the connection breaks after this many events, None never;
    ``hang_after``: after this many events nothing more comes until the server stops. ``incomplete``: the reason why
    the provider ended the response early (``max_output_tokens``, ``content_filter``).
    """

    items: tuple[Item, ...]
    usage: Usage = field(default_factory=Usage)
    pace: float = 0.0
    cut_after: int | None = None
    hang_after: int | None = None
    incomplete: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResponseFailure:
    """The stream begins and ends with ``response.failed``."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class HttpFailure:
    """A status instead of a stream. ``retry_after`` in seconds becomes the header of that name."""

    status: int
    code: str
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, kw_only=True)
class Garbage:
    """A stream of these bytes, which need not be events."""

    content: bytes


Turn: TypeAlias = Answer | ResponseFailure | HttpFailure | Garbage


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of ``request_user_input``; ``options`` are pairs of label and description."""

    id: str
    header: str
    text: str
    options: tuple[tuple[str, str], ...]


def say(*texts: str) -> Answer:
    """An answer of messages only."""
    return Answer(items=tuple(Message(text=text) for text in texts))


def call(name: str, **arguments: Json) -> Answer:
    """An answer that calls one tool."""
    return Answer(items=(ToolCall(name=name, arguments=arguments),))


def shell(command: str) -> Answer:
    """Codex's tool for a shell command."""
    return call("exec_command", cmd=command, login=False)


def plan(markdown: str) -> Answer:
    """A proposed plan, in the tags by which Codex knows one."""
    return say(f"<proposed_plan>\n{markdown.strip()}\n</proposed_plan>")


def ask(*questions: Question) -> Answer:
    """Codex's tool that asks the user."""
    return call(
        "request_user_input",
        questions=[
            {
                "id": question.id,
                "header": question.header,
                "question": question.text,
                "options": [{"label": label, "description": text} for label, text in question.options],
            }
            for question in questions
        ],
    )
