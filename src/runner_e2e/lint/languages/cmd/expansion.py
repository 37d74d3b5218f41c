"""Text of a script with its variables put in, and the words of a command."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.pieces import at_most, joined, mapped, sliced
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.source import PLACEHOLDER
from runner_e2e.lint.values import EMPTY, UNKNOWN, Hole, Value, normal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from runner_e2e.lint.languages.cmd.parser import Node, Simple
    from runner_e2e.lint.languages.process import Process, Saved

__all__ = ["NUMBER", "Expansion", "Word"]

NUMBER = Value(((Hole(frozenset(), "", 12),),))
"""A number that is not known."""
_PERCENT = re.compile(
    r"%%?(?:~(?P<modifiers>[fdpnxsatz$:]*)(?P<tilde>[A-Za-z0-9#?])"
    r"|(?P<argument>[0-9*])|(?P<name>[^%!:\s=&|<>\"]+)(?::(?P<change>[^%\n]*))?%)"
)
_LOOP = re.compile(r"%%?(?:~[fdpnxsatz$:]*)?(?P<letter>[A-Za-z#?])")
_DELAYED = re.compile(r"!(?P<name>[^!:\s=&|<>\"]+)(?::(?P<change>[^!\n]*))?!")
_SLICE = re.compile(r"~(?P<start>-?\d+)?(?:,(?P<size>-?\d+))?")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command and where it stands."""

    value: Value
    start: int
    end: int


