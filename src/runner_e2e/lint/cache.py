"""Results of earlier lints, kept by everything that they depend on.

The name of an entry is a digest of the file's content, of how it is linted, and of the program itself. In it stand the
digests of all other files that the analysis asked for, also of those that were not there, so a result is used again
only when every one of them is as it was. Entries are data, not code; each is written whole under another name and then
renamed, and holds a digest of itself, so two lints may share a folder and a damaged entry counts as none. What a lint
found here it packs into one file for the next one of the same folder: see :mod:`runner_e2e.lint.pack`.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import time
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner_e2e import __version__
from runner_e2e.errors import UsageError
from runner_e2e.lint.files import exists_at, locate, names_in
from runner_e2e.lint.pack import Pack, read_whole, remove, replace_file
from runner_e2e.lint.result import from_data, to_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runner_e2e.lint.request import Entry, Request
    from runner_e2e.lint.result import FileResult

__all__ = ["MAX_BYTES", "Cache", "default_folder", "open_cache"]

MAX_BYTES = 64 << 20
"""When entries take more, the ones that were not used for the longest time go, until they take three quarters."""

_FORM = 1
"""Changes when the form of an entry does."""

_UNREADABLE = "unreadable"
"""The state of a file that is there: an analysis says that, and not that it is absent."""

_DAY = 86_400.0
_SUFFIX = ".json"
_PACKED = ".pack"


def default_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of a user's caches (XDG Base Directory Specification) with ours in it; None without a home."""
    given = environ.get("XDG_CACHE_HOME", "")
    if given.startswith("/"):
        return Path(given) / "runner-e2e" / "lint"
    home = environ.get("HOME", "")
    return Path(home) / ".cache" / "runner-e2e" / "lint" if home.startswith("/") else None


def open_cache(folder: Path | None, *, chosen: bool) -> Cache | None:
    """The cache in *folder*, which is made. Where it cannot be written, or another user may write to it too, it is
    None unless a user has *chosen* it: who writes there decides what the lint says.

    Raises :class:`~runner_e2e.errors.UsageError` for a chosen folder that cannot be used.
    """
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        usable, why = os.access(folder, os.W_OK | os.X_OK), "it cannot be written"
    except OSError as error:
        usable, why = False, error.strerror or str(error)
    if usable and (chosen or _is_own(folder)):
        return Cache(folder)
    if not chosen:
        return None
    raise UsageError(f"{folder} cannot hold the cache", why=why, fix="choose another --cache-dir, or use --no-cache")


