"""Attempts at hidden files: by path, by another name, by descriptor, by handle, through new namespaces."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import subprocess

from runner_e2e import kernel
from runner_e2e.sandbox.attempts.model import AbsentError, Attempt, Targets

__all__ = ["ATTEMPTS"]

_IO_URING_SETUP, _IO_URING_ENTER = 425, 426
_IORING_OP_OPENAT = 18
_AT_FDCWD = -100


def read(targets: Targets) -> str:
    """Read a hidden file by its path."""
    return _content(targets.secret)


def _content(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4000)


def list_directory(targets: Targets) -> str:
    """List a hidden directory."""
    return _must_name(os.listdir(targets.hidden), targets)


def _must_name(names: list[str], targets: Targets) -> str:
    if os.path.basename(targets.secret) not in names:
        raise OSError(2, "the hidden file is not among the names")
    return " ".join(names)


def stat_entry(targets: Targets) -> str:
    """Ask for size and times of a hidden file."""
    return str(os.stat(targets.secret).st_size)


def access_entry(targets: Targets) -> str:
    """Ask whether a hidden file exists, with access(2)."""
    if not os.access(targets.secret, os.F_OK):
        raise OSError(2, "no")
    return "yes"


def change_mode(targets: Targets) -> str:
    """Change the mode of a hidden file."""
    os.chmod(targets.spare, 0o640)
    return "changed"


def change_times(targets: Targets) -> str:
    """Change the times of a hidden file."""
    os.utime(targets.spare, (1, 1))
    return "changed"


def set_attribute(targets: Targets) -> str:
    """Set an extended attribute on a hidden file."""
    os.setxattr(targets.spare, "user.attempt", b"1")
    return "set"


def statfs_entry(targets: Targets) -> str:
    """Ask which file system a hidden file lies on."""
    return str(os.statvfs(targets.secret).f_blocks)


def read_link(targets: Targets) -> str:
    """Read where a hidden symbolic link leads."""
    return os.readlink(targets.link)


def watch(targets: Targets) -> str:
    """Watch a hidden file with inotify."""
    descriptor = kernel.library_call("inotify_init")
    return str(kernel.library_call("inotify_add_watch", descriptor, os.fsencode(targets.secret), 0x2))


def through_symbolic_link(targets: Targets) -> str:
    """Read a hidden file through a new symbolic link outside."""
    name = f"{targets.scratch}/symbolic-{os.getpid()}"
    os.symlink(targets.secret, name)
    try:
        return _content(name)
    finally:
        os.unlink(name)


def through_hard_link(targets: Targets) -> str:
    """Read a hidden file through a new hard link outside."""
    name = f"{targets.scratch}/hard-{os.getpid()}"
    os.link(targets.secret, name)
    try:
        return _content(name)
    finally:
        os.unlink(name)


def through_rename(targets: Targets) -> str:
    """Move a hidden file outside, and back."""
    name = f"{targets.scratch}/renamed-{os.getpid()}"
    os.rename(targets.spare, name)
    os.rename(name, targets.spare)
    return "moved"


def through_bind_mount(targets: Targets) -> str:
    """Read a hidden file through a bind mount of the directory above it, in a new user and mount namespace."""
    _new_namespaces()
    above = os.path.dirname(targets.hidden)
    kernel.mount(above, targets.scratch, "", kernel.MS_BIND)
    return _content(f"{targets.scratch}/{os.path.basename(targets.hidden)}/{os.path.basename(targets.secret)}")


def through_recursive_bind_mount(targets: Targets) -> str:
    """Read a hidden file through a recursive bind mount of the directory above it, in new namespaces."""
    _new_namespaces()
    above = os.path.dirname(targets.hidden)
    kernel.mount(above, targets.scratch, "", kernel.MS_BIND | kernel.MS_REC)
    return _content(f"{targets.scratch}/{os.path.basename(targets.hidden)}/{os.path.basename(targets.secret)}")


def take_cover_off(targets: Targets) -> str:
    """Unmount whatever covers the hidden directory, in a new user and mount namespace, then read."""
    _new_namespaces()
    with contextlib.suppress(OSError):  # outside there is no cover; inside, reading decides
        kernel.umount(targets.hidden, kernel.MNT_DETACH)
    return _content(targets.secret)


def _new_namespaces() -> None:
    user, group = os.geteuid(), os.getegid()
    if user != 0:
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    else:
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)


def truncate(targets: Targets) -> str:
    """Truncate a hidden file."""
    os.truncate(targets.spare, 0)
    return "truncated"


def write(targets: Targets) -> str:
    """Write into a hidden file."""
    with open(targets.spare, "a") as file:
        file.write("x")
    return "written"


def create(targets: Targets) -> str:
    """Make a new file in a hidden directory."""
    name = f"{targets.hidden}/new-{os.getpid()}"
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    os.unlink(name)
    return "made"


def execute(targets: Targets) -> str:
    """Run a hidden program."""
    done = subprocess.run([targets.program], capture_output=True, text=True, check=False)
    return done.stdout


def reopen_path_descriptor(targets: Targets) -> str:
    """Open a hidden file with O_PATH, then again through /proc/self/fd."""
    descriptor = os.open(targets.secret, os.O_PATH)
    return _content(f"/proc/self/fd/{descriptor}")


def open_by_ring(targets: Targets) -> str:
    """Open a hidden file through io_uring."""
    parameters = bytearray(120)
    try:
        ring = kernel.system_call(_IO_URING_SETUP, 4, parameters)
    except OSError as error:
        if error.errno in {38, 1} and os.geteuid() == 0:
            raise AbsentError("io_uring is switched off") from error
        raise
    words = struct.unpack("<30I", parameters)
    submission, completion = words[10:20], words[20:30]
    size = max(submission[6] + 4 * words[0], completion[5] + 16 * words[1])
    rings = mmap.mmap(ring, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=0)
    entries = mmap.mmap(ring, 64 * words[0], mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=0x10000000)
    path = bytearray(os.fsencode(targets.secret) + b"\0")
    entry = struct.pack("<BBHiQQIIQ", _IORING_OP_OPENAT, 0, 0, _AT_FDCWD, 0, kernel.address_of(path), 0, 0, 0)
    entries[: len(entry)] = entry
    array, tail = submission[6], submission[1]
    rings[array : array + 4] = struct.pack("<I", 0)
    rings[tail : tail + 4] = struct.pack("<I", 1)
    kernel.system_call(_IO_URING_ENTER, ring, 1, 1, 1, None, 0)
    start = completion[5]
    _, result, _ = struct.unpack("<QiI", rings[start : start + 16])
    if result < 0:
        raise OSError(-result, "openat by io_uring")
    return os.read(result, 4000).decode(errors="replace")


def open_by_handle(targets: Targets) -> str:
    """Open a hidden file by its file handle, which needs no path."""
    if not targets.handle:
        raise AbsentError("this file system gives no handles")
    root = os.open("/", os.O_RDONLY)
    mount = os.open(targets.scratch, os.O_RDONLY)
    for directory in (mount, root):
        try:
            handle = bytearray(bytes.fromhex(targets.handle))
            descriptor = kernel.library_call("open_by_handle_at", directory, handle, os.O_RDONLY)
        except OSError as error:
            if error.errno != 116:  # ESTALE: of another file system
                raise
            continue
        return os.read(descriptor, 4000).decode(errors="replace")
    raise OSError(116, "no mount at hand is of its file system")


def inherited_descriptor(targets: Targets) -> str:
    """Read a descriptor that the launcher left open."""
    return os.pread(targets.inherited, 4000, 0).decode(errors="replace")


def reopened_streams(targets: Targets) -> str:
    """Open the standard streams and the working directory again and read what stands there."""
    found = []
    for number in (0, 1, 2):
        path = os.readlink(f"/proc/self/fd/{number}")
        if path.startswith(targets.hidden):
            found.append(_content(f"/proc/self/fd/{number}"))
    if not found:
        raise OSError(2, "no stream is a hidden file")
    return "\n".join(found)


def read_runner_files(targets: Targets) -> str:
    """Read the CI runner's event file, step scripts, file commands and diagnostics."""
    found = [path for path in targets.runner.values() if os.access(path, os.R_OK)]
    if not found:
        raise OSError(13, "none can be read")
    return "\n".join(_content(path) for path in found)


