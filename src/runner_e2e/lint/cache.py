"""Results of earlier lints, kept by everything that they depend on.

The name of an entry is a digest of the file's content, of how it is linted, and of the program itself. In it stand the
digests of all other files that the analysis asked for, also of those that were not there, so a result is used again
only when every one of them is as it was. Entries are data, not code; each is written whole under another name and then
renamed, and holds a digest of itself, so two lints may share a folder and a damaged entry counts as none.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e import __version__
from runner_e2e.errors import UsageError
from runner_e2e.lint.files import exists_at, locate, names_in
from runner_e2e.lint.result import from_data, to_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.lint.request import Entry, Request
    from runner_e2e.lint.result import FileResult

__all__ = ["MAX_BYTES", "Cache", "default_folder", "open_cache"]

MAX_BYTES = 64 << 20
"""When entries take more, the ones that were not used for the longest time go, until they take three quarters."""

_FORM = 1
"""Changes when the form of an entry does."""

_DAY = 86_400.0
_SUFFIX = ".json"


def default_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of a user's caches (XDG Base Directory Specification) with ours in it; None without a home."""
    given = environ.get("XDG_CACHE_HOME", "")
    if given.startswith("/"):
        return Path(given) / "runner-e2e" / "lint"
    home = environ.get("HOME", "")
    return Path(home) / ".cache" / "runner-e2e" / "lint" if home.startswith("/") else None


def open_cache(folder: Path | None, *, chosen: bool) -> Cache | None:
    """The cache in *folder*, which is made; None where it cannot be written, unless a user has *chosen* it.

    Raises :class:`~runner_e2e.errors.UsageError` for a chosen folder that cannot be used.
    """
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        usable, why = os.access(folder, os.W_OK | os.X_OK), "it cannot be written"
    except OSError as error:
        usable, why = False, error.strerror or str(error)
    if usable:
        return Cache(folder)
    if not chosen:
        return None
    raise UsageError(f"{folder} cannot hold the cache", why=why, fix="choose another --cache-dir, or use --no-cache")


class Cache:
    """The entries in *folder*. *signature* stands for the program that made them, *started* is when this lint began.

    ``found`` and ``written`` count entries.
    """

    def __init__(self, folder: Path, *, signature: str | None = None, started: float | None = None) -> None:
        self.folder = str(folder)
        self.signature = program_signature() if signature is None else signature
        self.found = 0
        self.written = 0
        # What changed while this lint ran may have been read before and digested after: no result of it is kept.
        # The clock of file systems may be one tick behind.
        self._started = time.time() - 0.02 if started is None else started
        self._digests: dict[tuple[str, str], str] = {}
        self._settled: dict[str, bool] = {}
        self._folders: dict[str, tuple[str, str]] = {}

    def find(self, entry: Entry, request: Request) -> FileResult | None:
        """The result that is kept for *entry*, None where there is none that holds."""
        name = self._name(entry, request)
        if name is None:
            return None
        path = f"{self.folder}/{name}"
        try:
            with open(path, "rb") as stream:  # noqa: PTH123 - a few thousand times in a tenth of a second
                digest, _, body = stream.read().partition(b"\n")
                age = time.time() - os.fstat(stream.fileno()).st_mtime
            if digest != hashlib.sha256(body).hexdigest().encode():
                return None
            data = json.loads(body)
            root = str(entry.root)
            if any(self._digest(root, relative) != known for relative, known in data["reads"].items()):
                return None
            result = from_data(data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if age > _DAY:
            self._touch(path)
        self.found += 1
        return result

    def keep(self, entry: Entry, request: Request, result: FileResult) -> None:
        """Keeps *result*, if it is one that the same files always have."""
        name = self._name(entry, request)
        if name is None or not result.complete or result.defects:
            return
        root = str(entry.root)
        reads = {relative: self._digest(root, relative) for relative in result.reads}
        if not all(self._is_settled(path) for path in (str(entry.path), *(f"{root}/{one}" for one in reads))):
            return
        body = json.dumps({**to_data(result), "reads": reads}, separators=(",", ":")).encode()
        temporary = f"{self.folder}/.{os.getpid()}-{os.urandom(8).hex()}"
        try:
            with open(temporary, "xb") as stream:  # noqa: PTH123
                stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            os.replace(temporary, f"{self.folder}/{name}")  # noqa: PTH105
        except OSError:
            # A full disk or a folder that is gone costs the next lint its time, and nothing else.
            _remove([temporary])
            return
        self.written += 1

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
        _remove(gone)

    def _name(self, entry: Entry, request: Request) -> str | None:
        """The name of the entry, None for a file that cannot be read."""
        content = self._content(entry.absolute)
        if not content:
            return None
        folder, file = os.path.split(entry.absolute)
        if folder not in self._folders:
            below = os.path.relpath(folder, entry.root)
            self._folders[folder] = (below, os.path.relpath(entry.root, request.current))
        below, root = self._folders[folder]
        relative = os.path.normpath(os.path.join(below, file))  # noqa: PTH118
        parts = [
            self.signature, content, relative, root, entry.shown, request.label, entry.explicit, request.time_limit,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest() + _SUFFIX

    def _digest(self, root: str, relative: str) -> str:
        """The state of one read in the repository at *root*."""
        key = (root, relative)
        if key not in self._digests:
            self._digests[key] = _state(root, relative)
        return self._digests[key]

    def _content(self, path: str) -> str:
        key = ("", path)
        if key not in self._digests:
            self._digests[key] = _digest_of(path)
        return self._digests[key]

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

    @staticmethod
    def _touch(path: str) -> None:
        try:
            os.utime(path)
        except OSError:
            return  # another lint removed it


def _state(root: str, relative: str) -> str:
    """What an analysis learns from one read: the digest of a file or of the names in a folder, or what is there."""
    if relative.endswith("/."):
        return "there" if exists_at(root, relative[:-2]) else ""
    if relative.endswith("/"):
        names = names_in(root, relative)
        return "" if names is None else hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
    path = locate(root, relative)
    return "" if path is None else _digest_of(path)


def _digest_of(path: str) -> str:
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            return hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        return ""


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False) if entry.is_file(follow_symlinks=False) else None
    except OSError:
        return None


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)  # noqa: PTH108
        except OSError:
            continue  # another lint was quicker


def program_signature() -> str:
    """Stands for the program: its version, its files by size and time, and those of the parsers it uses."""
    package = Path(__file__).parent.parent
    parts: list[object] = [_FORM, __version__, sys.version_info[:3]]
    for folder in ("", "lint", "cells"):
        parts += _files_below(str(package / folder), deep=bool(folder))
    for module in ("ruamel", "_ruamel_yaml", "tree_sitter", "tree_sitter_javascript"):
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
