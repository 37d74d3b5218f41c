"""What a harness prints: redacted, kept in a bounded log, and relayed by line."""

from __future__ import annotations

import contextlib
import re
from collections import deque
from typing import TYPE_CHECKING, Final

from runner_e2e.report.results import Output

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

    from runner_e2e.redact import Redactor

__all__ = ["LOG_LIMIT", "RELAY_LIMIT", "TAIL", "OutputSink", "printable"]

# A log is for people: its beginning says what was started, its end why it failed.
LOG_LIMIT: Final = 16 * 1024 * 1024
TAIL: Final = 64 * 1024
RELAY_LIMIT: Final = 1024 * 1024
LINE_LIMIT: Final = 8192

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(line: bytes) -> str:
    """One line as text that a terminal shows and does not obey: no control characters, no change of direction."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _ESCAPE_SEQUENCE.sub("", line.decode("utf-8", "replace")))


class OutputSink:
    """Takes chunks as they come; memory stays bounded, and a full disk ends the log, not the attempt."""

    def __init__(
        self,
        log: Path,
        redactor: Redactor,
        relay: Callable[[str], None] | None,
        *,
        log_limit: int = LOG_LIMIT,
        relay_limit: int = RELAY_LIMIT,
    ) -> None:
        """*relay* gets each line, redacted and printable, until *relay_limit* bytes were relayed."""
        self._stream = redactor.stream()
        self._relay = relay
        self._relay_left = relay_limit
        self._line = b""
        self._log_left = log_limit
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._bytes = 0
        self._dropped = 0
        self.problem = ""
        self._log: BinaryIO | None = None
        try:
            self._log = log.open("xb")
        except OSError as error:
            self._give_up(error)

    @property
    def found(self) -> frozenset[str]:
        """The confidential values that came by."""
        return frozenset(self._stream.found)

    def take(self, chunk: bytes) -> None:
        """Takes the next bytes of output."""
        self._bytes += len(chunk)
        self._pass_on(self._stream.feed(chunk))

    def close(self) -> Output:
        """Ends log and relay; returns how much came and how much the log does not hold."""
        try:
            self._pass_on(self._stream.flush())
            self._relay_rest()
        finally:
            self._close_log()
        return Output(bytes=self._bytes, dropped_bytes=self._dropped)

    def _close_log(self) -> None:
        self._dropped = max(0, self._dropped - self._tail_size)
        if self._tail:
            cut = f"\n[runner-e2e: {self._dropped:,} bytes left out here; the end follows]\n" if self._dropped else ""
            self._write(cut.encode() + b"".join(self._tail))
        if self._log:
            with contextlib.suppress(OSError):
                self._log.close()

    def _pass_on(self, data: bytes) -> None:
        if not data:
            return
        kept = data[: self._log_left]
        self._log_left -= len(kept)
        self._write(kept)
        if rest := data[len(kept) :]:
            self._keep_tail(rest)
        if self._relay and self._relay_left > 0:
            self._relay_lines(data)

    def _write(self, data: bytes) -> None:
        if self._log is None:
            self._dropped += len(data)
            return
        try:
            self._log.write(data)
            self._log.flush()
        except OSError as error:
            self._dropped += len(data)
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.problem = f"the harness's log is incomplete: {error.strerror}"
        if self._log:
            with contextlib.suppress(OSError):
                self._log.close()
        self._log = None

    def _keep_tail(self, data: bytes) -> None:
        self._dropped += len(data)
        data = data[-TAIL:]
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= TAIL:
            self._tail_size -= len(self._tail.popleft())

    def _relay_lines(self, data: bytes) -> None:
        *lines, self._line = re.split(rb"\r\n|\n|\r", self._line + data)
        for line in lines:
            self._relay_line(line)
        while len(self._line) > LINE_LIMIT:
            head, self._line = self._line[:LINE_LIMIT], self._line[LINE_LIMIT:]
            self._relay_line(head)

    def _relay_rest(self) -> None:
        if self._line:
            self._relay_line(self._line)
        self._line = b""

    def _relay_line(self, line: bytes) -> None:
        if not self._relay or self._relay_left <= 0:
            return
        self._relay_left -= len(line) + 1
        self._relay(printable(line))
        if self._relay_left <= 0:
            self._line = b""
            self._relay("[runner-e2e: the harness prints more than is relayed; the rest is in its log]")
