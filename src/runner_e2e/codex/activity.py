"""The activity channel: an agent in its sandbox tells the runner what it does, and can tell it nothing else.

::

    ROOT/                 private to the runner; readable for the agent, never writable
      descriptor          where the channel is, and the authority of this run
      record-activity     the helper that writes a record
      channel/            the one directory in which the agent may write
        endpoint          a FIFO
        lock              read-only again

Write access is granted to ``channel``, never to the FIFO: Codex protects ``.git``, ``.codex`` and the like below each
writable root, and its sandbox cannot start when a root cannot hold them (``Not a directory``).

Everything that comes through the FIFO is an agent's word: bounded, checked, and only with the authority of the run.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import shutil
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["LARGEST_RECORD", "SCHEMA", "ActivityChannel", "Record", "Rejection", "activity_grants"]

SCHEMA: Final = "runner-e2e.activity/v1"
# PIPE_BUF of Linux: a write of so many bytes reaches a pipe whole (pipe(7)).
LARGEST_RECORD: Final = 4096
_MOST_RECORDS: Final = 100_000
_MOST_REJECTIONS: Final = 100
_HELPER: Final = Path(__file__).with_name("record_activity.sh")
_RECORD = re.compile(rb"(?P<context>[0-9a-f]{32})\t(?P<kind>[a-z0-9-]{1,64})\t(?P<text>[^\x00-\x1f\x7f]*)")


@dataclass(frozen=True, kw_only=True)
class Record:
    """One activity of the agent."""

    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """Why something that came through the channel is no record."""

    reason: str


class ActivityChannel:
    """The runner's side of the channel below *root*, an absolute path; a context manager that removes it at the end.

    Raises :class:`UsageError` when *root* is there already or cannot be made.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_absolute() or any(not one.isprintable() for one in str(root)):
            raise UsageError(f"{root} cannot hold an activity channel", fix="give an absolute path of plain characters")
        self.root = root
        self.directory = root / "channel"
        self.endpoint = self.directory / "endpoint"
        self.lock = self.directory / "lock"
        self.descriptor = root / "descriptor"
        self.helper = root / "record-activity"
        self.rejections: list[Rejection] = []
        self.rejected = 0
        self.accepted = 0
        self._context = b""
        self._buffer = b""
        self._skipping = False
        self._stream = self._make()

    def _make(self) -> int:
        try:
            self.root.mkdir(mode=0o755)
            self.directory.mkdir(mode=0o777)
            self.directory.chmod(0o777)  # whoever the agent runs as; only through ROOT can anybody come here
            os.mkfifo(self.endpoint, 0o666)
            self.endpoint.chmod(0o666)
            self.lock.touch(mode=0o444)
            shutil.copyfile(_HELPER, self.helper)
            self.helper.chmod(0o555)
            self.rotate()
            # Open for both, so that it has never seen its last writer, and before any agent runs: it stays the FIFO
            # that was made here, whatever stands at its path later.
            return os.open(self.endpoint, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(
                f"no activity channel can be made at {self.root}",
                why=error.strerror or str(error),
                fix="give a path that does not exist yet, in a directory that may be written",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def grants(self) -> dict[str, tuple[str, ...]]:
        """What a profile grants of the channel: fields of :class:`runner_e2e.codex.profile.Host`."""
        return activity_grants(self.root)

    def rotate(self) -> None:
        """Gives the channel a new authority; what still comes with an older one is rejected."""
        context = secrets.token_hex(16)
        new = self.root / ".descriptor"
        new.write_text("\n".join([SCHEMA, str(self.endpoint), str(self.lock), context, str(LARGEST_RECORD)]) + "\n")
        new.chmod(0o444)
        new.replace(self.descriptor)
        self._context = context.encode()

    def read(self, timeout: float = 0.0) -> list[Record]:
        """The records that are there, or that come within *timeout* seconds. Never waits for more after the first."""
        records: list[Record] = []
        deadline = time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        while True:
            left = max(0.0, deadline - time.monotonic())
            if not poll.poll(0 if records else left * 1000):
                return records
            with contextlib.suppress(BlockingIOError):
                records += self._take(os.read(self._stream, 1 << 16))
            if self.accepted + self.rejected >= _MOST_RECORDS:
                return records

    def close(self) -> None:
        """Ends the channel and removes everything below its fixed path, whatever the agent put there. Idempotent."""
        if self._stream >= 0:
            os.close(self._stream)
            self._stream = -1
        _remove(self.root)

    def _take(self, content: bytes) -> list[Record]:
        *lines, self._buffer = (self._buffer + content).split(b"\n")
        records: list[Record] = []
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif record := self._record(line):
                records.append(record)
        if len(self._buffer) >= LARGEST_RECORD:
            if not self._skipping:
                self._reject(f"a record is longer than {LARGEST_RECORD} bytes")
            self._buffer, self._skipping = b"", True
        return records

    def _record(self, line: bytes) -> Record | None:
        if self.accepted >= _MOST_RECORDS:
            self._reject(f"there are more than {_MOST_RECORDS:,} records")
            return None
        if len(line) >= LARGEST_RECORD:
            self._reject(f"a record is longer than {LARGEST_RECORD} bytes")
            return None
        found = _RECORD.fullmatch(line)
        if not found:
            self._reject("a record is malformed")
            return None
        if not secrets.compare_digest(found["context"], self._context):
            self._reject("a record has a stale authority")
            return None
        try:
            text = found["text"].decode()
        except UnicodeDecodeError:
            self._reject("a record is not UTF-8")
            return None
        self.accepted += 1
        return Record(kind=found["kind"].decode(), text=text)

    def _reject(self, reason: str) -> None:
        self.rejected += 1
        if len(self.rejections) < _MOST_REJECTIONS:
            self.rejections.append(Rejection(reason=reason))


def activity_grants(root: Path) -> dict[str, tuple[str, ...]]:
    """What a profile grants of the channel below *root*: fields of :class:`runner_e2e.codex.profile.Host`."""
    channel = root / "channel"
    return {"readable": (str(root),), "writable": (str(channel),), "protected": (str(channel / "lock"),)}


def _remove(root: Path) -> None:
    """Removes a tree without following a link; directories that an agent closed are opened on the way.

    Only for the time after the agent: nothing else changes the tree meanwhile.
    """
    try:
        status = root.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        root.unlink()
        return
    pending = [os.fspath(root)]
    while pending:
        directory = pending.pop()
        os.chmod(directory, 0o700)  # noqa: PTH101 - scandir gives texts
        with os.scandir(directory) as entries:
            pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    shutil.rmtree(root)
