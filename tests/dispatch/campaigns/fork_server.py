"""A process that has loaded the client, and forks one for every connection: a start takes milliseconds.

Its standard output tells how each of them ended, a line each: ``PID STATUS SECONDS``, the status as ``wait4`` gives it
and the processor's time. By then the kernel has closed the files of that process and given back its locks. It ends with
its standard input.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys

from tests.dispatch.campaigns import client_process


def main(path: str) -> int:
    """Serves at the socket *path*."""
    client_process.load()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(8)
        signal.signal(signal.SIGCHLD, report_ends)
        gc.collect()
        gc.freeze()
        os.write(1, b"ready\n")
        while True:
            ready, _, _ = select.select([server.fileno(), 0], [], [])
            if server.fileno() not in ready:
                return 0
            connection, _ = server.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    server.close()
                    connection.sendall(os.getpid().to_bytes(4, "big"))
                    client_process.main(connection)


def report_ends(*_: object) -> None:
    """Says which children ended, and how."""
    while True:
        try:
            pid, status, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        os.write(1, f"{pid} {status} {used.ru_utime + used.ru_stime:.4f}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
