"""A small prepared process that starts launches for a harness.

Forking a harness copies its page tables and, where it has threads, its locks; starting an interpreter for every launch
costs more than the launch. This process does neither: it is started once, holds nothing, and forks itself. Through
``sudo`` it gives a launcher without rights the strongest way.

Requests are those of :mod:`runner_e2e.sandbox.request`; answers come through the pipe of events.
"""

from __future__ import annotations

import _socket  # see request.py
import gc
import os
import select
import time

from runner_e2e import kernel
from runner_e2e.sandbox import init, inside, mounts, request
from runner_e2e.sandbox.answers import Answers
from runner_e2e.sandbox.events import Reporter
from runner_e2e.sandbox.pace import Pace
from runner_e2e.sandbox.standby import LONGEST_WAIT, Standby, can_be_prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.sandbox.request import Kind, Packed, Start

__all__ = ["HELLO", "command", "serve"]

HELLO = b"sandbox service 1\n"
_SIGCHLD = 17


def command(python: str, *, keep_standby: bool = True) -> list[str]:
    """The command that starts a service whose socket is its standard input."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    code = "import sys; sys.path.insert(0, sys.argv.pop()); from runner_e2e.sandbox.service import serve; "
    code += f"serve(keep_standby={keep_standby})"
    return [python, "-I", "-S", "-c", code, source]


def serve(*, keep_standby: bool = True) -> None:
    """Serves requests from the socket that is standard input until its other end is closed."""
    connection = _socket.socket(fileno=os.dup(0))
    os.set_inheritable(connection.fileno(), False)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    kernel.set_dumpable(dumpable=False)
    # What every launch would do again, in this process once.
    init.hide_arguments()
    inside.drop_bounding_set()
    inside.assemble_filter()
    gc.disable()
    gc.freeze()
    kernel.ignore(_SIGCHLD)
    connection.sendall(HELLO)
    _Service(connection, keep_standby=keep_standby).run()


def _refuse(report: Reporter, error: OSError, layer: str, what: str) -> None:
    """Tells that a way without *layer* has to be tried, or that the host lacks room."""
    if mounts.is_refusal(error):
        report.tell("unavailable", layer, f"{what}: {error.strerror}")
    else:
        report.tell("failed", 125, "no process could be started", error.strerror, mounts.remedy(error))


class _Ready:
    """The processes of a launch, and what was found where their view was made, if that was done before."""

    def __init__(self, standby: Standby) -> None:
        self.standby = standby
        self.answers = Answers()
        self.made = time.monotonic()

    def prepare(self, packed: Packed, maps: Mapping[tuple[int, int], int]) -> None:
        """Lets them make all of a launch by *packed* that needs no streams, where that can be done before."""
        plan = request.Request(packed=packed).plan()
        if not can_be_prepared(plan):
            return
        with self.answers:
            mounts.note_view(plan)
        self.standby.prepare(packed, maps)

    def is_old(self) -> bool:
        """Whether what was prepared has waited for too long."""
        return (time.monotonic() - self.made) * 1000 >= LONGEST_WAIT

    def fits(self, packed: Packed) -> bool:
        """Whether they can become a launch by *packed* as it would be made now.

        Nothing is asked for another launch: it may take long, or never be answered.
        """
        return self.standby.prepared in (None, packed) and self.answers.hold() and self.standby.fits(packed)


class _Service:
    """Starts launches, and in quiet moments makes the processes of the next one."""

    def __init__(self, connection: _socket.socket, *, keep_standby: bool) -> None:
        self.connection = connection
        self.keep_standby = keep_standby
        # They stay blocked: Ctrl-C in a terminal comes to its whole process group, and the harness may need its agents.
        self.mask = kernel.block_signals()
        self.pace = Pace()
        self.ready: dict[Kind, _Ready] = {}
        self.used: dict[Kind, Packed | None] = {}  # the launch to prepare, where one came twice
        self.last: dict[Kind, Packed] = {}
        self.maps: dict[tuple[int, int], dict[tuple[int, int], int]] = {}  # agent -> owner -> descriptor

    def run(self) -> None:
        """Serves until the harness is gone."""
        while True:
            changes = {one.standby.changes: kind for kind, one in self.ready.items() if one.standby.changes >= 0}
            waiting = select.poll()
            waiting.register(self.connection, select.POLLIN)
            for descriptor in changes:
                waiting.register(descriptor, select.POLLPRI)
            ready = dict(waiting.poll(self.pace.patience if self.used else LONGEST_WAIT if changes else None))
            quiet = not ready and bool(self.used)
            for descriptor, kind in changes.items():
                if descriptor in ready or self.ready[kind].is_old():
                    # It keeps mounts and files busy that may be gone.
                    self.ready.pop(kind).standby.close()
                    self.used.setdefault(kind, None)
            if self.connection.fileno() not in ready:
                if quiet:
                    self._replace()
                continue
            try:
                wanted = request.receive(self.connection)
            except OSError:
                self._let_go()
                continue
            if wanted is None or wanted.start is None:
                return
            self.pace.note()
            self._start(wanted.packed, wanted.start)
            wanted.close()

    def _start(self, packed: Packed, start: Start) -> None:
        """Starts one launch; what goes wrong is told through its pipe of events."""
        report = Reporter(start.streams.events)
        kind = packed.kind
        try:
            maps = self._maps(packed)
        except OSError as error:
            _refuse(report, error, "identity", "files cannot be shown as another user's")
            return
        try:
            one = self._processes(packed)
        except OSError as error:
            _refuse(report, error, "mounts", "new namespaces are refused")
            return
        one.launch(packed, start, maps)
        one.close()
        if self.keep_standby:
            self.used[kind] = packed if self.last.get(kind) == packed else None
            self.last[kind] = packed

    def _processes(self, packed: Packed) -> Standby:
        """The processes that stand ready, or new ones where none do that fit, or something has killed them."""
        one = self.ready.pop(packed.kind, None)
        if one and one.fits(packed):
            return one.standby
        if one:
            one.standby.close()
        try:
            return Standby(packed.kind, mask=self.mask)
        except OSError as error:
            if mounts.is_refusal(error) or not self._let_go():
                raise
        return Standby(packed.kind, mask=self.mask)

    def _let_go(self) -> bool:
        """Ends all that stands ready, to make room; whether there was any."""
        for one in self.ready.values():
            one.standby.close()
        found = bool(self.ready)
        self.ready.clear()
        return found

    def _replace(self) -> None:
        """Makes the processes of next launches like those that were started."""
        used, self.used = self.used, {}
        for kind in used.keys() - self.ready.keys():
            packed = used[kind]
            try:
                one = self.ready[kind] = _Ready(Standby(kind, mask=self.mask, ahead=True, warm=packed is None))
                if packed:
                    one.prepare(packed, self._maps(packed))
            except OSError as error:
                if not mounts.is_refusal(error):
                    self._let_go()
                # The next launch tries again, and says why it is refused.

    def _maps(self, packed: Packed) -> dict[tuple[int, int], int]:
        """The namespaces of :func:`mounts.ownership_maps`, each made once for all launches."""
        known = self.maps.setdefault(packed.agent, {})
        missing = [owner for owner in packed.owners if owner not in known]
        known.update(mounts.ownership_maps(missing, agent=packed.agent))
        return {owner: known[owner] for owner in packed.owners}
