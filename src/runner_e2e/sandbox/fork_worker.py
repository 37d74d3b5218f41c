"""One launch for a client of the fork server, in a process of its own that was made before the client came."""

from __future__ import annotations

import _socket  # see request.py
import contextlib
import fcntl
import marshal
import os
import select
import struct

from runner_e2e import kernel
from runner_e2e.sandbox import command, quick_client, request
from runner_e2e.sandbox.arguments import parse_arguments, policy_of
from runner_e2e.sandbox.expected import Wanted, recall, remember
from runner_e2e.sandbox.origin import Origin
from runner_e2e.sandbox.planning import modes_of, read_host
from runner_e2e.sandbox.prepared import prepare
from runner_e2e.sandbox.readiness import Last, Readiness
from runner_e2e.sandbox.record import Record
from runner_e2e.sandbox.request import Kind
from runner_e2e.sandbox.standby import LONGEST_WAIT
from runner_e2e.sandbox.surroundings import SurroundingsError, read_surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from runner_e2e.sandbox.plan import Plan
    from runner_e2e.sandbox.prepared import Prepared
    from runner_e2e.sandbox.request import Packed
    from runner_e2e.sandbox.standby import Standby
    from runner_e2e.sandbox.terminal import Foreground

__all__ = ["Last", "Trade", "hear", "load", "work"]

TAKEN = b"t"
_LONGEST_NEWS = 256

_SO_PEERPIDFD = 77  # Linux 6.5
_SIGCHLD, _SIGKILL = 17, 9
_MOST_SIGNALS = 512
_PATIENCE = 2.0  # seconds for a client to begin


class Trade(Record):
    """What workers are told: the signal mask of agents, and how to find the CI runner's own files."""

    mask: bytes
    runner_files: Callable[[], Sequence[os.PathLike[str]]]


def load() -> None:
    """Imports now what only some launches need, for all workers."""
    from runner_e2e import errors  # noqa: F401
    from runner_e2e.sandbox import hosts, launcher, layouts, limits, policy_json, report, watch  # noqa: F401


def work(listening: _socket.socket, news: _socket.socket, trade: Trade, last: Last | None, *, server: int) -> NoReturn:
    """Waits for one client, launches for it, and never returns. For a fresh fork of the server.

    What is needed for another launch like the *last* is made now. *news* leads to the server: a byte when a client has
    come, then what the next worker is told of its launch.
    """
    status = quick_client.LOST
    try:
        kernel.set_parent_death_signal(_SIGKILL)
        if os.getppid() != server:
            os._exit(0)  # it had gone before
        kernel.default_action(_SIGCHLD)
        kernel.unblock_signals(trade.mask)
        origin = _Client(news, last, mask=trade.mask)
        if not _comes(listening):
            origin.get_ready(trade)
        origin.connection = _accept(listening, origin.ready)
        news.send(TAKEN)
        listening.close()
        trusted = _is_alike(origin.connection) and _introduces_itself(origin.connection)
        if origin.send(quick_client.ACCEPTED if trusted else quick_client.DECLINED) and trusted:
            origin.answer(_serve(trade, origin))
        status = 0
    except BaseException:  # noqa: BLE001 - nothing may come back into the caller's code from this fork
        _show_defect()
    os._exit(status)


def _plan_nothing() -> Plan:
    nothing = policy_of(parse_arguments(["--quiet", "--", "true"]), {})
    host = read_host()
    return prepare(nothing, host=host, directory="/", environment={}).plan(modes_of(host)[0], ())[0]


def _comes(listening: _socket.socket) -> bool:
    """Whether a client waits already: it would wait for what may not even be its launch."""
    waiting = select.poll()
    waiting.register(listening, select.POLLIN)
    return bool(waiting.poll(0))


