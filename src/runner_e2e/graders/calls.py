"""Pairs what an agent asked for with what came of it, in bounded memory, whatever order and number they come in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from runner_e2e.graders.commands import CommandReading, Write, read_command
from runner_e2e.graders.events import Answer, Patch, Request, ShellText

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.graders.events import Origin

__all__ = ["Attempt", "Call", "Calls", "TooMuchError"]

_MOST_CALLS: Final = 1_000_000
_MOST_HELD: Final = 64 << 20
_MOST_OF_ONE_CALL: Final = 16
_LONGEST_OPEN_TEXT: Final = 2000
# What an entry takes beside its text, in bytes; an estimate.
_ENTRY: Final = 500
_ANSWER: Final = 100


class TooMuchError(Exception):
    """There is more in the stream than can be held; the text says what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One command or patch that tries to write, as the agent asked for it."""

    origin: Origin
    text: str
    reading: CommandReading
    patch: bool = False


@dataclass(kw_only=True, slots=True)
class Call:
    """One call that tries to write, or whose request has not been seen yet: all that was said of it."""

    attempts: list[Attempt] = field(default_factory=list)
    answers: list[tuple[Origin, Answer]] = field(default_factory=list)


@dataclass(kw_only=True)
class Calls:
    """The calls of a run. Those that write nothing are dropped as soon as they were answered."""

    directory: str | None = None
    texts: dict[str, str] = field(default_factory=dict)
    writing: dict[str, Call] = field(default_factory=dict)
    open: dict[str, Origin] = field(default_factory=dict)
    unclear: int = 0
    total: int = 0
    _answered: set[int] = field(default_factory=set)
    _orphans: dict[str, list[tuple[Origin, Answer]]] = field(default_factory=dict)
    _held: int = 0

    def request(self, request: Request, origin: Origin) -> None:
        """Takes in a request. Raises :class:`TooMuchError`."""
        key, work = request.key, request.work
        text, reading, patch = "", CommandReading(unclear=True, opaque=True), False
        if isinstance(work, ShellText):
            text = work.text
            reading = read_command(text, work.directory or self.directory)
        elif isinstance(work, Patch):
            patch = True
            directory = work.directory or self.directory
            paths = tuple(Write(path=path, directory=directory, certain=True, decides=True) for path in work.paths)
            reading = CommandReading(writes=paths)
            text = "patch of " + ", ".join(work.paths)
        if key not in self.open and hash(key) not in self._answered and key not in self.writing:
            self._count()
            self.unclear += reading.unclear
        if reading.writes:
            call = self.writing.setdefault(key, Call())
            if all(text != attempt.text for attempt in call.attempts):
                self._hold(len(text) + 200 * len(reading.writes), len(call.attempts))
                call.attempts.append(Attempt(origin=origin, text=text, reading=reading, patch=patch))
            call.answers += self._orphans.pop(key, [])
            if not call.answers:
                self.open.setdefault(key, origin)
                if key in self.texts:
                    self._release(len(self.texts.pop(key)))
        elif key in self._orphans:
            self._close(key)
        elif hash(key) not in self._answered and key not in self.writing and key not in self.open:
            self.open[key] = origin
            self.texts[key] = text[:_LONGEST_OPEN_TEXT]
            self._hold(len(self.texts[key]), 0)

    def answer(self, answer: Answer, origin: Origin) -> str:
        """Takes in an answer; the text of the command it answers, as far as it is known. Raises TooMuchError."""
        key = answer.key
        if key in self.writing:
            call = self.writing[key]
            if all(answer != other for _, other in call.answers):
                self._hold(len(answer.output) + _ANSWER, len(call.answers))
                call.answers.append((origin, answer))
            if not answer.running:
                self.open.pop(key, None)
            return "\n".join(attempt.text for attempt in call.attempts)
        if key in self.open:
            text = self.texts.get(key, "")
            if not answer.running:
                self._close(key)
            return text
        if hash(key) not in self._answered:
            orphans = self._orphans.setdefault(key, [])
            self._hold(len(answer.output) + _ANSWER, len(orphans))
            orphans.append((origin, answer))
        return ""

    @property
    def unanswered(self) -> Mapping[str, Origin]:
        """The requests that nothing came of, with their places."""
        return self.open

    @property
    def unasked(self) -> int:
        """Answers to requests that are not in the stream."""
        return len(self._orphans)

    def attempts(self) -> Iterator[tuple[str, Attempt, tuple[Origin, Answer] | None]]:
        """Every attempt with its key and each answer that was given to it; None for one without an answer."""
        for key, call in self.writing.items():
            for attempt in call.attempts:
                if not call.answers:
                    yield key, attempt, None
                for answer in call.answers:
                    yield key, attempt, answer

    def _close(self, key: str) -> None:
        self.open.pop(key, None)
        if key in self.texts:
            self._release(len(self.texts.pop(key)))
        for _, answer in self._orphans.pop(key, []):
            self._release(len(answer.output) + _ANSWER)
        self._answered.add(hash(key))

    def _count(self) -> None:
        self.total += 1
        if self.total > _MOST_CALLS:
            raise TooMuchError(f"more than {_MOST_CALLS:,} calls of tools")

    def _hold(self, size: int, already: int) -> None:
        self._held += size + _ENTRY
        if self._held > _MOST_HELD:
            raise TooMuchError(f"more than {_MOST_HELD >> 20} MiB of attempts to write and of calls without an answer")
        if already >= _MOST_OF_ONE_CALL:
            raise TooMuchError(
                f"one call stands in the stream more than {_MOST_OF_ONE_CALL} times, differently each time"
            )

    def _release(self, size: int) -> None:
        self._held -= size + _ENTRY
