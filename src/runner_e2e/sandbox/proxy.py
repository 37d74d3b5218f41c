"""The proxy as a launcher sees it: a process of its own outside, which is handed a connection for each launch.

Through the connection come, from inside, the sockets that the agent knocks at; when the launcher ends its side the
proxy closes them and answers with what was asked for. See :mod:`runner_e2e.egress.server` for the other end.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from runner_e2e.sandbox import request
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.errors import LaunchError

__all__ = ["HELLO", "PYTHON_VARIABLE", "Asked", "Door", "Proxy"]

HELLO = b"proxy 1\n"
# Names the Python that the proxy is installed for, where the launcher runs with another one.
PYTHON_VARIABLE = "RUNNER_E2E_PROXY_PYTHON"
_PATIENCE = 20.0  # seconds for its start, and for its last word
_LONGEST_ANSWER = 1 << 20


class Asked(Record):
    """A host and port that the agent asked the proxy for, how often, and why it was refused ("": it was reached)."""

    host: str
    port: int
    times: int
    refused: str = ""


class Door:
    """One launch's connection to the proxy. ``descriptor`` is handed to the launch."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.descriptor = connection.fileno()

    def end(self) -> tuple[Asked, ...]:
        """Closes the doors of the launch, once it has ended; what was asked for, nothing where the proxy is gone."""
        blocks = []
        with self.connection:
            self.connection.settimeout(_PATIENCE)
            try:
                self.connection.shutdown(socket.SHUT_WR)
                while block := self.connection.recv(_LONGEST_ANSWER):
                    blocks.append(block)
            except OSError:
                return ()
        try:
            return tuple(Asked(**entry) for entry in json.loads(b"".join(blocks)))
        except ValueError:
            return ()


class Proxy:
    """A proxy that allows the hosts of some rules, for any number of launches. Closing it ends it.

    Raises :class:`LaunchError` where it cannot be started.
    """

    def __init__(self, rules: Sequence[str], *, python: str = "") -> None:
        python = python or os.environ.get(PYTHON_VARIABLE, "") or sys.executable
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        code = "import sys; sys.path.insert(0, sys.argv.pop()); from runner_e2e.egress.server import serve; serve()"
        self.connection, theirs = socket.socketpair()
        nothing = subprocess.DEVNULL
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [python, "-I", "-c", code, source],
                    stdin=theirs.fileno(),
                    stdout=nothing,
                    stderr=nothing,
                    cwd="/",
                    env={"HOME": "/"},  # it asks for one, and this user may have none
                    start_new_session=True,  # signals from the terminal are the launcher's to pass on
                )
            except OSError as error:
                self.connection.close()
                raise _not_started(python, error.strerror or str(error)) from error
        try:
            content = json.dumps(list(rules)).encode()
            self.connection.settimeout(_PATIENCE)
            self.connection.sendall(len(content).to_bytes(8, "little") + content)
            answer = self.connection.recv(1000)
            self.connection.settimeout(None)
        except OSError as error:
            answer = str(error).encode()
        if answer != HELLO:
            self.close()
            raise _not_started(python, answer.decode(errors="replace") or "it ended at once")

    def open_door(self) -> Door:
        """The connection of a new launch; raises :class:`LaunchError` when the proxy is gone."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                request.send_descriptors(self.connection, b"l", (theirs.fileno(),))
            except OSError as error:
                ours.close()
                raise _not_started("the proxy", f"it is gone: {error.strerror}") from error
        return Door(ours)

    def close(self) -> None:
        """Ends it, and every connection through it."""
        self.connection.close()
        self.process.kill()
        self.process.wait()


def _not_started(python: str, why: str) -> LaunchError:
    from runner_e2e.errors import LaunchError

    return LaunchError(
        "the proxy to the allowed hosts cannot be started",
        why=f"{python}: {why}",
        fix=f"install runner-e2e-action[network] for that Python, or name one that has it in {PYTHON_VARIABLE}",
    )