def _accept(listening: _socket.socket, ready: Readiness) -> _socket.socket:
    """Waits for a client, and lets go what grows old."""
    waiting = select.poll()
    waiting.register(listening, select.POLLIN)
    while ready.standby and ready.standby.changes >= 0:
        waiting.register(ready.standby.changes, select.POLLPRI)
        found = dict(waiting.poll(LONGEST_WAIT))
        if found and ready.standby.changes not in found:
            break
        waiting.unregister(ready.standby.changes)
        if listening.fileno() in found:
            ready.let_view_go()
        else:
            ready.renew()
    descriptor, _ = listening._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - as socket.accept() does
    return _socket.socket(fileno=descriptor)


def _is_alike(connection: _socket.socket) -> bool:
    """Whether the client is in the same surroundings as this process, so that it gains nothing by a launch from here.

    An agent that found a way to the socket is not: it has other namespaces, another user, or fewer privileges.
    """
    try:
        process, _, _ = struct.unpack("3i", connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
        life = connection.getsockopt(_socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError:
        return False  # without it, its number may be another's by now
    try:
        alike = process > 0 and read_surroundings(process) == read_surroundings(os.getpid())
    except SurroundingsError:
        return False
    ended = select.poll()
    ended.register(life, select.POLLIN)
    alike = alike and not ended.poll(0)
    os.close(life)
    return alike


def _introduces_itself(connection: _socket.socket) -> bool:
    """Whether the client sends what this process would send: its standard input is still the server's."""
    expected = quick_client.introduction(os.getpid())
    try:
        connection.settimeout(_PATIENCE)
        sent = request.receive_exactly(connection, len(expected))
        connection.settimeout(None)
    except OSError:
        return False
    return sent == expected


def _serve(trade: Trade, origin: _Client) -> int | None:
    """The status of the launch; None where nothing was begun, and the client has to do it."""
    try:
        content = _take_over(origin.connection)
        if content is None:
            return None
        packed, environment = marshal.loads(content)  # noqa: S302 - from one who could run this code without us
        words = tuple(map(os.fsdecode, packed))
        options = packed[: packed.index(b"--")] if b"--" in packed else packed
        wanted = origin.wanted = Wanted(directory=_directory(), options=options, environment=environment)
        if prepared := origin.ready.prepared_for(wanted):
            return _launch(words, origin, prepared=prepared)
        wanted.enter()
    except (OSError, ValueError):
        return None  # a directory that cannot be entered, a variable without a name: the client says it
    return _launch(words, origin, [os.fspath(path) for path in trade.runner_files()])


def _take_over(connection: _socket.socket) -> bytes | None:
    """Takes the place of the client: its directory and streams. What it sent; None when it is gone."""
    head, descriptors = request.receive_descriptors(connection, 8)
    if len(head) < 8 or len(descriptors) != 5:
        return None
    content = request.receive_exactly(connection, int.from_bytes(head, "little"))
    if content is None:
        return None
    *streams, directory, life = descriptors
    _end_with(life)
    os.fchdir(directory)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in (*streams, directory):
        os.close(descriptor)
    return content


def _directory() -> bytes:
    try:
        return os.getcwdb()
    except OSError:
        return b""  # it was removed: the launch says it


def _end_with(life: int) -> None:
    """The kernel kills this process when the other end of the pipe *life* closes, whatever it waits for by then.

    So it ends with the client, as the client would end as launcher: what is begun ends, what is not does not begin.
    """
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETSIG, _SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETFL, os.O_ASYNC)
    closed = select.poll()
    closed.register(life, 0)
    if closed.poll(0):
        os._exit(quick_client.LOST)  # before there was that signal


def _launch(
    words: Sequence[str], origin: _Client, also_hide: Sequence[str] = (), prepared: Prepared | None = None
) -> int | None:
    """The status of the launch; None where the client has to do it."""
    try:
        return command.main(words, also_hide, origin=origin, prepared=prepared)
    except DeclinedError:
        return None
    except Exception:  # noqa: BLE001 - as the script itself would end
        _show_defect()
        return 1


def _show_defect() -> None:
    import traceback

    os.write(2, traceback.format_exc().encode())


def tell(news: _socket.socket, kind: Kind, wanted: Wanted, last: Last | None) -> None:
    """Tells the server of a launch that begins after the *last*; nothing where the server is gone."""
    repeated = last is not None and last.wanted >= 0 and recall(last.wanted) == wanted
    kept = remember(wanted)
    content = marshal.dumps((tuple(kind.values().values()), repeated))
    try:
        request.send_descriptors(news, content, [kept] if kept >= 0 else [])
    except OSError:
        return
    finally:
        if kept >= 0:
            os.close(kept)


def hear(news: _socket.socket) -> tuple[bytes, Last | None]:
    """What the worker at the other end says, nothing once it has ended; and its launch, once it tells that."""
    content, descriptors = request.receive_descriptors(news, _LONGEST_NEWS)
    told = content.removeprefix(TAKEN)
    if not told:
        return content, None
    kind, repeated = marshal.loads(told)  # noqa: S302 - our own fork
    wanted = descriptors[0] if descriptors else -1
    return content, Last(kind=Kind(**dict(zip(Kind.__fields__, kind, strict=True))), wanted=wanted, repeated=repeated)


class DeclinedError(Exception):
    """The client has to launch by itself."""


class _Client(Origin):
    """The process that asks a worker for a launch: what it sends are the signals that come to it."""

    connection: _socket.socket

    def __init__(self, news: _socket.socket, last: Last | None, *, mask: bytes) -> None:
        super().__init__()
        self.mask = mask
        self.news: _socket.socket | None = news
        self.wanted: Wanted | None = None
        self.last = last
        self.ready = Readiness(last, mask=mask)

    def get_ready(self, trade: Trade) -> None:
        """Prepares a launch like the last one, or goes the way of one that starts nothing.

        What this process shares with the server is copied when it is written: that takes as long as the rest.
        """
        with contextlib.suppress(Exception):  # a launch says it, to its client
            read_surroundings(os.getpid())
            quick_client.introduction(os.getpid())
            try:
                self.ready.prepare(trade.runner_files, self)
            except Exception:  # noqa: BLE001 - as above
                request.pack(_plan_nothing())
            kernel.prefault()

    def block_signals(self) -> None:
        """Blocks those that come to this process, until it has told how the command ended."""
        kernel.block_signals()

    def close(self) -> None:
        """They stay blocked."""

    def open(self) -> int:
        """The connection."""
        return self.connection.fileno()

    def pass_on(self, control: int, _: Foreground | None) -> bool:
        """Sends on what came."""
        message = self.connection.recv(_MOST_SIGNALS)
        if not message:
            os._exit(quick_client.LOST)  # the client is gone: see above
        try:
            os.write(control, message)
        except BrokenPipeError:
            return False
        return True

    def erase(self, _: Sequence[str]) -> None:
        """Only the client can take a variable out of its own memory."""
        raise DeclinedError

    def ownership_maps(self, packed: Packed) -> dict[tuple[int, int], int]:
        """Those that stand ready, if they are the same."""
        maps = self.ready.take_maps(packed)
        return super().ownership_maps(packed) if maps is None else maps

    def first_processes(self, packed: Packed) -> Standby:
        """Those that stand ready, if they are for this launch."""
        return self.ready.take_processes(packed) or super().first_processes(packed)

    def tell_begun(self, packed: Packed) -> None:
        """Tells the server, which makes the next worker."""
        if self.news and self.wanted:
            tell(self.news, packed.kind, self.wanted, self.last)
            self.news.close()
            self.news = None

    def collect(self, process: int) -> None:
        """Leaves it to the server: the client need not wait for the end of a process that has told everything."""

    def answer(self, status: int | None) -> None:
        """Tells the client how its command ended, or that it has to launch by itself. Its streams are closed before."""
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        self.send(quick_client.DECLINED if status is None else quick_client.ENDED + bytes([status & 0xFF]))

    def send(self, answer: bytes) -> bool:
        """Whether the client is still there to hear it."""
        try:
            self.connection.sendall(answer)
        except OSError:
            return False
        return True
