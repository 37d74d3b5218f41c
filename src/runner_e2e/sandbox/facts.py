"""What the machine says about the paths of a policy. Reads; decides nothing."""

from __future__ import annotations

import errno
import os
import stat

from runner_e2e.sandbox.answers import access, ask, lstat
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

__all__ = [
    "Mount",
    "PathFact",
    "beneath",
    "is_link",
    "is_there",
    "observe",
    "parse_mounts",
    "read_mounts",
    "same_or_beneath",
]

_MOST_LINKS = 40  # as the kernel


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
        real, (mode, device, inode, user, group, _) = _follow(given)
        readable = ask(access, real, os.R_OK)
    except OSError as error:
        bad = _failure(error, given)
        link, target = _first_link(given)
        return PathFact(given=given, real=given, kind=bad, link=link, link_target=target, why=error.strerror or "")
    link, target = _first_link(given) if real != given else ("", "")
    kind: Kind = "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "socket, pipe or device"
    return PathFact(
        given=given,
        real=real,
        kind=kind,
        device=device,
        inode=inode,
        mode=stat.S_IMODE(mode),
        user=user,
        group=group,
        link=link,
        link_target=target,
        why="" if readable else "Permission denied",
    )


def _follow(path: str) -> tuple[str, tuple[int, int, int, int, int, int]]:
    """Where *path*, normalised and absolute, leads, and the state of what stands there; raises :class:`OSError`."""
    pending = path.split("/")[:0:-1]
    real, state, links = "", ask(lstat, "/"), 0
    while pending:
        name = pending.pop()
        if name in {"", "."}:
            continue
        if name == "..":
            real = real.rpartition("/")[0]
            state = ask(lstat, real or "/")
            continue
        state = ask(lstat, f"{real}/{name}")
        if not stat.S_ISLNK(state[0]):
            real = f"{real}/{name}"
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = ask(os.readlink, f"{real}/{name}")
        if target.startswith("/"):
            real, state = "", ask(lstat, "/")
        pending += target.split("/")[::-1]
    return real or "/", state


def _failure(error: OSError, path: str) -> Kind:
    if error.errno == errno.ELOOP:
        return "symbolic links in a circle"
    if error.errno == errno.EACCES:
        return "unreadable"
    return "dangling symbolic link" if is_link(path) else "missing"


def _first_link(path: str) -> tuple[str, str]:
    current = ""
    for name in path.split("/")[1:]:
        current += f"/{name}"
        try:
            return current, ask(os.readlink, current)
        except OSError:
            continue
    return "", ""


def is_there(path: str) -> bool:
    """Whether anything stands at *path* itself, be it a link that leads nowhere."""
    try:
        ask(lstat, path)
    except (OSError, ValueError):
        return False
    return True


def is_link(path: str) -> bool:
    """Whether *path* itself is a symbolic link."""
    try:
        return stat.S_ISLNK(ask(lstat, path)[0])
    except (OSError, ValueError):
        return False


def read_mounts() -> tuple[Mount, ...]:
    """The mounts this process sees, in the order in which they lie over one another; none without ``/proc``."""
    try:
        return parse_mounts(ask(_mount_lines))
    except OSError:
        return ()


def _mount_lines() -> tuple[str, ...]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return tuple(file)


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
