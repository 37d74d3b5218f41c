"""The first process of a launch: starts the one that becomes the agent, passes signals on, and ends all with it.

It waits beside the other until a launch is asked for. Where there is a pid namespace the kernel ends every process in
it with this one; elsewhere this process adopts orphans and ends them itself.
"""

from __future__ import annotations

import _socket  # see request.py
import errno
import os
import select

from runner_e2e import kernel
from runner_e2e.sandbox import inside, request
from runner_e2e.sandbox.events import Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn, TypeVarTuple

    from runner_e2e.sandbox.request import Kind
    from runner_e2e.sandbox.terminal import Relay
    from runner_e2e.sandbox.watch import Watch

    Arguments = TypeVarTuple("Arguments")

__all__ = ["hide_arguments", "run", "when_there_is_room"]

_SIGCHLD, _SIGKILL, _SIGSTOP = 17, 9, 19
_LONGEST_MESSAGE = 4096
_NAME = b"sandbox"
_TRIES, _PAUSE = 10, 20  # milliseconds between two
_PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.ENOSPC})  # what there is of processes, memory and namespaces


def run(kind: Kind, channel: int, *, mask: bytes, warm: bool) -> NoReturn:
    """Runs one launch of *kind* in this process, which must be a fresh fork, and never returns.

    *channel* is the socket through which the launch is asked for; closed before, it ends this process. *mask* is the
    agent's signal mask.
    """
    kernel.default_action(_SIGCHLD)
    kernel.block_signals()
    report: Reporter | None = None
    try:
        signals = kernel.signal_descriptor()
        connection, signals = _keep_only(channel, signals)
        try:
            _settle(kind)
            link, agents = request.pair()
            agent = when_there_is_room(os.fork)
        except OSError as error:
            _refuse(connection, error)
        if agent == 0:
            link.close()
            inside.become(connection, agents, mask, warm=warm)
        agents.close()
        connection.close()
        message, descriptors = request.receive_descriptors(link, _LONGEST_MESSAGE)
        if message[:1] == inside.PREPARED:
            _load(message[1:])
            _follow(agent, list(descriptors))
            message, descriptors = request.receive_descriptors(link, _LONGEST_MESSAGE)
        if not descriptors:
            os._exit(0)  # nothing was asked for, or it was refused
        events, control, *opened = descriptors
        report = Reporter(events)
        limits, terminal = _load(message[1:])
        if message[:1] == inside.OWN_MOUNTS:
            _follow(agent, opened)
        alone = bool(kind.namespaces & kernel.CLONE_NEWPID)
        waiting = select.poll()
        relay = _relay(link, waiting) if terminal else None
        watch = _watch(limits, agent, alone=alone) if limits else None
        if _let_start(link):
            report.tell("started")
        status = _serve(agent, control, signals, waiting, watch=watch, relay=relay, alone=alone)
        if watch and watch.crossing:
            report.note("crossed", watch.crossing.limit, watch.crossing.seen)
        report.tell("exit", status)
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - nothing may come back into the caller's code from this fork
        if report:
            report.tell("failed", 125, "the sandbox could not be set up", f"{type(error).__name__}: {error}", "")
    os._exit(125)


def _settle(kind: Kind) -> None:
    """Makes this process the first one of its namespaces, with nothing of the launcher's open or shown."""
    if kind.namespaces & kernel.CLONE_NEWUSER:
        kernel.set_dumpable(dumpable=True)  # else the maps belong to root
        inside.map_own_ids(kind.user, kind.group)
    if kind.namespaces & kernel.CLONE_NEWPID:
        # The kernel ends a pid namespace with its first process.
        kernel.set_parent_death_signal(_SIGKILL)
    else:
        # This process must outlive its launcher, to end what it adopted: the end of the control pipe tells it.
        kernel.set_child_subreaper()
    hide_arguments()
    kernel.set_dumpable(dumpable=False)
    os.chdir("/")


def when_there_is_room(make_process: Callable[[*Arguments], int], *arguments: *Arguments) -> int:
    """What *make_process* returns; it may fail only because what stood ready for another launch has not ended yet."""
    for _ in range(_TRIES):
        try:
            return make_process(*arguments)
        except OSError as error:
            if error.errno not in _PASSING:
                raise
        select.poll().poll(_PAUSE)
    return make_process(*arguments)


def _refuse(connection: _socket.socket, error: OSError) -> NoReturn:
    """Answers the request, once it comes, that nothing can be started here."""
    wanted = request.receive(connection)
    if wanted and wanted.start:
        Reporter(wanted.start.streams.events).tell("failed", 125, "the sandbox could not be set up", str(error), "")
    os._exit(125)


def _let_start(link: _socket.socket) -> bool:
    """Lets the agent's process go on; whether it became the agent, which closes its end."""
    try:
        link.send(b"1")
        return not link.recv(1)
    except (BrokenPipeError, ConnectionResetError):
        return False


def _follow(agent: int, opened: list[int]) -> None:
    """Joins the mount namespace that the agent's process made: nothing inside may lead to the mounts outside.

    *opened* holds its descriptor; it is empty without ``/proc``.
    """
    descriptor = opened[0] if opened else os.pidfd_open(agent)
    kernel.enter_namespaces(descriptor, kernel.CLONE_NEWNS)
    os.close(descriptor)


