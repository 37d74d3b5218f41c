"""What a stream of events says happened, whatever program wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Answer",
    "Event",
    "FileChange",
    "Header",
    "Origin",
    "Patch",
    "Plan",
    "Request",
    "ShellText",
    "Tool",
    "Trouble",
    "TurnEnd",
    "TurnStart",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where an event stands: the name of its file as the user gave it, and the line from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellText:
    """A command line for a shell, run in *directory* (None: not said)."""

    text: str
    directory: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """Files that the agent's own editing tool is to change."""

    paths: tuple[str, ...]
    directory: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A call of any other tool; nothing is known of what it does."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """The agent asked for *work*. *key* pairs it with its :class:`Answer`."""

    key: str
    work: ShellText | Patch | Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came of a request. *exit_code* is None where none is known; *running*: the command had not ended."""

    key: str
    output: str
    exit_code: int | None = None
    running: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """The agent's own editing tool ended. *outcome*: ``written``, ``failed``, ``declined`` (never tried)."""

    paths: tuple[str, ...]
    outcome: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnStart:
    """A turn began; *turn* is empty where the stream does not name turns."""

    turn: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnEnd:
    """A turn ended; *problem* is empty when it was completed."""

    turn: str
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """The agent's program reported an error outside of any tool call."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A plan was proposed."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """What a line tells of its stream. *every_call*: the stream holds each call of a tool with its answer.

    *directory* is the agent's working directory.
    """

    every_call: bool = False
    directory: str | None = None


Event: TypeAlias = Request | Answer | FileChange | TurnStart | TurnEnd | Trouble | Plan | Header
