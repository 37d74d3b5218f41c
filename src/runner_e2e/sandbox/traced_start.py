"""First program under the tracer: plants an exec that the audit must see, then becomes the audited command.

Run by :mod:`runner_e2e.sandbox.tracer` as ``python3 -I -S traced_start.py SOCKET TRACE``. What to run comes through
the socket, so that neither the tracer's command line nor its environment holds anything of the command; standard
input, output and error come the same way, so that the tracer does not keep them open. Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys

__all__ = ["FIELD", "main"]

# Arguments and variables hold any byte but this one.
FIELD = b"\0"


def receive(control: socket.socket) -> tuple[list[bytes], list[int]]:
    """The fields of the request, and the descriptors that came with it."""
    first, descriptors, _, _ = socket.recv_fds(control, 8, 253)
    length = int.from_bytes(first, "big")
    content = bytearray()
    while len(content) < length:
        chunk = control.recv(length - len(content))
        if not chunk:
            os._exit(125)
        content += chunk
    return bytes(content).split(FIELD), descriptors


def take_list(fields: list[bytes]) -> list[bytes]:
    """Takes a count and as many fields off the front."""
    count = int(fields.pop(0))
    taken = fields[:count]
    del fields[:count]
    return taken


def environment(entries: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for entry in entries:
        name, _, value = entry.partition(b"=")
        found.setdefault(name, value)
    return found


def plant(program: bytes, arguments: list[bytes], entries: list[bytes]) -> None:
    """Runs the planted program to its end."""
    child = os.posix_spawn(program, arguments, environment(entries))
    os.waitpid(child, 0)


def place(descriptors: list[int], targets: list[int]) -> None:
    """Gives each received descriptor the number that the command expects it at."""
    # What the command is not given is /dev/null, as it is here already but for the tracer's own standard error.
    os.dup2(1, 2)
    above = max([2, *targets, *descriptors]) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, target in zip(moved, targets, strict=True):
        os.dup2(descriptor, target, inheritable=True)


def main(arguments: list[str]) -> None:
    """Never returns: the process becomes the command, or ends with 127 (the trace says why the exec failed)."""
    control = socket.socket(fileno=int(arguments[0]))
    os.close(int(arguments[1]))
    fields, descriptors = receive(control)
    control.close()
    directory, program, targets, blocked = (fields.pop(0) for _ in range(4))
    plant(fields.pop(0), take_list(fields), take_list(fields))
    command, entries = take_list(fields), take_list(fields)
    place(descriptors, [int(number) for number in targets.split()])
    os.chdir(directory)
    # Python ignores these from its start; the command must find them as the caller had them.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, {int(number) for number in blocked.split()})
    try:
        os.execve(program, command, environment(entries))  # noqa: S606 - becoming the command is the point
    except OSError:
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
