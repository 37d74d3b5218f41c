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
from runner_e2e.sandbox import command, expected, quick_client, request
from runner_e2e.sandbox.arguments import parse_arguments, policy_of
from runner_e2e.sandbox.expected import Expected, Wanted
from runner_e2e.sandbox.origin import Origin
from runner_e2e.sandbox.planning import modes_of, read_host
from runner_e2e.sandbox.prepared import prepare
from runner_e2e.sandbox.record import Record
from runner_e2e.sandbox.request import Kind
from runner_e2e.sandbox.standby import Standby
from runner_e2e.sandbox.surroundings import SurroundingsError, read_surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from runner_e2e.sandbox.plan import Plan
    from runner_e2e.sandbox.prepared import Prepared
    from runner_e2e.sandbox.request import Packed
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


class Last(Record):
    """The launch before: its kind, and a file with what was asked for (-1 where it was not kept)."""

    kind: Kind
    wanted: int


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
        with contextlib.suppress(Exception):  # a launch says it, to its client
            if not _comes(listening):
                origin.get_ready(trade)
        descriptor, _ = listening._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - as socket.accept() does
        news.send(TAKEN)
        listening.close()
        origin.connection = _socket.socket(fileno=descriptor)
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
        one = origin.expected
        if one and one.is_met_by(wanted):
            return _launch(words, origin, prepared=one.prepared)
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


def tell(news: _socket.socket, kind: Kind, wanted: Wanted) -> None:
    """Tells the server of a launch that begins; nothing where the server is gone."""
    kept = expected.remember(wanted)
    try:
        request.send_descriptors(news, marshal.dumps(tuple(kind.values().values())), [kept] if kept >= 0 else [])
    except OSError:
        return
    finally:
        if kept >= 0:
            os.close(kept)


def hear(news: _socket.socket) -> tuple[bytes, Last | None]:
    """What the worker at the other end says, nothing once it has ended; and its launch, once it tells that."""
    content, descriptors = request.receive_descriptors(news, _LONGEST_NEWS)
    kind = content.removeprefix(TAKEN)
    if not kind:
        return content, None
    values = dict(zip(Kind.__fields__, marshal.loads(kind), strict=True))  # noqa: S302 - our own fork
    return content, Last(kind=Kind(**values), wanted=descriptors[0] if descriptors else -1)


class DeclinedError(Exception):
    """The client has to launch by itself."""


class _Client(Origin):
    """The process that asks a worker for a launch: what it sends are the signals that come to it."""

    connection: _socket.socket

    def __init__(self, news: _socket.socket, last: Last | None, *, mask: bytes) -> None:
        super().__init__()
        self.mask = mask
        self.news: _socket.socket | None = news
        self.last = last
        self.expected: Expected | None = None
        self.wanted = Wanted(directory=b"", options=(), environment=())
        self.maps: dict[tuple[int, int], int] = {}
        self.agent: tuple[int, int] | None = None
        try:
            self.standby = Standby(last.kind, mask=mask, warm=True) if last else None
        except OSError:
            self.standby = None  # the launch tries again, and says why it is refused

    def get_ready(self, trade: Trade) -> None:
        """Prepares a launch like the last one, or goes the way of one that starts nothing.

        What this process shares with the server is copied when it is written: that takes as long as the rest.
        """
        read_surroundings(os.getpid())
        quick_client.introduction(os.getpid())
        if self.last and self.last.wanted >= 0:
            one = Expected(expected.recall(self.last.wanted), trade.runner_files, self)
            packed = one.plan()[1]
            self.maps, self.agent = super().ownership_maps(packed), packed.agent
            self.expected = one
        else:
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
        maps, self.maps = self.maps, {}
        if packed.agent == self.agent and tuple(maps) == packed.owners:
            return maps
        for descriptor in maps.values():
            os.close(descriptor)
        return super().ownership_maps(packed)

    def first_processes(self, kind: Kind) -> Standby:
        """Those that stand ready, if they are of that *kind*."""
        one, self.standby = self.standby, None
        if one and one.kind == kind and one.lives():
            return one
        if one:
            one.close()
        return super().first_processes(kind)

    def tell_begun(self, kind: Kind) -> None:
        """Tells the server, which makes the next worker."""
        if self.news:
            tell(self.news, kind, self.wanted)
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
