"""Lets a process check that its parent runs the expected artifact.

Two forms count. A *sealed snapshot*: a memory file with every seal. A *file*: one regular file with a single name.
In both, it must be the very inode that the kernel calls the parent's executable, and its whole content must hash to
the expected digest. Nothing is believed for its name.
"""

from __future__ import annotations

import os
import select
import stat

from runner_e2e.artifacts.launch import RUNTIME_VARIABLE, parse_digest
from runner_e2e.artifacts.opening import inherited_descriptor
from runner_e2e.artifacts.sealed import digest_of, is_sealed_memory
from runner_e2e.errors import FailedError, LaunchError
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Form = Literal["sealed-snapshot", "file"]

__all__ = ["Parent", "check_parent"]


class Parent(Record):
    """A process whose runtime was checked, and the form in which it runs."""

    pid: int
    form: Form
    sha256: str


def check_parent(
    *, sha256: str, pid: int | None = None, runtime: str | None = None, form: Form | None = None
) -> Parent:
    """Checks the executable of process *pid* (default: this process's parent).

    *runtime* is a path or ``/proc/self/fd/N`` that must be that executable too; by default it is what
    ``PAPERCLIP_VERIFIED_RUNTIME_EXECUTABLE`` names, where that is set. *form* refuses the other form.

    Raises :class:`FailedError` when the process runs something else, :class:`LaunchError` when it cannot be asked.
    """
    digest = parse_digest(sha256)
    process = os.getppid() if pid is None else pid
    own_parent = process == os.getppid()
    try:
        handle = os.pidfd_open(process)
    except OSError as error:
        raise _not_asked(process, error) from error
    try:
        executable = _open(f"/proc/{process}/exe", process)
        try:
            found = _form(executable, process)
            if form and found != form:
                raise _wrong(process, f"it runs from a {_NAMES[found]}, not from a {_NAMES[form]}")
            named = os.environ.get(RUNTIME_VARIABLE) if runtime is None else runtime
            if named:
                _compare_runtime(named, executable, process)
            if (actual := _digest(executable, process)) != digest:
                raise _wrong(process, f"the SHA-256 of its executable is {actual}, not {digest}")
            if found == "file":
                _form(executable, process)  # a second name may have come while it was hashed
            _still_runs(process, handle, executable, own_parent=own_parent)
        finally:
            os.close(executable)
    finally:
        os.close(handle)
    return Parent(pid=process, form=found, sha256=digest)


_NAMES = {"sealed-snapshot": "sealed snapshot", "file": "file"}


def _open(path: str, process: int) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _not_asked(process, error) from error


def _form(executable: int, process: int) -> Form:
    if is_sealed_memory(executable):
        return "sealed-snapshot"
    facts = os.fstat(executable)
    if not stat.S_ISREG(facts.st_mode):
        raise _wrong(process, "its executable is not a regular file")
    if facts.st_nlink != 1:
        what = "was removed, or is a memory file without all seals" if not facts.st_nlink else "has more than one name"
        raise _wrong(process, f"its executable {what}")
    return "file"


def _compare_runtime(runtime: str, executable: int, process: int) -> None:
    """The handed runtime must be the parent's executable itself, not a copy or a namesake."""
    follow = 0 if inherited_descriptor(runtime) is not None else os.O_NOFOLLOW
    try:
        descriptor = os.open(runtime, os.O_PATH | os.O_CLOEXEC | follow)
    except (OSError, ValueError) as error:
        raise LaunchError(
            f"the runtime {runtime} cannot be opened",
            why=getattr(error, "strerror", None) or str(error),
            fix="pass the descriptor on to this process, or name the right file",
        ) from error
    try:
        if not os.path.sameopenfile(descriptor, executable):
            raise _wrong(process, f"its executable is another file than {runtime}")
    finally:
        os.close(descriptor)


def _digest(executable: int, process: int) -> str:
    before = os.fstat(executable)
    try:
        found = digest_of(executable)
    except OSError as error:
        raise _not_asked(process, error) from error
    after = os.fstat(executable)
    if (before.st_size, before.st_mtime_ns, before.st_ctime_ns) != (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    ):
        raise _wrong(process, "its executable changed while it was hashed")
    return found


def _still_runs(process: int, handle: int, executable: int, *, own_parent: bool) -> None:
    """The number must mean the same process at the end, and that process must not have become another program."""
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    try:
        now = os.stat(f"/proc/{process}/exe")
    except OSError as error:
        raise _not_asked(process, error) from error
    facts = os.fstat(executable)
    if ended.poll(0) or (own_parent and os.getppid() != process):
        raise _wrong(process, "it ended while it was checked")
    if (now.st_dev, now.st_ino) != (facts.st_dev, facts.st_ino):
        raise _wrong(process, "it became another program while it was checked")


def _wrong(process: int, why: str) -> FailedError:
    return FailedError(
        f"process {process} does not run the expected artifact", why=why, fix="do not work for it; launch it anew"
    )


def _not_asked(process: int, error: OSError) -> LaunchError:
    return LaunchError(
        f"the executable of process {process} cannot be examined",
        why=error.strerror or str(error),
        fix="check as the same user, while the process runs; it must be allowed to be traced",
    )
