"""What a worker of the fork server has ready for a launch like the last one, while it waits for its client.

The processes of a launch of the same kind; the plan, where the request was kept; and once a request was the same as the
one before, the whole view. It is used only where it is what would be made now.
"""

from __future__ import annotations

import os

from runner_e2e.sandbox import mounts
from runner_e2e.sandbox.expected import Expected, recall
from runner_e2e.sandbox.record import Record
from runner_e2e.sandbox.standby import Standby, can_be_prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.sandbox.expected import Wanted
    from runner_e2e.sandbox.origin import Origin
    from runner_e2e.sandbox.prepared import Prepared
    from runner_e2e.sandbox.request import Kind, Packed

__all__ = ["Last", "Readiness"]


class Last(Record):
    """The launch before: its kind, a file with what was asked for (-1: not kept), and whether that was the same again.

    See :func:`runner_e2e.sandbox.expected.remember`.
    """

    kind: Kind
    wanted: int = -1
    repeated: bool = False


class Readiness:
    """What stands ready."""

    def __init__(self, last: Last | None, *, mask: bytes) -> None:
        self.last = last
        self.mask = mask
        self.expected: Expected | None = None
        self.maps: dict[tuple[int, int], int] = {}
        self.agent = (-1, -1)  # whose maps they are
        self.standby: Standby | None = None
        if last:
            self._make_standby(last.kind, warm=not last.repeated)  # what is prepared has written to its memory by then

    def _make_standby(self, kind: Kind, *, warm: bool) -> None:
        try:
            self.standby = Standby(kind, mask=self.mask, ahead=True, warm=warm)
        except OSError:
            self.standby = None  # the launch tries again, and says why it is refused

    def prepare(self, runner_files: Callable[[], Sequence[os.PathLike[str]]], origin: Origin) -> None:
        """Prepares a launch like the last one; raises whatever that would, and :class:`LookupError` without one."""
        if self.last is None or self.last.wanted < 0:
            raise LookupError
        one = Expected(recall(self.last.wanted), runner_files, origin)
        plan, packed = one.plan()
        self.maps, self.agent = mounts.ownership_maps(packed.owners, agent=packed.agent), packed.agent
        self.expected = one
        if self.last.repeated and self.standby and self.standby.kind == packed.kind and can_be_prepared(plan):
            self.standby.prepare(packed, self.maps)

    def prepared_for(self, wanted: Wanted) -> Prepared | None:
        """What was prepared, if it is that for *wanted*, and none of it has grown old; else it is let go.

        This process must have the environment and the directory of the client.
        """
        if self.expected and self.expected.is_met_by(wanted):
            return self.expected.prepared
        self.expected = None
        self.let_view_go()
        return None

    def let_view_go(self) -> None:
        """Ends the processes of a prepared view."""
        if self.standby and self.standby.prepared:
            self.standby.close()
            self.standby = None

    def renew(self) -> None:
        """Lets a prepared view go, which keeps mounts and files busy that may be gone."""
        kind = self.standby.kind if self.standby else None
        self.let_view_go()
        if kind and self.standby is None:
            self._make_standby(kind, warm=True)

    def take_processes(self, packed: Packed) -> Standby | None:
        """The processes of a launch by *packed*, where they stand ready and live."""
        one, self.standby = self.standby, None
        if one and one.fits(packed):
            return one
        if one:
            one.close()
        return None

    def take_maps(self, packed: Packed) -> dict[tuple[int, int], int] | None:
        """The maps of a launch by *packed*, where they stand ready."""
        maps, self.maps = self.maps, {}
        if packed.agent == self.agent and tuple(maps) == packed.owners:
            return maps
        for descriptor in maps.values():
            os.close(descriptor)
        return None
