"""Looks for canaries in files, again and again, reading only what changed since the last look."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.sandbox.canary import Finder, Occurrence

__all__ = ["Disk", "FoundFile"]

CHUNK = 1 << 20
TICK = 20_000_000
# Directories that all programs of the machine share: only what is new in them, and not deep.
SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 - looked into, nothing is made there
SHARED_DEPTH = 3
SHARED_ENTRIES = 20_000


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """A file with a canary in its content, or a file or directory with one (``in_name``) in its name."""

    path: Path
    occurrence: Occurrence
    in_name: bool = False


class Disk:
    """The directories of one run, and the shared ones of the machine as far as they are new since *since*."""

    def __init__(self, finder: Finder, roots: tuple[Path, ...], *, base: Path, since: float) -> None:
        self.finder = finder
        self.roots = roots
        self.base = base
        self.since = since
        self.known: dict[Path, tuple[int, int, int]] = {}
        self.told: dict[Path, tuple[int, int, int]] = {}
        self.cut_short = False

    def changed(self) -> list[FoundFile]:
        """Every file with a canary that is new, or was written to, since the last call."""
        found: list[FoundFile] = []
        overlap = max((len(canary.value) for canary in self.finder.canaries), default=0) * 3
        for path, status in self._files():
            # A directory changes with every entry; what counts of it is its name.
            directory = stat.S_ISDIR(status.st_mode)
            key = (status.st_ino, 0, 0) if directory else (status.st_ino, status.st_size, status.st_mtime_ns)
            if self.known.get(path) == key:
                continue
            # Written to in this very tick of the clock: it may change again without showing another time.
            if time.time_ns() - status.st_mtime_ns > TICK:
                self.known[path] = key
            named = self.finder.find(path.name)[:1]
            here = [FoundFile(path=path, occurrence=occurrence, in_name=True) for occurrence in named]
            if not directory and (occurrence := self._first(path, status, overlap)):
                here.append(FoundFile(path=path, occurrence=occurrence))
            if here and self.told.get(path) != key:
                self.told[path] = key
                found += here
        return found

    def _first(self, path: Path, status: os.stat_result, overlap: int) -> Occurrence | None:
        """The first occurrence, read in chunks that overlap so that none is cut apart."""
        if stat.S_ISLNK(status.st_mode):
            return next(iter(self.finder.find(os.fspath(path.readlink()))), None)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            before = b""
            while chunk := file.read(CHUNK):
                data = before + chunk
                if self.finder.may_hold(data):
                    occurrences = self.finder.find(data.decode("utf-8", "surrogateescape"))
                    if occurrences:
                        return occurrences[0]
                before = data[-overlap:]
        return None

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for root in self.roots:
            yield from walk(root, depth=64)
        left = SHARED_ENTRIES
        for root in SHARED:
            for path, status in walk(root, depth=SHARED_DEPTH, skip=self.base):
                left -= 1
                if left < 0:
                    self.cut_short = True
                    return
                if status.st_ctime >= self.since:
                    yield path, status


def walk(root: Path, *, depth: int, skip: Path | None = None) -> Iterator[tuple[Path, os.stat_result]]:
    """Directories, regular files and symbolic links below *root*; what cannot be read is passed over."""
    stack = [(root, depth)]
    while stack:
        directory, left = stack.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            path = Path(entry.path)
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                if path != skip:
                    yield path, status
                    stack += [(path, left - 1)] if left > 1 else []
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                yield path, status
