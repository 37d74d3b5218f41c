"""What lints of one folder need again and again, in one file: digests of files, and the entries of the cache.

To read and digest hundreds of files, and as many entries, takes most of the time of a lint that finds everything in
its cache. So digests are kept with what the system says about the file, as git does with its index: while device,
number, size and both times are the same, so is the content. The time of the last change of a file, which no program
sets, moves in ticks; a digest is kept only of a file that did not change for longer than the coarsest tick before it
was read. Where these times say less nothing is kept of files: on other systems than POSIX, and where the time is a
whole second, as in images whose files all have the time of the build (squashfs, erofs, ISO 9660).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["COARSEST_TICK", "MAX_BYTES", "Pack", "read_whole", "remove", "replace_file"]

COARSEST_TICK = 2_000_000_000
"""Nanoseconds: FAT counts time in steps of two seconds, no file system that is in use in longer ones."""

MAX_BYTES = 16 << 20
"""When a pack takes more, what this lint did not use goes."""

_SECOND = 1_000_000_000
_TIMES_TELL = os.name == "posix"


class Pack:
    """The pack in the file *path*, empty where there is none that is whole; *clock* gives nanoseconds, as files do."""

    def __init__(self, path: str, *, clock: Callable[[], int] = time.time_ns) -> None:
        self.path = path
        self._clock = clock
        self._changed = False
        self._used: set[str] = set()
        self._digests: dict[str, list[Any]] = {}
        self._entries: dict[str, list[Any]] = {}
        try:
            data = read_whole(path)
            if all(len(one) == 6 for one in data["digests"].values()) and all(
                len(one) == 2 for one in data["entries"].values()
            ):
                self._digests, self._entries = data["digests"], data["entries"]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return  # none, a damaged one, or one of another form

    def digest(self, path: str) -> str:
        """The digest of the file at *path*, empty where it cannot be read, or only once (a pipe)."""
        known = self._digests.get(path)
        try:
            status = os.stat(path)  # noqa: PTH116
            if known is not None and known[1:] == _state(status):
                return str(known[0])
            if not stat.S_ISREG(status.st_mode):
                return ""
            with open(path, "rb") as stream:  # noqa: PTH123
                now, status = self._clock(), os.fstat(stream.fileno())
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except (OSError, ValueError):
            return ""
        if _TIMES_TELL and status.st_ctime_ns % _SECOND and _changed(status) < now - COARSEST_TICK:
            self._digests[path] = [digest, *_state(status)]
            self._changed = True
        return digest

    def entry(self, shown: str, name: str) -> Any:
        """The data of the entry *name* of the cache for the file that is shown as *shown*, None where it is another."""
        known = self._entries.get(shown)
        if known is None or known[0] != name:
            return None
        self._used.add(shown)
        return known[1]

    def keep(self, shown: str, name: str, data: Any) -> None:
        """Keeps an entry in the place of another one of this file."""
        self._entries[shown] = [name, data]
        self._used.add(shown)
        self._changed = True

    def write(self, most: int = MAX_BYTES) -> bool:
        """Writes the pack if it is not as it was read; whether it was not."""
        if not self._changed:
            return False
        if not replace_file(self.path, self._data(), most=most):
            self._entries = {shown: self._entries[shown] for shown in self._used}
            self._digests = {}
            replace_file(self.path, self._data(), most=most)
        self._changed = False
        return True

    def _data(self) -> dict[str, Any]:
        return {"digests": self._digests, "entries": self._entries}


def _changed(status: os.stat_result) -> int:
    """When the file changed, in nanoseconds; one that was given a time to come counts as that new."""
    return max(status.st_ctime_ns, status.st_mtime_ns)


def _state(status: os.stat_result) -> list[int]:
    """What is another number when the content of a file may be another."""
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def read_whole(path: str) -> Any:
    """The data in a file that :func:`replace_file` wrote. Raises :class:`ValueError` for one that is damaged."""
    with open(path, "rb") as stream:  # noqa: PTH123
        digest, _, body = stream.read().partition(b"\n")
    if digest != hashlib.sha256(body).hexdigest().encode():
        raise ValueError(f"{path} is damaged")
    return json.loads(body)


def replace_file(path: str, data: Any, *, most: int | None = None) -> bool:
    """Writes *data* after a digest of it in the place of the file *path*, whole or not at all.

    Whether that was done: it is not where it would take more than *most* bytes, the disk is full, or the folder is
    gone. That costs the next lint its time, and nothing else.
    """
    body = json.dumps(data, separators=(",", ":")).encode()
    if most is not None and len(body) > most:
        return False
    temporary = f"{os.path.dirname(path)}/.{os.getpid()}-{os.urandom(8).hex()}"  # noqa: PTH120
    try:
        with open(temporary, "xb") as stream:  # noqa: PTH123
            stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        os.replace(temporary, path)  # noqa: PTH105
    except OSError:
        remove([temporary])
        return False
    return True


def remove(paths: Iterable[str]) -> None:
    """Removes files that nobody may miss."""
    for path in paths:
        try:
            os.unlink(path)  # noqa: PTH108
        except OSError:
            continue  # another lint was quicker
