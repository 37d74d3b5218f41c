"""What the machine says about the paths of a policy. Reads; decides nothing."""

from __future__ import annotations

import os
import stat

from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    Kind = Literal[
        "directory",
        "file",
        "socket, pipe or device",
        "missing",
        "dangling symbolic link",
        "symbolic links in a circle",
        "unreadable",
        "relative",
    ]

__all__ = ["Mount", "PathFact", "beneath", "observe", "parse_mounts", "read_mounts", "same_or_beneath"]


class PathFact(Record):
    """A path as given, the path it leads to, and the identity of what stands there.

    ``link`` is the first symbolic link on the way and ``link_target`` what it says; both empty without one.
    ``why`` is the kernel's word where the path could not be followed.
    """

    given: str
    real: str
    kind: Kind
    device: int = 0
    inode: int = 0
    links: int = 0
    mode: int = 0
    user: int = 0
    group: int = 0
    link: str = ""
    link_target: str = ""
    why: str = ""

    @property
    def exists(self) -> bool:
        """Whether something stands there that a launch can pin."""
        return self.kind in {"directory", "file", "socket, pipe or device"}


class Mount(Record):
    """One line of ``mountinfo``: where which part of which file system is seen."""

    device: str
    root: str
    point: str
    kind: str
    options: str
    source: str = ""


def beneath(path: str, directory: str) -> bool:
    """Whether *path* lies strictly beneath *directory*; both normalised and absolute."""
    return path != directory and path.startswith(directory if directory == "/" else f"{directory}/")


def same_or_beneath(path: str, directory: str) -> bool:
    """Whether *path* is *directory* or lies beneath it."""
    return path == directory or beneath(path, directory)


def observe(path: str) -> PathFact:
    """Follows *path* and says what stands there; never raises for a bad path."""
    if not path.startswith("/"):
        return PathFact(given=path, real=path, kind="relative")
    if "\0" in path:
        return PathFact(given=path, real=path, kind="missing", why="a path cannot hold a NUL")
    given = os.path.normpath(path)
    given = "/" + given.lstrip("/")
    try:
        real = os.path.realpath(given, strict=True)
        found = os.stat(real)
        readable = os.access(real, os.R_OK, effective_ids=True)
    except OSError as error:
        bad = _failure(error, given)
        link, target = _first_link(given)
        return PathFact(given=given, real=given, kind=bad, link=link, link_target=target, why=error.strerror or "")
    link, target = _first_link(given) if real != given else ("", "")
    kind: Kind = (
        "directory"
        if stat.S_ISDIR(found.st_mode)
        else "file"
        if stat.S_ISREG(found.st_mode)
        else "socket, pipe or device"
    )
    return PathFact(
        given=given,
        real=real,
        kind=kind,
        device=found.st_dev,
        inode=found.st_ino,
        links=found.st_nlink,
        mode=stat.S_IMODE(found.st_mode),
        user=found.st_uid,
        group=found.st_gid,
        link=link,
        link_target=target,
        why="" if readable else "Permission denied",
    )


def _failure(error: OSError, path: str) -> Kind:
    if error.errno == 40:  # ELOOP
        return "symbolic links in a circle"
    if error.errno == 13:  # EACCES
        return "unreadable"
    return "dangling symbolic link" if os.path.islink(path) else "missing"


def _first_link(path: str) -> tuple[str, str]:
    current = ""
    for name in path.split("/")[1:]:
        current += f"/{name}"
        try:
            return current, os.readlink(current)
        except OSError:
            continue
    return "", ""


def read_mounts() -> tuple[Mount, ...]:
    """The mounts this process sees, in the order in which they lie over one another; none without ``/proc``."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return parse_mounts(file)
    except OSError:
        return ()


def parse_mounts(lines: Iterable[str]) -> tuple[Mount, ...]:
    """Parses ``mountinfo`` (proc_pid_mountinfo(5))."""
    mounts = []
    for line in lines:
        fields = line.split()
        if "-" not in fields:
            continue
        rest = fields.index("-")
        mounts.append(
            Mount(
                device=fields[2],
                root=_plain(fields[3]),
                point=_plain(fields[4]),
                kind=fields[rest + 1],
                options=fields[rest + 3] if len(fields) > rest + 3 else "",
                source=_plain(fields[rest + 2]) if len(fields) > rest + 2 else "",
            )
        )
    return tuple(mounts)


def _plain(text: str) -> str:
    """Undoes the octal escapes of space, tab, newline and backslash."""
    if "\\" not in text:
        return text
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, character)
    return text
