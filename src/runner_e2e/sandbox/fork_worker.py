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
from runner_e2e.sandbox.origin import Origin
from runner_e2e.sandbox.planning import make_plan, modes_of, read_host, survey
from runner_e2e.sandbox.record import Record
from runner_e2e.sandbox.standby import Standby
from runner_e2e.sandbox.surroundings import SurroundingsError, read_surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from runner_e2e.sandbox.request import Kind
    from runner_e2e.sandbox.terminal import Foreground

__all__ = ["TAKEN", "Trade", "load", "work"]

TAKEN = b"t"

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


def work(listening: _socket.socket, news: int, trade: Trade, kind: Kind | None, *, server: int) -> NoReturn:
    """Waits for one client, launches for it, and never returns. For a fresh fork of the server.

    *kind* is that of the launch before: what is needed for another one like it is made now. *news* is the pipe to the
    server: a byte when a client has come, then the kind of its launch.
    """
    status = quick_client.LOST
    try:
        kernel.set_parent_death_signal(_SIGKILL)
        if os.getppid() != server:
            os._exit(0)  # it had gone before
        kernel.default_action(_SIGCHLD)
        kernel.unblock_signals(trade.mask)
        origin = _Client(news, kind, mask=trade.mask)
        with contextlib.suppress(Exception):  # a launch says it, to its client
            _warm()
        descriptor, _ = listening._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - as socket.accept() does
        os.write(news, TAKEN)
        listening.close()
        origin.connection = _socket.socket(fileno=descriptor)
        trusted = _is_alike(origin.connection) and _introduces_itself(origin.connection)
        if origin.send(quick_client.ACCEPTED if trusted else quick_client.DECLINED) and trusted:
            origin.answer(_serve(trade, origin))
        status = 0
    except BaseException:  # noqa: BLE001 - nothing may come back into the caller's code from this fork
        _show_defect()
    os._exit(status)


def _warm() -> None:
    """Goes the way of a launch that starts nothing: what this process shares with the server is copied when written."""
    read_surroundings(os.getpid())
    host = read_host()
    nothing = policy_of(parse_arguments(["--quiet", "--", "true"]), {})
    found = survey(nothing, directory="/", environment={}, user=host.user)
    request.pack(make_plan(found, nothing, (), host=host, mode=modes_of(host)[0], environment={}))
    kernel.prefault()


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
        words = _take_over(origin.connection)
    except (OSError, ValueError):
        return None  # a directory that cannot be entered, a variable without a name: the client says it
    return None if words is None else _launch(words, trade, origin)


def _take_over(connection: _socket.socket) -> tuple[str, ...] | None:
    """Takes the place of the client: its directory, environment and streams. Its words; None when it is gone."""
    head, descriptors = request.receive_descriptors(connection, 8)
    if len(head) < 8 or len(descriptors) != 5:
        return None
    content = request.receive_exactly(connection, int.from_bytes(head, "little"))
    if content is None:
        return None
    words, environment = marshal.loads(content)  # noqa: S302 - from one who could run this code without us
    *streams, directory, life = descriptors
    _end_with(life)
    os.fchdir(directory)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in (*streams, directory):
        os.close(descriptor)
    os.environb.clear()
    os.environb.update(environment)
    return tuple(map(os.fsdecode, words))


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


def _launch(words: Sequence[str], trade: Trade, origin: _Client) -> int | None:
    """The status of the launch; None where the client has to do it."""
    try:
        return command.main(words, [os.fspath(path) for path in trade.runner_files()], origin=origin)
    except DeclinedError:
        return None
    except Exception:  # noqa: BLE001 - as the script itself would end
        _show_defect()
        return 1


def _show_defect() -> None:
    import traceback

    os.write(2, traceback.format_exc().encode())


class DeclinedError(Exception):
    """The client has to launch by itself."""


class _Client(Origin):
    """The process that asks a worker for a launch: what it sends are the signals that come to it."""

    connection: _socket.socket

    def __init__(self, news: int, kind: Kind | None, *, mask: bytes) -> None:
        super().__init__()
        self.mask = mask
        self.news = news
        try:
            self.standby = Standby(kind, mask=mask, warm=True) if kind else None
        except OSError:
            self.standby = None  # the launch tries again, and says why it is refused

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

    def first_processes(self, kind: Kind) -> Standby:
        """Those that stand ready, if they are of that *kind*."""
        if self.news >= 0:
            os.write(self.news, marshal.dumps(tuple(kind.values().values())))
            os.close(self.news)
            self.news = -1
        one, self.standby = self.standby, None
        if one and one.kind == kind and one.lives():
            return one
        if one:
            one.close()
        return super().first_processes(kind)

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