def _keep_only(channel: int, signals: int) -> tuple[_socket.socket, int]:
    """Closes every descriptor but these two, which become 3 and 4; nothing stands at 0 to 2."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    wanted = (nothing, nothing, nothing, channel, signals)
    high = max(*wanted, len(wanted)) + 1
    for index, descriptor in enumerate(wanted):
        os.dup2(descriptor, high + index, inheritable=False)
    for index in range(len(wanted)):
        os.dup2(high + index, index, inheritable=False)
    os.closerange(len(wanted), 2**31 - 1)
    return _socket.socket(fileno=3), 4


_arguments_are_hidden = False


def hide_arguments() -> None:
    """Overwrites what ``cmdline`` shows of this process: the arguments of a launch name what is hidden.

    Done once; the forks of a service inherit it.
    """
    global _arguments_are_hidden  # noqa: PLW0603 - a fact about the memory of this process
    if _arguments_are_hidden:
        return
    _arguments_are_hidden = True
    try:
        start, length = kernel.arguments_area()
    except OSError:  # no /proc, so nobody reads it there
        return
    kernel.overwrite(start, _NAME[: length - 1].ljust(length, b"\0"))
    kernel.set_name(_NAME.decode())


def _load(message: bytes) -> tuple[dict[str, int], bool]:
    """The limits that the first *message* asks to watch, and whether a terminal is wanted: most launches do without.

    What they need is imported here, before its files are covered.
    """
    if not message:
        return {}, False
    import marshal

    limits, wanted = marshal.loads(message)  # noqa: S302 - from the process that becomes the agent, before it does
    if limits:
        from runner_e2e.sandbox import watch  # noqa: F401
    if wanted:
        from runner_e2e.sandbox import terminal  # noqa: F401
    return dict(limits), wanted


def _relay(link: _socket.socket, waiting: select.poll) -> Relay:
    """What carries the agent's terminal, which the process that becomes it has opened."""
    from runner_e2e.sandbox.terminal import Relay

    kind, descriptors = request.receive_descriptors(link, 1)
    if kind != inside.TERMINAL:
        os._exit(125)  # the other process failed, and told why
    outer, master, slave = descriptors
    return Relay(outer, master, slave, waiting)


def _watch(limits: dict[str, int], agent: int, *, alone: bool) -> Watch:
    """What watches the *limits* of the agent and all it starts."""
    from runner_e2e.sandbox.watch import Watch

    def ask(signal: int) -> None:
        try:
            os.killpg(agent, signal)
        except (ProcessLookupError, PermissionError):
            return

    return Watch(
        limits,
        processes=_others if alone else _descendants,
        kill=_kill_others if alone else _kill_descendants,
        ask=ask,
    )


def _serve(  # noqa: PLR0913 - all that it serves
    agent: int,
    control: int,
    signals: int,
    waiting: select.poll,
    *,
    watch: Watch | None,
    relay: Relay | None,
    alone: bool,
) -> int:
    """Passes signals on until the agent ends; returns its wait status. A launcher that is gone ends the agent."""
    waiting.register(control, select.POLLIN)
    waiting.register(signals, select.POLLIN)
    status = None
    while status is None:
        for descriptor, _ in waiting.poll(watch.pause if watch else None):
            if descriptor == signals:
                os.read(signals, 128 * 16)
                status = _reap(agent)
            elif relay and descriptor != control:
                relay.move()
            elif status is None and not _pass_on(control, agent, relay):
                status = _SIGKILL
        if watch and status is None:
            watch.look()
    if alone:
        _end_namespace()
    else:
        _end_children()
    if relay:
        relay.finish(control)
    return status


def _end_namespace() -> None:
    """Kills every other process of this pid namespace, so that none is left when the end is told."""
    _kill_others()
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def _kill_others() -> None:
    try:
        os.kill(-1, _SIGKILL)
    except ProcessLookupError:
        return


def _others() -> list[int]:
    """Every other process of this pid namespace."""
    own = os.getpid()
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own]


def _reap(agent: int) -> int | None:
    """Collects every child that has ended; the agent's wait status once it is among them."""
    found = None
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if child == 0:
            return found
        if child == agent:
            found = status


def _pass_on(control: int, agent: int, relay: Relay | None) -> bool:
    """Sends the agent (or its group) the signals that came as pairs of number and group; False at the end of them."""
    message = os.read(control, 512)
    for index in range(0, len(message) - 1, 2):
        signal, group = message[index], message[index + 1]
        if relay and relay.hears(signal):
            continue
        try:
            (os.killpg if group else os.kill)(agent, signal)
        except (ProcessLookupError, PermissionError):
            continue
    return bool(message)


def _end_children() -> None:
    """Kills what is left of the tree: orphans have become children of this process."""
    while True:
        _kill_descendants()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill_descendants() -> None:
    """Stops the whole tree first, so that none of it makes a new process while others are killed."""
    stopped: set[int] = set()
    while new := set(_descendants()) - stopped:
        _send(new, _SIGSTOP)
        stopped |= new
    _send(stopped, _SIGKILL)


def _send(processes: Iterable[int], signal: int) -> None:
    for process in processes:
        try:
            os.kill(process, signal)
        except (ProcessLookupError, PermissionError):
            continue


def _descendants() -> list[int]:
    """Every process below this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(name))
    found = [os.getpid()]
    for process in found:
        found += children.get(process, ())
    return found[1:]
