"""Gathers from streams of events what a verdict needs: calls, turns, troubles and damage. Bounded in memory."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

from runner_e2e.graders.calls import Calls, TooMuchError
from runner_e2e.graders.event_streams import PIECES, events_of
from runner_e2e.graders.events import (
    Answer,
    Event,
    FileChange,
    Header,
    Origin,
    Plan,
    Request,
    Trouble,
    TurnEnd,
    TurnStart,
)
from runner_e2e.graders.evidence import MOST_EVIDENCE, Evidence, note, short
from runner_e2e.graders.json_lines import Damage, Noise, read_json_lines
from runner_e2e.graders.outcomes import sandbox_failure, sandbox_trouble

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Transcript"]

_MOST_TURNS: Final = 10_000


@dataclass(kw_only=True)
class Transcript:
    """One run, as its streams tell it.

    *workspace* is the agent's workspace as the caller knows it, *directory* is where the agent works as the first
    stream that says so names it. *every_call*: one of the streams holds each call of a tool. *sandbox_failures* are
    the signs that the agent's own sandbox did not start. *plan* is the first line of the last plan that was proposed.
    """

    workspace: str | None = None
    calls: Calls = field(default_factory=Calls)
    every_call: bool = False
    directory: str | None = None
    sandbox_failures: list[Evidence] = field(default_factory=list)
    changes: list[tuple[Origin, FileChange]] = field(default_factory=list)
    plan: str | None = None
    _events: int = 0
    _damage: list[Evidence] = field(default_factory=list)
    _damaged: int = 0
    _problems: list[Evidence] = field(default_factory=list)
    _started: set[str] = field(default_factory=set)
    _ended: set[str] = field(default_factory=set)
    _unnamed_turns: int = 0
    _open_unnamed_turns: int = 0

    def __post_init__(self) -> None:
        self.calls.directory = self.workspace

    def read(self, stream: BinaryIO, name: str) -> None:
        """Takes in a whole stream; *name* is what its file is called in the evidence. Holds one line at a time."""
        for entry in read_json_lines(stream, skip=PIECES):
            if isinstance(entry, Noise):
                continue
            if isinstance(entry, Damage):
                self._damaged += 1
                note(self._damage, f"a line is {entry.reason}", Origin(file=name, line=entry.line))
                continue
            line, message = entry
            origin = Origin(file=name, line=line)
            try:
                self._take(events_of(message), origin)
            except TooMuchError as error:
                self._damaged += 1
                note(self._damage, f"not read from here on: there is {error}", origin)
                return

    def gaps(self) -> list[Evidence]:
        """What is missing or unreadable: with any of this the streams do not tell the whole run."""
        gaps = list(self._problems)
        if not self._events:
            gaps.append(Evidence(text="no line is an event of a known form"))
        if self._damaged:
            gaps += [Evidence(text=f"{self._damaged} lines cannot be read"), *self._damage]
        if self._started - self._ended or self._open_unnamed_turns > 0:
            gaps.append(Evidence(text="a turn has no end: the stream breaks off"))
        elif self._events and not (self._started or self._ended or self._unnamed_turns):
            gaps.append(Evidence(text="no turn was started"))
        opened = list(self.calls.unanswered.values())[:MOST_EVIDENCE]
        gaps += [Evidence(text="a call has no answer", place=str(origin)) for origin in opened]
        if self.calls.unasked:
            gaps.append(Evidence(text=f"{self.calls.unasked} answers belong to calls that are not in the stream"))
        return gaps

    def _take(self, events: Iterable[Event], origin: Origin) -> None:
        for event in events:
            self._events += 1
            match event:
                case Request():
                    self.calls.request(event, origin)
                case Answer():
                    command = self.calls.answer(event, origin)
                    if failure := sandbox_failure(event, command):
                        note(self.sandbox_failures, f"a command ended with “{short(failure)}”", origin)
                case FileChange():
                    if len(self.changes) < MOST_EVIDENCE or event.outcome == "written":
                        self.changes = [*self.changes[-MOST_EVIDENCE:], (origin, event)]
                case Trouble():
                    self._trouble(event.message, origin)
                case TurnStart() | TurnEnd():
                    self._turn(event, origin)
                case Plan():
                    self.plan = short(next((line for line in event.text.splitlines() if line.strip()), ""))
                case Header():
                    self.every_call = self.every_call or event.every_call
                    self._see_directory(event.directory)

    def _see_directory(self, directory: str | None) -> None:
        if self.directory is None and directory and directory.startswith("/"):
            self.directory = self.calls.directory = posixpath.normpath(directory)

    def _trouble(self, message: str, origin: Origin) -> None:
        if words := sandbox_trouble(message):
            note(self.sandbox_failures, f"the agent's program reported “{short(words)}”", origin)

    def _turn(self, event: TurnStart | TurnEnd, origin: Origin) -> None:
        started = isinstance(event, TurnStart)
        if not event.turn:
            self._unnamed_turns += 1
            self._open_unnamed_turns += 1 if started else -1
        else:
            turns = self._started if started else self._ended
            if len(turns) >= _MOST_TURNS:
                raise TooMuchError(f"more than {_MOST_TURNS:,} turns")
            turns.add(event.turn)
        if isinstance(event, TurnEnd) and event.problem:
            self._trouble(event.problem, origin)
            note(self._problems, f"a turn was not completed: {short(event.problem)}", origin)
