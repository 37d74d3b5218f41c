"""What planning asks the machine, and whether the machine would say the same now.

A launch depends on the machine through these answers alone: a plan that was made ahead is as good as one made now where
each of them would be the same.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, TypeVar, TypeVarTuple

    Answer = TypeVar("Answer")
    Arguments = TypeVarTuple("Arguments")

__all__ = ["Answers", "access", "ask", "lstat", "note", "read_bytes", "read_text"]


class Answers:
    """The answers that were given while this was entered. Each question is then asked once."""

    def __init__(self) -> None:
        # By function and arguments: what it returned, and the number of the error where it raised one.
        self.known: dict[tuple[Callable[..., Any], tuple[Any, ...]], tuple[Any, int]] = {}

    def __enter__(self) -> Self:
        global _open  # noqa: PLW0603 - of a process with one thread, which makes one plan at a time
        _open = self
        return self

    def __exit__(self, *_: object) -> None:
        global _open  # noqa: PLW0603 - as above
        _open = None

    def hold(self) -> bool:
        """Asks everything again; whether all of it is answered as it was."""
        return all(_answer(function, arguments) == answer for (function, arguments), answer in self.known.items())


_open: Answers | None = None


def ask(function: Callable[[*Arguments], Answer], *arguments: *Arguments) -> Answer:
    """What *function* answers about the machine; its :class:`OSError` is raised. Others are not remembered."""
    if _open is None:
        return function(*arguments)
    question = (function, arguments)
    if question not in _open.known:
        _open.known[question] = _answer(function, arguments)
    answer, number = _open.known[question]
    if number:
        raise OSError(number, os.strerror(number), str(arguments[0]) if arguments else None)
    return answer  # type: ignore[no-any-return]


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, int]:
    try:
        return function(*arguments), 0
    except OSError as error:
        return None, error.errno or errno.EIO


def note(function: Callable[[*Arguments], object], *arguments: *Arguments) -> None:
    """Asks only for the answer to be remembered, be it an error."""
    try:
        ask(function, *arguments)
    except OSError:
        return


def lstat(path: str) -> tuple[int, int, int, int, int, int]:
    """Mode, device, inode, user and group of what stands at *path* itself, and how many names it has.

    Of a directory, which has one, the last is 0: file systems count there what is in it.
    """
    found = os.lstat(path)
    names = 0 if stat.S_ISDIR(found.st_mode) else found.st_nlink
    return found.st_mode, found.st_dev, found.st_ino, found.st_uid, found.st_gid, names


def access(path: str, mode: int) -> bool:
    """Whether this process may use *path* so (access(2)), by its effective ids."""
    return os.access(path, mode, effective_ids=True)


def read_bytes(path: str) -> bytes:
    """All of a file; raises :class:`OSError`."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def read_text(path: str) -> str:
    """All of a file; raises :class:`OSError` or :class:`UnicodeDecodeError`."""
    with open(path, encoding="utf-8") as file:
        return file.read()
