"""What a process hands on to its children, as ``/proc`` shows it: to launch for another process, both must be alike.

An agent in a sandbox differs in it, too: in its namespaces, its user, its filters of system calls or its privileges.
"""

from __future__ import annotations

import os

from runner_e2e import kernel

__all__ = ["SurroundingsError", "read_surroundings"]

# Lines of /proc/<pid>/status (proc_pid_status(5)). A tracer is among them: what it is to see must be its tracee's.
_STATUS = frozenset(
    {
        b"CapAmb",
        b"CapBnd",
        b"CapEff",
        b"CapInh",
        b"CapPrm",
        b"Cpus_allowed",
        b"Gid",
        b"Groups",
        b"Mems_allowed",
        b"NoNewPrivs",
        b"Seccomp",
        b"Seccomp_filters",
        b"SigBlk",
        b"SigIgn",
        b"TracerPid",
        b"Uid",
        b"Umask",
    }
)
_FILES = ("cgroup", "limits", "oom_score_adj")
# Not there everywhere: no security module, or a kernel built without them. All are shown to every process that may
# read the memory of the other; what takes the right to trace it is not among them, see quick_client.py.
_FILES_OF_SOME = ("attr/current", "coredump_filter")
_LONGEST = 1 << 16  # each of these files is made by the kernel in one piece, and is much shorter
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_NAMESPACE_OF_SOME = "ns/time"  # Linux 5.6


class SurroundingsError(Exception):
    """The kernel does not tell."""


def read_surroundings(process: int) -> dict[str, bytes]:
    """What is known of *process*, by the name of each fact; raises :class:`SurroundingsError`."""
    place = f"/proc/{process}"
    try:
        found = {name: _read(f"{place}/{name}") for name in _FILES}
        for line in _read(f"{place}/status").splitlines():
            word, _, value = line.partition(b":")
            if word in _STATUS:
                found[word.decode()] = value
        for name in _NAMESPACES:
            found[f"ns/{name}"] = os.fsencode(os.readlink(f"{place}/ns/{name}"))
        root = os.stat(f"{place}/root")
        found["root"] = b"%d:%d" % (root.st_dev, root.st_ino)
        found["nice"] = b"%d" % os.getpriority(os.PRIO_PROCESS, process)
        priority = os.sched_getparam(process).sched_priority
        found["scheduler"] = b"%d:%d" % (os.sched_getscheduler(process), priority)
        found["io"] = b"%d" % kernel.io_priority(process)
    except OSError as error:
        raise SurroundingsError(str(error)) from error
    for name in (*_FILES_OF_SOME, _NAMESPACE_OF_SOME):
        try:
            path = f"{place}/{name}"
            found[name] = os.fsencode(os.readlink(path)) if name == _NAMESPACE_OF_SOME else _read(path)
        except OSError as error:
            found[name] = b"errno %d" % (error.errno or 0)
    return found


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)
