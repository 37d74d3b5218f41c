"""A server that keeps a worker ready for the next launch of a harness in any language.

The quick entry script asks it instead of loading this product anew: see :mod:`runner_e2e.sandbox.quick_client`. Each
launch is made by a fork of its own, as the script would make it: in its directory, with its environment and streams.

It lives as long as the harness for which it was started. Whoever it serves can launch as the harness can. So it serves
only processes in surroundings like its own that the kernel would also let look into its memory. The directory of its
socket is hidden from the agents of all launches below it.
"""

from __future__ import annotations

import _socket  # see request.py
import gc
import os
import select

from runner_e2e import kernel
from runner_e2e.sandbox import fork_worker, init, inside, request
from runner_e2e.sandbox.pace import QUIET, Pace
from runner_e2e.sandbox.quick_client import SERVER_PREFIX, SERVER_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from runner_e2e.sandbox.readiness import Last

__all__ = ["HELLO", "become_harness", "command", "serve", "start"]

HELLO = b"sandbox fork server 1\n"
_LONGEST_NUMBER = 20
_TOKEN_BYTES = 32
_WAITING = 128
_SIGCHLD, _SIGKILL, _SIGPIPE, _SIGXFSZ = 17, 9, 13, 25
_PAUSE = 200  # milliseconds until it is tried again when the host has no room for a process


