"""The first process of a launch: makes the view, starts the agent, passes signals on, and ends everything with it.

Where there is a pid namespace the kernel ends every process in it with this one; elsewhere this process adopts orphans
and ends them itself.
"""

from __future__ import annotations

import os
import select

from runner_e2e import kernel
from runner_e2e.sandbox import inside, mounts
from runner_e2e.sandbox.events import Reporter, Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from runner_e2e.sandbox.plan import Plan

__all__ = ["hide_arguments", "run"]

_SIGKILL = 9
_NAME = b"sandbox"


def run(plan: Plan, streams: Streams, maps: Mapping[tuple[int, int], int]) -> NoReturn:
    """Runs the launch in this process, which must be a fresh fork, and never returns.

    *maps*: owner and group of files on disk -> descriptor of the user namespace that shows them as the agent's.
    """
    report = Reporter(streams.events)
    try:
        status = _run(plan, streams, maps, report)
        report.tell("exit", status)
        os._exit(0)
    except mounts.ChangedError as error:
        fix = "leave hidden and exposed paths alone while a launch starts"
        report.tell("failed", 125, "the launch was stopped before the agent started", error, fix)
    except _UnavailableError as error:
        report.tell("unavailable", error.layer, error.why)
    except BaseException as error:  # noqa: BLE001 - nothing may come back into the caller's code from this fork
        report.tell("failed", 125, "the sandbox could not be set up", f"{type(error).__name__}: {error}", "")
    os._exit(125)


class _UnavailableError(Exception):
    """The host refuses a layer; the launcher may try a way that does without it."""

    def __init__(self, layer: str, error: OSError) -> None:
        self.layer = layer
        self.why = error.strerror if isinstance(error.strerror, str) else str(error)
        super().__init__(self.why)


def _run(plan: Plan, streams: Streams, maps: Mapping[tuple[int, int], int], report: Reporter) -> int:
    mask = kernel.block_signals()
    signals = kernel.signal_descriptor()
    own, signals, maps = _keep_only(streams, signals, maps)
    report.descriptor = own.events
    alone = bool(plan.namespaces & kernel.CLONE_NEWPID)
    if plan.namespaces & kernel.CLONE_NEWUSER:
        kernel.set_dumpable(dumpable=True)  # else the maps belong to root
        inside.map_own_ids(plan.launcher_user, plan.launcher_group)
    if alone:
        # The kernel ends a pid namespace with its first process.
        kernel.set_parent_death_signal(_SIGKILL)
    else:
        # This process must outlive its launcher, to end what it adopted: the end of the control pipe tells it.
        kernel.set_child_subreaper()
    hide_arguments()
    if plan.namespaces & kernel.CLONE_NEWNS:
        _mount(plan, maps)
    if plan.namespaces & kernel.CLONE_NEWNET:
        _raise_loopback()
    kernel.set_dumpable(dumpable=False)
    _tell_namespaces(plan, report)
    started_read, started_write = os.pipe2(os.O_CLOEXEC)
    agent = os.fork()
    if agent == 0:
        inside.become(plan, own, started_write, report, mask)
    report.noted = b""  # the agent's process tells it
    os.close(started_write)
    _let_go(own)
    if os.read(started_read, 1) == b"":
        report.tell("started")
    return _serve(agent, own.control, signals, alone=alone)


def _keep_only(
    streams: Streams, signals: int, maps: Mapping[tuple[int, int], int]
) -> tuple[Streams, int, Mapping[tuple[int, int], int]]:
    """Closes every descriptor but 0 to 2 and those of this launch, which get the numbers from 3 on."""
    program = [streams.program] if streams.program >= 0 else []
    agents = (streams.stdin, streams.stdout, streams.stderr)
    wanted = (*agents, streams.events, streams.control, signals, *maps.values(), *program)
    high = max(*wanted, 3 + len(wanted)) + 1
    for index, descriptor in enumerate(wanted):
        os.dup2(descriptor, high + index, inheritable=False)
    for index in range(len(wanted)):
        os.dup2(high + index, 3 + index, inheritable=False)
    os.closerange(3 + len(wanted), 2**31 - 1)
    last = 2 + len(wanted) if program else -1
    kept = Streams(stdin=3, stdout=4, stderr=5, events=6, control=7, program=last)
    return kept, 8, {owner: 9 + index for index, owner in enumerate(maps)}


