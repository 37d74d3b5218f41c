"""Opens an artifact once, pins which file it is, and refuses what must never be launched in any way.

Everything later works on the descriptor: whatever happens to the path afterwards does not matter.
"""

from __future__ import annotations

import errno
import os
import stat

from runner_e2e.errors import CommandNotExecutableError, CommandNotFoundError, LaunchError
from runner_e2e.sandbox.record import Record

__all__ = ["Opened", "inherited_descriptor", "kernel_path", "open_artifact"]

_DESCRIPTOR_PATHS = ("/proc/self/fd/", "/dev/fd/")


class Opened(Record):
    """An artifact open for reading. ``identity`` changes when the file is replaced or written."""

    path: str
    descriptor: int
    device: int
    size: int
    identity: tuple[int, ...]

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.descriptor)

    def unchanged(self) -> bool:
        """Whether the open file still has the size and times that it had when it was opened."""
        return _identity(os.fstat(self.descriptor)) == self.identity


def inherited_descriptor(path: str) -> int | None:
    """N where *path* is exactly ``/proc/self/fd/N`` (or ``/dev/fd/N``): what a launch hands to nested ones."""
    for prefix in _DESCRIPTOR_PATHS:
        number = path.removeprefix(prefix)
        if number != path and number.isascii() and number.isdigit():
            return int(number)
    return None


def kernel_path(descriptor: int) -> str:
    """What the kernel calls the open file: the path through the mount that it was opened by."""
    return os.readlink(f"/proc/self/fd/{descriptor}")


def open_artifact(path: str) -> Opened:
    """Opens *path* without following a final symbolic link and judges the file that is now open.

    Raises :class:`CommandNotFoundError` for no such file, :class:`CommandNotExecutableError` for one that this user
    may not read or nobody may execute, and :class:`LaunchError` for what is no regular file or is writable by group
    or others.
    """
    pinned = _pin(path)
    try:
        facts = os.fstat(pinned)
        _judge(path, facts)
        # A path descriptor opens nothing: no device wakes up and no pipe blocks before the type is known.
        descriptor = os.open(f"/proc/self/fd/{pinned}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CommandNotExecutableError(
            f"{path} cannot be read",
            why=error.strerror or str(error),
            fix="give this user the right to read it: its content is what is launched",
        ) from error
    finally:
        os.close(pinned)
    return Opened(path=path, descriptor=descriptor, device=facts.st_dev, size=facts.st_size, identity=_identity(facts))


def _pin(path: str) -> int:
    """A path descriptor of what stands at *path*; of the open file itself for an inherited descriptor."""
    number = inherited_descriptor(path)
    follow = 0 if number is not None else os.O_NOFOLLOW
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC | follow)
    except FileNotFoundError as error:
        why = f"descriptor {number} is not open in this process" if number is not None else "there is no such file"
        fix = "pass the descriptor on to this process" if number is not None else "check the path"
        raise CommandNotFoundError(f"{path} cannot be opened", why=why, fix=fix) from error
    except NotADirectoryError as error:
        raise CommandNotFoundError(
            f"{path} cannot be opened", why="a part of it is not a directory", fix="check the path"
        ) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        fix = "give this user the right to reach it" if getattr(error, "errno", 0) == errno.EACCES else "check the path"
        raise CommandNotExecutableError(f"{path} cannot be opened", why=why, fix=fix) from error


def _judge(path: str, facts: os.stat_result) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise LaunchError(
            f"{path} is refused",
            why="it is a symbolic link, which may lead elsewhere at the next launch",
            fix="name the file that it leads to",
        )
    if not stat.S_ISREG(facts.st_mode):
        raise LaunchError(f"{path} is refused", why="it is not a regular file", fix="name an executable file")
    if writers := [
        whom for bit, whom in ((stat.S_IWGRP, "its group"), (stat.S_IWOTH, "everybody")) if facts.st_mode & bit
    ]:
        raise LaunchError(
            f"{path} is refused", why=f"it can be written by {' and '.join(writers)}", fix=f"chmod go-w {path}"
        )
    if not facts.st_mode & 0o111:
        raise CommandNotExecutableError(
            f"{path} cannot be executed", why="its mode lets nobody execute it", fix=f"chmod a+x {path}"
        )


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