def command(python: str, directory: str, *, harness: int) -> list[str]:
    """The command that starts a server for the process *harness*, in the *directory*; it says hello on its output."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from runner_e2e import gha; "
        "from runner_e2e.sandbox.fork_server import serve; "
        "serve(sys.argv[2], harness=int(sys.argv[3]), runner_files=gha.runner_files)"
    )
    return [python, "-I", "-S", "-c", code, source, directory, str(harness)]


def become_harness(words: Sequence[str], *, python: str) -> NoReturn:
    """Starts a server and becomes the harness that *words* name, which finds it in its environment.

    Raises :class:`LaunchError` (125) where no server starts, :class:`CommandNotExecutableError` (126) or
    :class:`CommandNotFoundError` (127) where there is no such harness; the server then ends with this process.
    """
    from runner_e2e import errors

    environment = {**os.environ, SERVER_VARIABLE: start(python)}
    for signal in (_SIGPIPE, _SIGXFSZ):
        kernel.default_action(signal)  # Python ignores them, and an exec would pass that on
    try:
        os.execvpe(words[0], list(words), environment)  # noqa: S606 - this process becomes it
    except FileNotFoundError as error:
        why = f"there is no {words[0]}" if "/" in words[0] else "it is not on PATH"
        raise errors.CommandNotFoundError(f"{words[0]}: command not found", why=why, fix="check its name") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        fix = "check its permissions, and the interpreter that its first line names"
        raise errors.CommandNotExecutableError(f"{words[0]}: cannot be executed", why=why, fix=fix) from error


def start(python: str) -> str:
    """Starts a server for this process, whatever program it becomes; returns the path of the socket.

    The server is not a child of this process, which may wait for any of its own.
    """
    from runner_e2e.errors import LaunchError

    if not os.path.exists("/proc/self/fd"):
        why = "/proc is not mounted, and by it server and clients know each other"
        raise LaunchError("the fork server cannot be used here", why=why, fix="start the harness without it")
    directory = _make_directory()
    try:
        answer = _start(command(python, directory, harness=os.getpid()))
        why, fix = f"{python} could not run it; what it wrote stands above", "check that it starts with -I -S"
    except OSError as error:
        answer, why, fix = b"", str(error), "end other processes"
    if answer.startswith(HELLO):
        return os.path.join(directory, answer.removeprefix(HELLO).decode())
    import shutil

    shutil.rmtree(directory, ignore_errors=True)
    raise LaunchError("the fork server did not start", why=why, fix=fix)


def _start(words: Sequence[str]) -> bytes:
    """Starts the server *words*; what it says."""
    hello, theirs = os.pipe2(os.O_CLOEXEC)
    with open(hello, "rb", buffering=0) as file:
        try:
            child = os.fork()
            if child == 0:
                _become_server(words, theirs)
        finally:
            os.close(theirs)
        os.waitpid(child, 0)
        return file.read(len(HELLO) + _LONGEST_NUMBER)


def _make_directory() -> str:
    """A new directory for the socket, in which nobody else can look, where agents keep nothing."""
    import tempfile

    from runner_e2e.errors import LaunchError

    runtime = os.environ.get("XDG_RUNTIME_DIR") or ("/run" if os.geteuid() == 0 else "")
    place = runtime if runtime and os.access(runtime, os.W_OK | os.X_OK) else None
    try:
        return os.path.realpath(tempfile.mkdtemp(prefix=SERVER_PREFIX, dir=place))
    except OSError as error:
        why = f"{error.strerror or error} ({error.filename})"
        raise LaunchError("the fork server has no place for its socket", why=why, fix="set TMPDIR") from error


def _become_server(words: Sequence[str], output: int) -> NoReturn:
    """For a fresh fork: a grandchild without terminal, environment and open files becomes the server."""
    try:
        os.setsid()
        if os.fork() == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.closerange(3, 2**31 - 1)
            os.execve(words[0], list(words), {})  # noqa: S606 - no shell is wanted
    finally:
        os._exit(0)


def serve(directory: str, *, harness: int, runner_files: Callable[[], Sequence[os.PathLike[str]]]) -> None:
    """Serves until the process *harness* is gone, then removes *directory*, which must be new and only its own."""
    life = os.pidfd_open(harness)
    os.chdir(directory)  # the kernel takes no long address
    _show_token()
    name = str(os.getpid())
    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    listening.bind(name)
    try:
        listening.listen(_WAITING)
        os.write(1, HELLO + name.encode())
        trade = fork_worker.Trade(mask=_settle(), runner_files=runner_files)
        _Server(listening, life, trade).run()
    finally:
        os.unlink(name)
        os.rmdir(directory)


def _show_token() -> None:
    """Makes a token that those can read that may look into this process: see :func:`quick_client.introduction`."""
    descriptor = os.open("token", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink("token")
    os.write(descriptor, os.urandom(_TOKEN_BYTES))
    os.dup2(descriptor, 0)
    os.close(descriptor)


def _settle() -> bytes:
    """Prepares this process for a long life with many forks; returns the signal mask that they are to have."""
    mask = kernel.block_signals()  # it ends with the harness, which may need its agents until then
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    kernel.ignore(_SIGCHLD)
    kernel.set_child_subreaper()  # what a worker leaves ends without a trace here
    init.hide_arguments()
    inside.assemble_filter()
    fork_worker.load()
    gc.disable()
    gc.freeze()
    return mask


class _Worker:
    """A process that waits for a client, or launches for one."""

    def __init__(self, news: _socket.socket, life: int) -> None:
        self.news = news
        self.life = life  # tells its end, though something that it left may hold its end of the news

    def close(self) -> None:
        """Hears no more of it."""
        self.news.close()
        os.close(self.life)


class _Server:
    """Keeps one worker waiting at the socket."""

    def __init__(self, listening: _socket.socket, life: int, trade: fork_worker.Trade) -> None:
        self.listening = listening
        self.life = life
        self.trade = trade
        self.idle: _Worker | None = None
        self.busy: list[_Worker] = []  # those that have not told of their launch yet
        self.last: Last | None = None
        self.pace = Pace()

    def run(self) -> None:
        """Makes a worker once the last one has work and there is time, or at once for a client that waits."""
        self._fork()
        while True:
            workers = [one for one in (self.idle, *self.busy) if one]
            clients = self.listening.fileno()
            waiting = select.poll()
            for descriptor in (self.life, *(() if self.idle else (clients,))):
                waiting.register(descriptor, select.POLLIN)
            for one in workers:
                waiting.register(one.news, select.POLLIN)
                waiting.register(one.life, select.POLLIN)
            ready = {descriptor for descriptor, _ in waiting.poll(None if self.idle else self._patience)}
            if self.life in ready:
                return
            for one in workers:
                if one.news.fileno() in ready:
                    self._take(one, *fork_worker.hear(one.news))
                elif one.life in ready:
                    self._take(one, b"", None)
            if self.idle is None and (not ready or clients in ready):
                self._fork()

    @property
    def _patience(self) -> int:
        """Milliseconds to wait for a client before a worker is made: the next one is told what the launch before is."""
        return QUIET if self.busy else self.pace.patience

    def _take(self, worker: _Worker, content: bytes, last: Last | None) -> None:
        """Takes what a worker says: that it has a client, what its launch is, or nothing, for it has ended."""
        if self.idle is worker:
            self.idle = None
            self.busy.append(worker)
            self.pace.note()
            if not content:
                select.poll().poll(_PAUSE)  # something has killed it
        if last:
            if self.last and self.last.wanted >= 0:
                os.close(self.last.wanted)
            self.last = last
        if last or not content:
            self.busy.remove(worker)
            worker.close()

    def _fork(self) -> None:
        try:
            self.idle = self._make_worker()
        except OSError:
            select.poll().poll(_PAUSE)  # a client that waits too long launches by itself

    def _make_worker(self) -> _Worker:
        server = os.getpid()
        news, theirs = request.pair()
        try:
            process = os.fork()
            if process == 0:
                news.close()
                fork_worker.work(self.listening, theirs, self.trade, self.last, server=server)
            return _Worker(news, _life_of(process))
        except OSError:
            news.close()
            raise
        finally:
            theirs.close()


def _life_of(process: int) -> int:
    """A descriptor that tells the end of the child *process*; one of which nothing would tell it is ended."""
    try:
        return os.pidfd_open(process)
    except OSError:
        os.kill(process, _SIGKILL)
        raise