def _is_own(folder: Path) -> bool:
    """Whether nobody but this user may write to *folder*, where the system tells."""
    if not hasattr(os, "geteuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class Cache:
    """The entries in *folder*. *signature* stands for the program that made them, *started* is when this lint began,
    *clock* gives the time as files have it, in nanoseconds.

    ``found`` and ``written`` count entries, ``packed`` those found that were in the pack.
    """

    def __init__(
        self,
        folder: Path,
        *,
        signature: str | None = None,
        started: float | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.folder = str(folder)
        self.signature = program_signature() if signature is None else signature
        self.found = 0
        self.written = 0
        self.packed = 0
        self._clock = clock
        self._packs: dict[tuple[str, str], Pack] = {}
        # What changed while this lint ran may have been read before and digested after: no result of it is kept.
        # The clock of file systems may be one tick behind.
        self._started = time.time() - 0.02 if started is None else started
        self._states: dict[str, dict[str, str]] = {}
        """The state of every read, by root and path."""
        self._settled: dict[str, bool] = {}
        self._folders: dict[str, tuple[str, str]] = {}

    def find(self, entry: Entry, request: Request) -> FileResult | None:
        """The result that is kept for *entry*, None where there is none that holds."""
        pack = self._pack(request)
        name = self._name(entry, request, pack)
        if name is None:
            return None
        result = self._held(pack.entry(entry.shown, name), entry, pack)
        if result is not None:
            self.packed += 1
        else:
            data = self._stored(name)
            result = self._held(data, entry, pack)
            if result is not None:
                pack.keep(entry.shown, name, data)
        self.found += result is not None
        return result

    def _stored(self, name: str) -> Any:
        """What stands in the entry *name*, None where there is none that is whole."""
        path = f"{self.folder}/{name}"
        try:
            data = read_whole(path)
        except (OSError, ValueError, RecursionError):
            return None
        _touch(path)
        return data

    def _held(self, data: Any, entry: Entry, pack: Pack) -> FileResult | None:
        """The result in *data*, None where something that it depends on is not as it was, or for other data."""
        root = str(entry.root)
        try:
            return from_data(data) if self._reads(root, data["reads"], pack) == data["reads"] else None
        except (ValueError, LookupError, TypeError, AttributeError):
            return None

    def keep(self, entry: Entry, request: Request, result: FileResult) -> None:
        """Keeps *result*, if it is one that the same files always have."""
        pack = self._pack(request)
        name = self._name(entry, request, pack)
        if name is None or not result.complete or result.defects:
            return
        root = str(entry.root)
        reads = self._reads(root, result.reads, pack)
        if not all(self._is_settled(path) for path in (str(entry.path), *(f"{root}/{one}" for one in reads))):
            return
        if replace_file(f"{self.folder}/{name}", {**to_data(result), "reads": reads}):
            self.written += 1

    def write_packs(self) -> None:
        """Packs what was found, for the next lint of the same folder; what has a label lies in one that goes away."""
        written = [pack.write() for (_, label), pack in self._packs.items() if not label]
        if any(written):
            self.shrink()

    def _pack(self, request: Request) -> Pack:
        """The pack for lints in the same folder."""
        key = (str(request.current), request.label)
        if key not in self._packs:
            name = hashlib.sha256(json.dumps([self.signature, *key]).encode()).hexdigest()
            self._packs[key] = Pack(f"{self.folder}/{name}{_PACKED}", clock=self._clock)
            _touch(self._packs[key].path)
        return self._packs[key]

    def shrink(self, most: int = MAX_BYTES) -> None:
        """Removes the entries that were not used for the longest time when all take more than *most* bytes."""
        try:
            with os.scandir(self.folder) as listing:
                found = [(status.st_mtime, status.st_size, one.path) for one in listing if (status := _status(one))]
        except OSError:
            return
        total = sum(size for _, size, _ in found)
        if total <= most:
            return
        gone = []
        for _, size, path in sorted(found):
            if total <= most * 3 // 4:
                break
            gone.append(path)
            total -= size
        remove(gone)

    def _name(self, entry: Entry, request: Request, pack: Pack) -> str | None:
        """The name of the entry, None for a file that cannot be read."""
        content = self._content(entry.absolute, pack)
        if not content:
            return None
        folder, file = os.path.split(entry.absolute)
        if folder not in self._folders:
            below = os.path.relpath(folder, entry.root)
            self._folders[folder] = ("" if below == "." else below, os.path.relpath(entry.root, request.current))
        below, root = self._folders[folder]
        relative = os.path.join(below, file)  # noqa: PTH118
        how = f"{entry.explicit}\0{request.time_limit}"
        parts = (self.signature, content, relative, root, entry.shown, request.label, how)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest() + _SUFFIX

    def _reads(self, root: str, reads: Iterable[str], pack: Pack) -> dict[str, str]:
        """The states of *reads* in the repository at *root*."""
        states = self._states.setdefault(root, {})
        for relative in reads:
            if relative not in states:
                states[relative] = _state(root, relative, pack)
        return {relative: states[relative] for relative in reads}

    def _content(self, path: str, pack: Pack) -> str:
        states = self._states.setdefault("", {})
        if path not in states:
            states[path] = pack.digest(path)
        return states[path]

    def _is_settled(self, path: str) -> bool:
        """Whether a file, or else the nearest folder that is there, did not change since this lint began."""
        while path not in self._settled:
            try:
                # A link that leads elsewhere now may lead to a file that is old.
                changed = max(os.stat(path).st_ctime, os.lstat(path).st_ctime)  # noqa: PTH116
                self._settled[path] = changed < self._started
            except (OSError, ValueError):
                path = os.path.dirname(path)  # noqa: PTH120
        return self._settled[path]


def _touch(path: str) -> None:
    """Notes that a file is used, once a day."""
    try:
        if time.time() - os.stat(path).st_mtime > _DAY:  # noqa: PTH116
            os.utime(path)
    except OSError:
        return  # another lint removed it


def _state(root: str, relative: str, pack: Pack) -> str:
    """What an analysis learns from one read: the digest of a file or of the names in a folder, or what is there."""
    if relative.endswith("/."):
        return "there" if exists_at(root, relative[:-2]) else ""
    if relative.endswith("/"):
        names = names_in(root, relative)
        return "" if names is None else hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
    path = locate(root, relative)
    return "" if path is None else pack.digest(path) or _UNREADABLE


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False) if entry.is_file(follow_symlinks=False) else None
    except OSError:
        return None


def program_signature() -> str:
    """Stands for the program: its version, its files by size and time, and those of the parsers it uses."""
    package = Path(__file__).parent.parent
    parts: list[object] = [_FORM, __version__, sys.version_info[:3]]
    for folder in ("", "lint", "cells"):
        parts += _files_below(str(package / folder), deep=bool(folder))
    for module in ("ruamel", "_ruamel_yaml", "tree_sitter", "tree_sitter_javascript", "tree_sitter_typescript"):
        found = PathFinder.find_spec(module)
        folders = () if found is None else found.submodule_search_locations or (found.origin or "",)
        for place in folders:
            inner = os.path.join(place, "yaml") if module == "ruamel" else place  # noqa: PTH118
            if os.path.exists(inner):  # noqa: PTH110
                parts.append((module, *_stamp(os.stat(inner))))  # noqa: PTH116
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _files_below(folder: str, *, deep: bool) -> Iterable[object]:
    with os.scandir(folder) as listing:
        for one in sorted(listing, key=lambda entry: entry.name):
            if one.is_dir():
                if deep and one.name != "__pycache__":
                    yield from _files_below(one.path, deep=True)
            elif one.name.endswith((".py", ".json")):
                yield (one.name, *_stamp(one.stat()))


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
