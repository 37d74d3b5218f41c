"""The launch that a worker of the fork server expects: one like the last, prepared before its client comes.

It is used where the options, the environment and the directory are the same to the last byte, and the machine answers
all that was asked for it as it did. Only the command may be another one.
"""

from __future__ import annotations

import marshal
import os

from runner_e2e.sandbox import command
from runner_e2e.sandbox.answers import Answers, ask
from runner_e2e.sandbox.arguments import parse_arguments
from runner_e2e.sandbox.facts import is_there
from runner_e2e.sandbox.mounts import note_view
from runner_e2e.sandbox.planning import modes_of, read_host
from runner_e2e.sandbox.prepared import prepare
from runner_e2e.sandbox.progress import Ways
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.sandbox.arguments import Request
    from runner_e2e.sandbox.origin import Origin
    from runner_e2e.sandbox.plan import Plan
    from runner_e2e.sandbox.prepared import Prepared
    from runner_e2e.sandbox.request import Packed

__all__ = ["Expected", "Wanted", "recall", "remember"]

_LONGEST = 1 << 20  # what is remembered stays in memory


class Wanted(Record):
    """What a client asks for, but for the command: where it is, and the options and the environment that it sent."""

    directory: bytes
    options: tuple[bytes, ...]
    environment: tuple[tuple[bytes, bytes], ...]

    def enter(self) -> None:
        """Gives this process the environment of the client."""
        os.environb.clear()
        os.environb.update(self.environment)


def remember(wanted: Wanted) -> int:
    """A file that holds *wanted*, or -1: in memory, but not in that of a process that lives as long as an agent."""
    content = marshal.dumps(tuple(wanted.values().values()))
    if len(content) > _LONGEST:
        return -1
    descriptor = -1
    try:
        descriptor = os.memfd_create("wanted", os.MFD_CLOEXEC)
        if os.write(descriptor, content) == len(content):
            return descriptor
    except OSError:  # no descriptor, no memory, or a limit on the size of files
        pass
    if descriptor >= 0:
        os.close(descriptor)
    return -1


def recall(descriptor: int) -> Wanted:
    """What :func:`remember` made *descriptor* of."""
    directory, options, environment = marshal.loads(os.pread(descriptor, _LONGEST, 0))  # noqa: S302 - our own
    return Wanted(directory=directory, options=options, environment=environment)


class Expected:
    """A request that was prepared. Nothing was made on disk for it, and no signal sent."""

    def __init__(self, wanted: Wanted, runner_files: Callable[[], Sequence[os.PathLike[str]]], origin: Origin) -> None:
        """Prepares *wanted* in this process, which takes its environment.

        Raises whatever its launch would, and :class:`LookupError` where that would first make directories.
        """
        self.wanted = wanted
        self.answers = Answers()
        wanted.enter()
        here = os.open(".", os.O_PATH | os.O_CLOEXEC)
        try:
            os.chdir(wanted.directory)
            with self.answers:
                self.prepared = self._prepare(runner_files, origin)
        finally:
            os.fchdir(here)  # not to keep a file system busy until a client comes
            os.close(here)

    def _prepare(self, runner_files: Callable[[], Sequence[os.PathLike[str]]], origin: Origin) -> Prepared:
        also_hide = [os.fspath(path) for path in ask(runner_files)]
        policy = command.policy_for(self._request(), also_hide, origin)
        if not all(map(is_there, (*policy.create, *policy.create_files))):
            raise LookupError
        return prepare(policy, host=read_host())

    def _request(self) -> Request:
        return parse_arguments([*map(os.fsdecode, self.wanted.options), "--", "any"])

    def plan(self) -> tuple[Plan, Packed]:
        """The plan of the first way that is tried."""
        ways = Ways(self.prepared.policy, modes_of(self.prepared.host))
        with self.answers:
            plan, packed = self.prepared.plan(ways.mode, ways.reasons())
            note_view(plan)
        return plan, packed

    def is_met_by(self, wanted: Wanted) -> bool:
        """Whether *wanted* is what was expected, on a machine that has not changed for it.

        This process must have the environment and the directory of the client.
        """
        return wanted == self.wanted and self.answers.hold()