def change_startup_file(targets: Targets) -> str:
    """Add a line to a startup file of the harness."""
    with open(targets.startup_file, "a") as file:
        file.write(": attempt\n")
    return "written"


def replace_startup_file(targets: Targets) -> str:
    """Put another file in the place of a startup file of the harness."""
    other = f"{os.path.dirname(targets.startup_file)}/other-{os.getpid()}"
    with open(other, "w") as file:
        file.write(": replaced\n")
    os.rename(other, targets.startup_file)
    return "replaced"


def make_startup_file(targets: Targets) -> str:
    """Make a startup file of the harness that does not exist yet."""
    with open(targets.missing_startup_file, "w") as file:
        file.write(": made\n")
    return "made"


def add_command(targets: Targets) -> str:
    """Put a program into a directory of the harness's PATH."""
    name = f"{targets.command_directory}/attempt-{os.getpid()}"
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o755))
    return "made"


def add_hook(targets: Targets) -> str:
    """Put a hook into the harness's repository."""
    name = f"{targets.hooks}/attempt-{os.getpid()}"
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o755))
    return "made"


ATTEMPTS = (
    Attempt(name="read", run=read),
    Attempt(name="list", run=list_directory, reads=False),
    Attempt(name="stat", run=stat_entry, reads=False),
    Attempt(name="access", run=access_entry, reads=False),
    Attempt(name="change-mode", run=change_mode, reads=False),
    Attempt(name="change-times", run=change_times, reads=False),
    Attempt(name="set-attribute", run=set_attribute, reads=False),
    Attempt(name="statfs", run=statfs_entry, reads=False),
    Attempt(name="read-link", run=read_link),
    Attempt(name="watch", run=watch, reads=False),
    Attempt(name="symbolic-link", run=through_symbolic_link),
    Attempt(name="hard-link", run=through_hard_link),
    Attempt(name="rename", run=through_rename, reads=False),
    Attempt(name="bind-mount", run=through_bind_mount),
    Attempt(name="recursive-bind-mount", run=through_recursive_bind_mount),
    Attempt(name="uncover", run=take_cover_off),
    Attempt(name="write", run=write, reads=False),
    Attempt(name="create", run=create, reads=False),
    Attempt(name="execute", run=execute),
    Attempt(name="reopen-path-descriptor", run=reopen_path_descriptor),
    Attempt(name="io-uring", run=open_by_ring),
    Attempt(name="file-handle", run=open_by_handle, may_lack=True),
    Attempt(name="inherited-descriptor", run=inherited_descriptor),
    Attempt(name="reopened-streams", run=reopened_streams),
    Attempt(name="runner-files", run=read_runner_files),
    Attempt(name="change-startup-file", run=change_startup_file, reads=False, changes="startup_file"),
    Attempt(name="replace-startup-file", run=replace_startup_file, reads=False, changes="startup_file"),
    Attempt(name="make-startup-file", run=make_startup_file, reads=False, changes="missing_startup_file"),
    Attempt(name="add-command", run=add_command, reads=False, changes="command_directory"),
    Attempt(name="add-hook", run=add_hook, reads=False, changes="hooks"),
    Attempt(name="truncate", run=truncate, reads=False),
)