def _let_go(own: Streams) -> None:
    """Leaves the agent's streams and working directory to the agent, so that they close when it is done with them."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor, inheritable=False)
    for descriptor in (nothing, own.stdin, own.stdout, own.stderr, own.program):
        if descriptor >= 0:
            os.close(descriptor)
    os.chdir("/")


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


def _mount(plan: Plan, maps: Mapping[tuple[int, int], int]) -> None:
    try:
        layer = "mounts"
        mounts.make_view(plan, maps)
        if plan.mapped:
            covered = bool(plan.namespaces & kernel.CLONE_NEWIPC)
            mounts.add_account(plan.user, plan.group, dict(plan.environment).get("HOME", "/"), keep=covered)
        if plan.namespaces & kernel.CLONE_NEWIPC:
            layer = "ipc"
            mounts.mount_memory_files()
        if plan.namespaces & kernel.CLONE_NEWPID:
            layer = "pids"
            mounts.mount_processes()
    except mounts.OwnershipError as error:
        raise _UnavailableError("identity", error) from error
    except OSError as error:
        raise _UnavailableError(layer, error) from error


def _raise_loopback() -> None:
    """Switches on the one interface of a new network namespace."""
    import fcntl
    import socket
    import struct

    get_flags, set_flags, up = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as any_socket:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(any_socket, get_flags, request))[1]
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH22x", b"lo", flags | up))


def _tell_namespaces(plan: Plan, report: Reporter) -> None:
    for layer, flag in (
        ("mounts", kernel.CLONE_NEWNS),
        ("pids", kernel.CLONE_NEWPID),
        ("ipc", kernel.CLONE_NEWIPC),
        ("network", kernel.CLONE_NEWNET),
    ):
        if plan.namespaces & flag:
            report.layer(layer, "active")
    if plan.namespaces and plan.need("startup-files") != "off":
        why = "another user" if plan.mapped else "read-only, in a home of its own"
        report.layer("startup-files", "active", why)


def _serve(agent: int, control: int, signals: int, *, alone: bool) -> int:
    """Passes signals on until the agent ends; returns its wait status. A launcher that is gone ends the agent."""
    waiting = select.poll()
    waiting.register(control, select.POLLIN)
    waiting.register(signals, select.POLLIN)
    status = None
    while status is None:
        for descriptor, _ in waiting.poll():
            if descriptor == signals:
                os.read(signals, 128 * 16)
                status = _reap(agent)
            elif status is None and not _pass_on(control, agent):
                status = _SIGKILL
    if alone:
        _end_namespace()
    else:
        _end_children()
    return status


def _end_namespace() -> None:
    """Kills every other process of this pid namespace, so that none is left when the end is told."""
    try:
        os.kill(-1, _SIGKILL)
    except ProcessLookupError:
        return
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


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


def _pass_on(control: int, agent: int) -> bool:
    """Sends the agent (or its group) the signals that came as pairs of number and group; False at the end of them."""
    message = os.read(control, 512)
    for index in range(0, len(message) - 1, 2):
        signal, group = message[index], message[index + 1]
        try:
            (os.killpg if group else os.kill)(agent, signal)
        except (ProcessLookupError, PermissionError):
            continue
    return bool(message)


def _end_children() -> None:
    """Kills what is left of the tree: orphans have become children of this process."""
    while True:
        for child in _children():
            try:
                os.kill(child, _SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    own = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        if parent == own:
            found.append(int(name))
    return found
