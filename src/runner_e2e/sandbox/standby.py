"""The two processes of a launch, made before it is known what they will run.

The first process and the one that becomes the agent stand in their new namespaces and wait for a request. Nothing that
can grow old is made before it comes: the namespaces are empty, and the mount namespace is copied only then. Unless the
launch is prepared: then all is made that its streams are not needed for, and whoever asked for that has to know whether
it still fits when the launch comes.
"""

from __future__ import annotations

import _socket  # see request.py
import os
import select

from runner_e2e import kernel
from runner_e2e.sandbox import init, inside, request, superuser
from runner_e2e.sandbox.events import Reporter
from runner_e2e.sandbox.facts import read_mounts, same_or_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.sandbox.plan import Plan
    from runner_e2e.sandbox.request import Kind, Packed, Start

__all__ = ["LONGEST_WAIT", "Standby", "can_be_prepared"]

# Milliseconds that a prepared launch is kept. What it shows stays on the disk as long, though it be removed; and to a
# harness that launches less often it saves nothing that counts.
LONGEST_WAIT = 10_000
_PATIENCE = 1000  # milliseconds for processes that still make what a launch needs
_LONGEST = 1 << 16  # what the kernel tells in one piece is shorter
_CONTROL_GROUPS = "/proc/self/cgroup"
# Kinds of file systems, by how they begin, for which another process or machine answers: late perhaps, or never.
_ANSWERED_ELSEWHERE = ("9p", "afs", "ceph", "cifs", "fuse", "lustre", "nfs", "smb", "virtiofs")


def can_be_prepared(plan: Plan) -> bool:
    """Whether a launch by *plan* can be made before it is asked for, up to its streams.

    Not where it would be seen outside, where it needs a proxy or a terminal, or depends on what else runs, on devices
    that come and go, or on a file system that may not answer: this process waits for no launch.
    """
    apart = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID
    alone = plan.namespaces & apart == apart and not superuser.stays_root(plan)
    own = not (plan.doors or plan.terminal or "processes" in dict(plan.limits))
    return alone and own and not _depends_on_others(plan)


def _depends_on_others(plan: Plan) -> bool:
    """Whether something that *plan* names lies where another process or machine answers; if all does, it has to."""
    points = [mount.point for mount in read_mounts() if mount.kind.startswith(_ANSWERED_ELSEWHERE)]
    return any(same_or_beneath(step.path, point) for point in points if point != "/" for step in plan.steps)


def _control_groups() -> bytes:
    """Those of this process; nothing where the kernel does not tell."""
    try:
        descriptor = os.open(_CONTROL_GROUPS, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)


class Standby:
    """Two waiting processes, and the connection to them."""

    def __init__(self, kind: Kind, *, mask: bytes, ahead: bool = False, warm: bool = False) -> None:
        """Makes them. *mask* is the agent's signal mask. *warm*: the agent's takes the page faults of a launch at once.

        *ahead*: no launch waits for them, so they do not wait for room. Only in a process with one thread. Raises
        :class:`OSError` where the namespaces are refused.
        """
        self.kind = kind
        self.prepared: Packed | None = None
        self.changes = -1  # can be read (POLLPRI) when mounts change of which a prepared launch has a copy,
        self.losses = -1  # and when the copy itself changes: what was mounted on something goes with it
        self.control_groups = _control_groups()
        self.connection, theirs = request.pair()
        try:
            make = kernel.clone_process
            self.process = make(kind.namespaces) if ahead else init.when_there_is_room(make, kind.namespaces)
            if self.process == 0:
                init.run(kind, theirs.detach(), mask=mask, warm=warm)
        except OSError:
            self.connection.close()
            raise
        finally:
            theirs.close()

    def prepare(self, packed: Packed, maps: Mapping[tuple[int, int], int]) -> None:
        """Makes what a launch by *packed* needs, which must be of this kind; only such a one can then be launched.

        Processes that cannot do it end. Raises :class:`OSError` where they have ended.
        """
        changes = os.open(inside.MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        try:
            request.send(self.connection, request.Request(packed=packed, maps=maps))
        except OSError:
            os.close(changes)
            raise
        self.prepared, self.changes = packed, changes

    def fits(self, packed: Packed) -> bool:
        """Whether they can start a launch by *packed*: they live, and were prepared for nothing, or for all of it.

        Then no mount has changed since, if only for a moment: what is gone may be in the copy, or uncovered in it. And
        whoever moved this process to other control groups meant its launches, too.
        """
        if self.control_groups != _control_groups():
            return False
        if self.prepared:
            return self.prepared == packed and self._is_made() and not self._mounts_have_changed() and self.lives()
        return self.kind == packed.kind and self.lives()

    def _is_made(self) -> bool:
        """Whether all of a prepared launch is made, which may still be under way."""
        if self.losses >= 0:
            return True
        waiting = select.poll()
        waiting.register(self.connection, select.POLLIN)
        if not waiting.poll(_PATIENCE):
            return False
        try:
            _, found = request.receive_descriptors(self.connection, len(inside.PREPARED))
        except OSError:
            return False
        self.losses = next(iter(found), -1)
        return self.losses >= 0

    def _mounts_have_changed(self) -> bool:
        waiting = select.poll()
        for descriptor in (self.changes, self.losses):
            waiting.register(descriptor, select.POLLPRI)
        return bool(waiting.poll(0))

    def launch(self, packed: Packed, start: Start, maps: Mapping[tuple[int, int], int]) -> None:
        """Starts a launch by *packed*, which must be of this kind, with *maps* for its owners.

        Processes that have ended are no refusal of the host, after which a weaker way would be tried: the launch fails.
        """
        try:
            if self.prepared:
                request.send_start(self.connection, start)
            else:
                request.send(self.connection, request.Request(packed=packed, start=start, maps=maps))
        except OSError as error:
            why = f"its first processes have ended: {error.strerror}"
            Reporter(start.streams.events).tell("failed", 125, "the sandbox could not be set up", why, "")

    def lives(self) -> bool:
        """Whether the process that becomes the agent still waits."""
        try:
            self.connection.recv(1, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:  # it has ended before it heard all
            return False
        return False

    def close(self) -> None:
        """Lets them go: unused, they end."""
        self.connection.close()
        for descriptor in (self.changes, self.losses):
            if descriptor >= 0:
                os.close(descriptor)
        self.changes = self.losses = -1
