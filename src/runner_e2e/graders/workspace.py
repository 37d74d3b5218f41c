"""Looks at a workspace from outside: what stands in it before an agent starts, and what differs afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import ConfigurationError, Place, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["MOST_ENTRIES", "SCHEMA", "Difference", "Entry", "Manifest", "compare", "read_manifest", "take_manifest"]

SCHEMA: Final = "runner-e2e.manifest/v1"
MOST_ENTRIES: Final = 1_000_000
_LARGEST_FILE: Final = 512 << 20
_KINDS: Final = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One thing in a workspace.

    *content* is the SHA-256 of a file or the target of a link; *changed* is the inode's change time in nanoseconds,
    which no program can set back: it also tells of what was made and removed again.
    """

    kind: str
    mode: int
    size: int
    content: str
    changed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """All entries of a workspace by their path below it; the workspace itself is ``.``."""

    entries: Mapping[str, Entry]

    def to_json(self) -> str:
        """The manifest as its file holds it."""
        rows = {
            path: [entry.kind, entry.mode, entry.size, entry.content, entry.changed]
            for path, entry in self.entries.items()
        }
        return json.dumps({"schema": SCHEMA, "entries": rows}, indent=0, ensure_ascii=True) + "\n"


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Difference:
    """*path* was ``created``, ``removed``, ``modified`` or ``touched`` (something in or of it changed meanwhile)."""

    path: str
    what: str


def take_manifest(workspace: Path) -> Manifest:
    """Looks at everything below *workspace*; follows no link. Raises :class:`UsageError`."""
    if not workspace.is_dir():
        raise UsageError(
            f"{workspace} is not a directory", why="a manifest is made of a workspace", fix="give an existing directory"
        )
    entries: dict[str, Entry] = {}
    try:
        _walk(os.fspath(workspace), entries)
    except OSError as error:
        raise UsageError(
            f"{error.filename} cannot be read",
            why=error.strerror or str(error),
            fix="look at the workspace as a user who may read all of it",
        ) from error
    return Manifest(entries=entries)


def compare(before: Manifest, after: Manifest) -> tuple[Difference, ...]:
    """What differs, by path. A directory whose content shows why it changed is not told too."""
    found: list[Difference] = []
    explained: set[str] = set()
    for path in before.entries.keys() | after.entries.keys():
        old, new = before.entries.get(path), after.entries.get(path)
        if old is None or new is None:
            found.append(Difference(path=path, what="created" if old is None else "removed"))
            explained.add(path.rpartition("/")[0] or ".")
        elif (old.kind, old.mode, old.size, old.content) != (new.kind, new.mode, new.size, new.content):
            found.append(Difference(path=path, what="modified"))
        elif old.changed != new.changed:
            found.append(Difference(path=path, what="touched"))
    return tuple(sorted(one for one in found if one.what != "touched" or one.path not in explained))


def read_manifest(path: Path) -> Manifest:
    """Reads a manifest that :func:`take_manifest` made. Raises :class:`ConfigurationError`."""
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        entries = {
            str(name): Entry(kind=str(kind), mode=int(mode), size=int(size), content=str(content), changed=int(changed))
            for name, (kind, mode, size, content, changed) in document["entries"].items()
        }
    except OSError as error:
        raise ConfigurationError(
            "the manifest cannot be read",
            why=error.strerror or str(error),
            fix="make it with `runner-e2e grade manifest` before the agent starts",
            place=Place(path=str(path)),
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigurationError(
            "this is no manifest of a workspace",
            why=str(error),
            fix="make it with `runner-e2e grade manifest` before the agent starts",
            place=Place(path=str(path)),
        ) from error
    return Manifest(entries=entries)


def _walk(root: str, entries: dict[str, Entry]) -> None:
    pending = [(root, ".")]
    while pending:
        path, name = pending.pop()
        status = os.lstat(path)
        if len(entries) >= MOST_ENTRIES:
            raise UsageError(
                f"the workspace holds more than {MOST_ENTRIES:,} entries",
                why="comparing it would not end in reasonable time",
                fix="give the case a smaller workspace",
            )
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
        entries[name] = Entry(
            kind=kind,
            mode=stat.S_IMODE(status.st_mode),
            size=status.st_size if kind in ("file", "link") else 0,
            content=_content(path, kind, status.st_size),
            changed=status.st_ctime_ns,
        )
        if kind == "directory":
            with os.scandir(path) as children:
                pending += [(child.path, child.name if name == "." else f"{name}/{child.name}") for child in children]


def _content(path: str, kind: str, size: int) -> str:
    """What tells two contents apart; a huge file goes by size and change time alone."""
    if kind == "link":
        return os.readlink(path)  # noqa: PTH115 - a text, not a path that is made sense of
    if kind != "file" or size > _LARGEST_FILE:
        return ""
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
