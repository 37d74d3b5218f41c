"""Asks a fork server for a launch: what the quick entry script does where there is one.

Nothing is imported here that this does not need, and all of it is part of the interpreter but ``_socket``: the launch
itself takes less time than `os` and `socket`. So the script can load this file alone, without the packages around it.
"""

from __future__ import annotations

import _socket
import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any
else:
    import _signal

__all__ = ["ACCEPTED", "DECLINED", "ENDED", "LOST", "SERVER_PREFIX", "SERVER_VARIABLE", "ask", "introduction"]

# Holds the path of the socket, whose name is the process id of the server.
SERVER_VARIABLE = "RUNNER_E2E_SANDBOX_SERVER"
SERVER_PREFIX = "runner-e2e-"  # of the name of the directory that was made for it

# What the server says, a byte each: yes, no, and how the command ended (its status follows). What it hears after the
# request are signals, two bytes each: the number, and whether it is for the whole group.
ACCEPTED, DECLINED, ENDED = b"a", b"d", b"e"
_PATIENCE = 2.0  # seconds for an answer of a server that was stopped or is out of memory
_LONGEST_ADDRESS = 100  # of the 108 bytes that a socket's address has room for

_SIGCONT, _SIGSTOP, _SIGTSTP = 18, 19, 20
# Nothing to pass on: faults of this process itself, what cannot be caught, children, and what Python ignores.
_OWN = frozenset({4, 5, 7, 8, 9, 11, 13, 17, 19, 25, 31})
LOST = 125  # the status where it is not known how the command ended


def ask(server: bytes, arguments: Sequence[str]) -> int | None:
    """Launches with *arguments* through the *server* at that path, and returns the status of the command.

    None where there is no server, or one that does not launch for this process: then nothing was started. With a
    status this process has only to end, and is deaf to most signals.
    """
    if _has_terminal() or not _has_streams():
        return None  # only a process of a terminal can carry it, and what is closed is for the launcher to refuse
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        process = int(server.rpartition(b"/")[2])
        connection.settimeout(_PATIENCE)
        connection.connect(_address(server))
        if _listener(connection) != process:
            return None  # somebody put another socket there, to be told what this process tells the server
        connection.send(introduction(process))
    except (OSError, ValueError):
        return None
    signals = _Signals(connection)
    status = None
    # Nothing is sent before: a server that does not answer would keep the streams open, whoever launches then.
    if _receive(connection) == ACCEPTED:
        connection.settimeout(None)
        status = _launch(connection, arguments, signals)
    if status is None:
        signals.give_back()
    return status


def introduction(server: int) -> bytes:
    """What a client of the process *server* sends first: a token, and what this process alone is sure to see of itself.

    The token is in a file without a name, the server's standard input. The kernel lets those open it that may look
    into the server: not another user, nor a process with fewer privileges, in another user namespace, or behind a wall
    of Landlock that the server is not behind. A personality(2) is shown to those that may trace a process (ptrace(2)),
    which Yama refuses to all but its ancestors.
    """
    found = b""
    for path in (f"/proc/{server}/fd/0", "/proc/self/personality"):
        with open(path, "rb", buffering=0) as file:
            found += file.read()
    return found


def _listener(connection: _socket.socket) -> int:
    """The process that listens at the other end."""
    credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little")


def _launch(connection: _socket.socket, arguments: Sequence[str], signals: _Signals) -> int | None:
    """The status of the launch; None where none was begun."""
    try:
        _send(connection, arguments)
    except OSError:
        return None  # the server is gone, and had not heard all
    signals.begin()
    answer = _receive(connection, 2)
    if answer[:1] == ENDED and (status := answer[1:] or _receive(connection)):
        return status[0]
    if answer == DECLINED:
        return None
    # Whether it had begun is not known, so it is not started again. The command ends with its server.
    posix.write(2, b"agent_sandbox: the fork server ended during the launch, and the command with it\n")
    return LOST


def _receive(connection: _socket.socket, most: int = 1) -> bytes:
    """What comes next, at most so many bytes; none once the server is gone."""
    try:
        return connection.recv(most)
    except OSError:
        return b""


def _has_terminal() -> bool:
    try:
        posix.close(posix.open("/dev/tty", posix.O_RDONLY | posix.O_CLOEXEC))
    except OSError:
        return posix.isatty(0)
    return True


def _has_streams() -> bool:
    """Whether all three are open: what is opened now would stand in the place of one that is not."""
    try:
        for number in (0, 1, 2):
            posix.fstat(number)
    except OSError:
        return False
    return True


def _address(path: bytes) -> bytes:
    """*path*, or a short way to it: the kernel takes no long one."""
    if len(path) < _LONGEST_ADDRESS:
        return path
    directory, _, name = path.rpartition(b"/")
    return b"/proc/self/fd/%d/%b" % (posix.open(directory or b".", posix.O_PATH | posix.O_CLOEXEC), name)


def _send(connection: _socket.socket, arguments: Sequence[str]) -> None:
    """Sends the request: eight bytes of length with five descriptors, then the words and the environment.

    The last descriptor is of a pipe whose other end closes with this process, and only then.
    """
    # As bytes: the server's locale is not this process's.
    encoding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    words = tuple(word.encode(encoding, errors) for word in arguments)
    content = marshal.dumps((words, tuple(posix.environ.items())), 2)
    here = posix.open(".", posix.O_PATH | posix.O_CLOEXEC)
    life, _ = posix.pipe2(posix.O_CLOEXEC)
    # Packed without `struct`, which would have to be imported: the other end is request.receive_descriptors.
    numbers = b"".join(number.to_bytes(4, "little") for number in (0, 1, 2, here, life))
    connection.sendmsg([len(content).to_bytes(8, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
    connection.sendall(content)
    posix.close(here)
    posix.close(life)


class _Signals:
    """Sends what comes to this process to the command. What came to one that is not launched here comes again."""

    def __init__(self, connection: _socket.socket) -> None:
        self.connection = connection
        self.begun = False
        self.pending: list[int] = []
        self.former: dict[int, Any] = {}
        for number in range(1, _signal.NSIG):
            if number in _OWN:
                continue
            try:
                action = _signal.getsignal(number)
                if action != _signal.SIG_IGN:
                    _signal.signal(number, self.handle)
                    self.former[number] = action
            except (OSError, ValueError):
                continue  # the C library's own

    def handle(self, number: int, _: FrameType | None) -> None:
        """Sends one signal on, or keeps it until the launch is asked for."""
        if not self.begun:
            self.pending.append(number)
        elif number == _SIGTSTP:
            self.send(_SIGSTOP, group=True)
            posix.kill(posix.getpid(), _SIGSTOP)
            self.send(_SIGCONT, group=True)
        else:
            self.send(number)

    def begin(self) -> None:
        """Sends from now on, first what was kept."""
        self.begun = True
        while self.pending:
            self.handle(self.pending.pop(0), None)

    def send(self, signal: int, *, group: bool = False) -> None:
        """Sends one; to a server that is gone, nothing."""
        try:
            self.connection.send(bytes([signal, group]))
        except OSError:
            return

    def give_back(self) -> None:
        """Lets them come to this process as before, first those that were not sent."""
        self.connection.close()
        for number, action in self.former.items():
            _signal.signal(number, action)
        for number in self.pending:
            posix.kill(posix.getpid(), number)
