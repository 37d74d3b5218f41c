"""The kernel's record of every exec below a command, read from ``strace``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

CALLS = "execve,execveat,clone,clone3,fork,vfork"
EXECS = {b"execve", b"execveat"}
CALL = re.compile(rb"(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*)", re.DOTALL)
RESUMED = re.compile(rb"(?P<pid>\d+) +<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)", re.DOTALL)
STRING = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"')
RESULT = re.compile(rb" *= (-?\d+)")
UNFINISHED = b" <unfinished ...>"


@dataclass(frozen=True, kw_only=True)
class Exec:
    """One successful exec. ``order`` counts execs from 0; ``parent`` is the process that made ``pid``, 0 if unknown;
    ``program`` is the path that was executed.
    """

    order: int
    pid: int
    parent: int
    program: str
    argv: tuple[str, ...]
    environ: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Trace:
    execs: tuple[Exec, ...]
    status: int
    output: str


def run_traced(
    command: Sequence[str], *, directory: Path, environ: Mapping[str, str], record: Path, timeout: float
) -> Trace:
    """Runs ``command`` to its end, or kills all of it after ``timeout`` seconds (TimeoutExpired)."""
    strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-v", "-xx", "-s", str(4 << 20)]
    strace += ["-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(record), "--", *command]
    process = subprocess.Popen(
        strace,
        cwd=directory,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    execs = tuple(read_execs(record.read_bytes()))
    if not execs:
        message = f"strace recorded no exec of {command[0]}: {output.decode(errors='replace')[-400:]}"
        raise RuntimeError(message)
    return Trace(execs=execs, status=process.returncode, output=output.decode(errors="replace"))


def read_execs(log: bytes) -> Iterator[Exec]:
    """The successful execs in a log of ``strace -f -v -xx``, in their order."""
    calls = list(finished_calls(log))
    # A vfork returns only after its child's exec, so who made whom is collected first.
    parents = {result: pid for pid, name, _, result in calls if name not in EXECS}
    order = 0
    for pid, name, arguments, result in calls:
        if name not in EXECS or result < 0:
            continue
        path, _, rest = arguments.partition(b"[")
        vectors = rest.split(b"], [", 1)
        program = next(strings(path), "")
        argv = tuple(strings(vectors[0]))
        environ = tuple(strings(vectors[1])) if len(vectors) > 1 else ()
        yield Exec(order=order, pid=pid, parent=parents.get(pid, 0), program=program, argv=argv, environ=environ)
        order += 1


def finished_calls(log: bytes) -> Iterator[tuple[int, bytes, bytes, int]]:
    """Process, name, arguments and result of every call that returned; one split over two lines is joined."""
    unfinished: dict[bytes, bytes] = {}
    for line in log.splitlines():
        resumed = RESUMED.match(line)
        whole = unfinished.pop(resumed["pid"], b"") + resumed["rest"] if resumed else line
        call = CALL.match(whole)
        if not call:
            continue
        if whole.endswith(UNFINISHED):
            unfinished[call["pid"]] = whole.removesuffix(UNFINISHED)
            continue
        arguments, _, result = call["rest"].rpartition(b") ")
        number = RESULT.match(result)
        if number:
            yield int(call["pid"]), call["name"], arguments, int(number[1])


def strings(vector: bytes) -> Iterator[str]:
    for match in STRING.finditer(vector):
        yield bytes.fromhex(match[1].replace(b"\\x", b"").decode()).decode(errors="surrogateescape")
