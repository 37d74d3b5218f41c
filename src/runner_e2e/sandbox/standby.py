"""The two processes of a launch, made before it is known what they will run.

The first process and the one that becomes the agent stand in their new namespaces and wait for a request. Nothing that
can grow old is made before it comes: the namespaces are empty, and the mount namespace is copied only then.
"""

from __future__ import annotations

import _socket  # see request.py

from runner_e2e import kernel
from runner_e2e.sandbox import init, request
from runner_e2e.sandbox.events import Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runner_e2e.sandbox.request import Kind, Request

__all__ = ["Standby"]


class Standby:
    """Two waiting processes, and the connection to them."""

    def __init__(self, kind: Kind, *, mask: bytes, warm: bool = False) -> None:
        """Makes them. *mask* is the agent's signal mask. *warm*: the agent's takes the page faults of a launch at once.

        Only in a process with one thread. Raises :class:`OSError` where the namespaces are refused.
        """
        self.kind = kind
        self.connection, theirs = request.pair()
        try:
            self.process = kernel.clone_process(kind.namespaces)
            if self.process == 0:
                init.run(kind, theirs.detach(), mask=mask, warm=warm)
        except OSError:
            self.connection.close()
            raise
        finally:
            theirs.close()

    def launch(self, wanted: Request) -> None:
        """Starts *wanted*, which must be of this kind. The connection is closed from the other end when it runs.

        Processes that have ended are no refusal of the host, after which a weaker way would be tried: the launch fails.
        """
        try:
            request.send(self.connection, wanted)
        except OSError as error:
            why = f"its first processes have ended: {error.strerror}"
            Reporter(wanted.streams.events).tell("failed", 125, "the sandbox could not be set up", why, "")

    def lives(self) -> bool:
        """Whether the process that becomes the agent still waits."""
        try:
            self.connection.recv(1, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        """Lets them go: unused, they end."""
        self.connection.close()
