"""Changed files on disk: what changes as a patch, and writing it without ever leaving half a file."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError, Place, RefusedError
from runner_e2e.lint.repository import find_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from runner_e2e.lint.fix import Change

__all__ = ["unified_diff", "write_changes"]

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_NEEDS_QUOTES = re.compile(r"[\"\\\x00-\x1f\x7f]")


def unified_diff(changes: Iterable[Change]) -> str:
    """All *changes* as one patch that ``git apply`` and ``patch -p1`` take; line ends are those of the files."""
    return "".join(line for change in changes for line in _diff(change))


def _diff(change: Change) -> Iterator[str]:
    lines = difflib.unified_diff(
        _LINE.findall(change.before),
        _LINE.findall(change.after),
        _name("a", change.shown),
        _name("b", change.shown),
    )
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _name(side: str, path: str) -> str:
    """The path as git writes it: in quotes where it has to be, with a tab after a space."""
    name = f"{side}/{path.lstrip('/')}"
    if _NEEDS_QUOTES.search(name):
        return '"' + _NEEDS_QUOTES.sub(lambda found: f"\\{ord(found[0]):03o}", name) + '"'
    return f"{name}\t" if " " in name else name


def write_changes(changes: Sequence[Change]) -> None:
    """Writes all files, each at once and with the mode it had, or none when one of them may not be written.

    Raises :class:`~runner_e2e.errors.RefusedError` for a symbolic link and for a file that lies outside of its
    repository; :class:`~runner_e2e.errors.ConfigurationError` for one that is read-only, that has changed since it was
    read, or that cannot be written.
    """
    for change in changes:
        _check(change)
    for change in changes:
        place = Place(path=change.shown)
        try:
            _replace(change.path, change.after.encode("utf-8"))
        except OSError as error:
            raise ConfigurationError(
                f"cannot write the file: {error.strerror or error}", fix="check the folder's permissions", place=place
            ) from None


def _check(change: Change) -> None:
    place = Place(path=change.shown)
    if change.location.is_symlink():
        raise RefusedError("a symbolic link is not fixed", fix="name the file it stands for", place=place)
    root = find_root(change.location).resolve()
    if root not in change.path.parents:
        raise RefusedError(
            "the file lies outside of its repository",
            why=f"a folder on its path is a symbolic link that leaves {root}",
            fix=f"name it by its own path: {change.path}",
            place=place,
        )
    try:
        data, mode = change.path.read_bytes(), change.path.stat().st_mode
    except OSError as error:
        raise ConfigurationError(
            "cannot read the file", why=error.strerror or str(error), fix="make it readable", place=place
        ) from None
    if not mode & _WRITABLE:
        raise ConfigurationError("the file is read-only", fix=f"chmod u+w {change.shown}", place=place)
    if data != change.before.encode("utf-8"):
        raise ConfigurationError("the file has changed since it was read", fix="run it again", place=place)


def _replace(path: Path, data: bytes) -> None:
    """Puts a file with *data* in the place of the one at *path*: readers see the old text or the new one."""
    old = path.stat()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                # Only the superuser may give files away; for others the file becomes theirs, as with any editor.
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