class Expansion(ABC):
    """What a script knows, and how it puts variables into its text."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.arguments: tuple[Value, ...] = tuple(one.value for one in process.arguments)
        self.loop_variables: dict[str, Value] = {}
        self.snapshot: Mapping[str, Value] = {}
        self.sinks: list[list[Value] | None] = [None]
        self.live = True
        self.ends: list[Saved] = []
        self.input = EMPTY
        self.depth = 0
        self.delayed = "enabledelayedexpansion" in process.source.text.lower()
        self.labels: dict[str, list[Node]] = {}

    @property
    def text(self) -> str:
        """The text of the script."""
        return self.process.source.text

    def _environment(self) -> dict[str, Value]:
        return {name.upper(): value for name, value in self.process.environment().items()}

    def _variable(self, name: str, change: str | None, *, now: bool) -> Value:
        environment = self._environment() if now else self.snapshot
        value = environment.get(name.upper())
        if value is None:  # the machine may have set it
            return UNKNOWN
        return value if change is None else _changed(value, change)

    def _argument(self, index: str) -> Value:
        if index == "*":
            return joined(self.arguments, Value.literal(" "))
        number = int(index)
        if number == 0:
            return UNKNOWN
        return self.arguments[number - 1] if number <= len(self.arguments) else EMPTY

    def _expansion(self, offset: int, end: int) -> tuple[Value, int] | None:
        """What stands for the ``%…%`` or ``!…!`` at *offset*, and where it ends."""
        text = self.text
        if text[offset] == "!":
            match = _DELAYED.match(text, offset, end) if self.delayed else None
            return (
                (self._variable(match["name"], match["change"], now=True), match.end()) if match is not None else None
            )
        loop = _LOOP.match(text, offset, end)
        if loop is not None and loop["letter"] in self.loop_variables:
            return self.loop_variables[loop["letter"]], loop.end()
        match = _PERCENT.match(text, offset, end)
        if match is None:
            return None
        if match["name"] is not None:
            if text.startswith("%%", offset):  # an escaped percent sign
                return None
            return self._variable(match["name"], match["change"], now=False), match.end()
        which = match["argument"] or match["tilde"]
        if which is not None and (which.isdigit() or which == "*"):
            return self._argument(which), match.end()
        return None

    def pieces(self, start: int, end: int) -> Iterator[tuple[Value, int, int, bool]]:
        """The text ``[start, end)`` piece by piece: its value, its place, whether it was written as it is."""
        offset = start
        text = self.text
        while offset < end:
            char = text[offset]
            if char in "%!":
                found = self._expansion(offset, end)
                if found is not None:
                    yield found[0], offset, found[1], False
                    offset = found[1]
                    continue
                if text.startswith("%%", offset):
                    yield Value.literal("%"), offset, offset + 2, False
                    offset += 2
                    continue
            if PLACEHOLDER.match(char):
                yield self.process.source.value_of(char), offset, offset + 1, False
            else:
                yield Value.literal(char), offset, offset + 1, True
            offset += 1

    def expanded(self, start: int, end: int, *, quotes: bool = True) -> Value:
        """The text ``[start, end)`` with its variables; without *quotes*, double quotes are left out."""
        parts: list[str | Hole] = []
        total = EMPTY
        escaped = quoted = False
        for value, _, _, written in self.pieces(start, end):
            char = value.constant if written else None
            if char == '"':
                quoted = not quoted
            if char == "^" and not escaped and not quoted:
                escaped = True
                continue
            escaped = False
            if char == '"' and not quotes:
                continue
            if char is not None:
                parts.append(char)
                continue
            total = total + Value((normal(parts),)) + value
            parts = []
        return total + Value((normal(parts),))

    def words(self, parts: Sequence[tuple[int, int]]) -> list[Word]:
        """The words of a command, as programs take its line apart."""
        found: list[Word] = []
        for start, end in parts:
            found += self.words_of(start, end)
        return found

    def words_of(self, start: int, end: int) -> Iterator[Word]:
        """The words of the text ``[start, end)``."""
        current: Value | None = None
        begin = start
        quoted = escaped = False
        for value, first, last, written in self.pieces(start, end):
            char = value.constant if written else None
            if char == "^" and not quoted and not escaped:
                escaped = True
                continue
            if char == '"' and not escaped:
                quoted = not quoted
                if current is None:
                    current, begin = EMPTY, first
            elif char is not None and char in " \t\r\n" and not quoted:
                if current is not None:
                    yield Word(current, begin, first)
                current = None
            else:
                if current is None:
                    current, begin = EMPTY, first
                known = value.constant
                current = current + (value if written or known is None else Value.literal(known.replace('"', "")))
            escaped = False
            end = last
        if current is not None:
            yield Word(current, begin, end)

    # --- completed by the interpreter

    @abstractmethod
    def emit(self, value: Value, start: int, end: int) -> None:
        """Writes to the standard output of the script."""

    @abstractmethod
    def run_lines(self, nodes: Sequence[Node]) -> None:
        """Runs commands that stand on lines of their own: each sees what the ones before have set."""

    @abstractmethod
    def within(self, run: Callable[[], None], arguments: Sequence[Value]) -> None:
        """Runs a script or a subroutine with arguments of its own."""

    @abstractmethod
    def run_script(self, name: str, words: Sequence[Word], *, returns: bool) -> bool:
        """Runs a batch file; without ``call`` the script does not go on after it. False: there is none."""

    @abstractmethod
    def start(self, node: Simple, words: Sequence[Word]) -> None:
        """Starts a program, or a script of the repository."""


def _changed(value: Value, change: str) -> Value:
    """``%NAME:~0,3%`` and ``%NAME:a=b%``."""
    match = _SLICE.fullmatch(change)
    if match is not None:
        start = int(match["start"] or 0)
        size = match["size"]
        if size is None:
            return sliced(value, start, None)
        if int(size) < 0:
            return sliced(value, start, int(size))
        return sliced(value, start, start + int(size)) if start >= 0 else at_most(value.opaque(), int(size))
    old, equals, new = change.partition("=")
    if not equals or not old:
        return value
    if old.startswith("*"):
        return value.opaque()
    return mapped(value, lambda piece: re.sub(re.escape(old), lambda _match: new, piece, flags=re.IGNORECASE))
