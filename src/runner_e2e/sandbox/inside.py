"""The process that becomes the agent: new session, other user, wall, self-check, exec. Nothing here can be undone."""

from __future__ import annotations

import errno
import marshal
import os

from runner_e2e import kernel
from runner_e2e.sandbox import landlock, mounts, request, seccomp
from runner_e2e.sandbox.events import Reporter
from runner_e2e.sandbox.policy import RUNTIME_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Sequence
    from typing import NoReturn

    from runner_e2e.sandbox.events import Streams
    from runner_e2e.sandbox.plan import Plan, Step
    from runner_e2e.sandbox.request import Request

__all__ = [
    "MOUNTS",
    "OWN_MOUNTS",
    "PREPARED",
    "SAME_MOUNTS",
    "TERMINAL",
    "assemble_filter",
    "become",
    "drop_bounding_set",
    "map_own_ids",
]

# What the first process is told: whether the agent has a mount namespace of its own; after that, marshalled, its
# limits, and whether it gets a terminal, which follows in a message of its own. A launch that is prepared tells the
# same before, with its mounts and no streams.
OWN_MOUNTS, PREPARED, SAME_MOUNTS, TERMINAL = b"m", b"p", b"s", b"t"
_OWN_MOUNTS_FILE = "/proc/self/ns/mnt"
MOUNTS = "/proc/self/mountinfo"  # tells (POLLPRI) when the mounts of whoever opened it change

_SIGKILL, _SIGPIPE, _SIGXFSZ = 9, 13, 25
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_LAST_CAPABILITY = 63
_DENIED = (errno.EACCES, errno.EPERM)


class _RefusedError(Exception):
    """The launch ends here: status, what happened, why, and what to do."""

    def __init__(self, what: str, why: str, fix: str = "", status: int = 125) -> None:
        super().__init__(what)
        self.event = (status, what, why, fix)


def become(channel: _socket.socket, link: _socket.socket, mask: bytes, *, warm: bool) -> NoReturn:
    """Turns this fresh fork into the agent that is asked for through *channel*, or reports why not.

    *link* leads to the first process, which gets the descriptors that it needs through it. A byte on it says that
    there will be no agent.
    """
    report: Reporter | None = None
    event: tuple[object, ...]
    try:
        os.setsid()
        if warm:
            kernel.prefault()
        wanted = request.receive(channel)
        if wanted is None:
            os._exit(0)
        _drop_signals()
        report = Reporter(wanted.start.streams.events if wanted.start else -1)
        _become(wanted, channel, link, mask, report)
    except _RefusedError as error:
        event = ("failed", *error.event)
    except mounts.ChangedError as error:
        fix = "leave hidden and exposed paths alone while a launch starts"
        event = ("failed", 125, "the launch was stopped before the agent started", error, fix)
    except mounts.UnavailableError as error:
        event = ("unavailable", error.layer, error.why)
    except BaseException as error:  # noqa: BLE001 - nothing may come back into the caller's code from this fork
        why = f"{type(error).__name__}: {error}"
        event = ("failed", 125, "the sandbox could not be set up", why, mounts.remedy(error))
    if report and report.descriptor >= 0:  # else nobody waits for what could not be prepared
        report.tell(*event)
    link.send(b"x")
    os._exit(125)


def _become(wanted: Request, channel: _socket.socket, link: _socket.socket, mask: bytes, report: Reporter) -> NoReturn:
    plan, streams = wanted.plan(), wanted.start.streams if wanted.start else None
    _load(plan)
    _enter_mounts(plan, streams, link)
    if plan.namespaces & kernel.CLONE_NEWNS:
        mounts.furnish(plan, wanted.maps)
    if plan.namespaces & kernel.CLONE_NEWNET:
        # After the mounts: a host that refuses both is left for the next way.
        _enter_network(plan, streams.proxy if streams else -1)
    terminal = _open_terminal(plan, streams, link) if plan.terminal and streams else -1
    _tell_namespaces(plan, report)
    _restrict(plan, report)
    if streams is None:
        losses = os.open(MOUNTS, os.O_RDONLY | os.O_CLOEXEC)  # before all is checked, not to miss any
    _check(plan)
    report.layer("self-check", "active")
    if streams is None:
        request.send_descriptors(channel, PREPARED, [losses])
        os.close(losses)
        plan, streams = _await_start(plan, channel, link, report)
    _prepare_exec(plan, _with_terminal(plan, streams, terminal), mask, report)
    if link.recv(1) == b"":
        raise _RefusedError("the first process of the sandbox ended", "")
    report.flush()
    if streams.program >= 0:
        _execute_open(plan, streams.program)
    _execute(plan)


def _load(plan: Plan) -> None:
    """Imports what not every launch needs: later its files may be covered, or closed to the agent's user."""
    if plan.limits:
        import resource  # noqa: F401

        from runner_e2e.sandbox import limits  # noqa: F401
    if plan.terminal:
        from runner_e2e.sandbox import terminal  # noqa: F401
    if plan.network:
        from runner_e2e.sandbox import doors  # noqa: F401


def _await_start(plan: Plan, channel: _socket.socket, link: _socket.socket, report: Reporter) -> tuple[Plan, Streams]:
    """Waits for the launch that was prepared: the plan with its command, and its streams."""
    start = request.receive_start(channel)
    if start is None:
        os._exit(0)  # another one was asked for
    report.descriptor = start.streams.events
    _drop_signals()
    _check_again(plan)
    _hand_over(plan, start.streams, link, SAME_MOUNTS)
    return plan.replace(argv=start.argv), start.streams


def _drop_signals() -> None:
    """Takes what came while nothing was asked for; what is for the command is passed on by the first process."""
    signals = kernel.signal_descriptor()
    try:
        while True:
            os.read(signals, 128 * 16)
    except BlockingIOError:
        return
    finally:
        os.close(signals)


def _enter_mounts(plan: Plan, streams: Streams | None, link: _socket.socket) -> None:
    """Copies the mounts as they are now into a namespace of this launch, and tells the first process."""
    opened = []
    own = bool(plan.namespaces & kernel.CLONE_NEWNS)
    if own:
        try:
            kernel.unshare(kernel.CLONE_NEWNS)
        except OSError as error:
            if not mounts.is_refusal(error):
                raise
            raise mounts.UnavailableError("mounts", error) from error
        if os.path.exists(_OWN_MOUNTS_FILE):  # without /proc it finds the namespace by this process
            opened.append(os.open(_OWN_MOUNTS_FILE, os.O_RDONLY | os.O_CLOEXEC))
    if streams:
        _hand_over(plan, streams, link, OWN_MOUNTS if own else SAME_MOUNTS, opened)
    else:
        request.send_descriptors(link, PREPARED + _needs(plan), opened)
    for descriptor in opened:
        os.close(descriptor)


def _hand_over(plan: Plan, streams: Streams, link: _socket.socket, message: bytes, opened: Sequence[int] = ()) -> None:
    """Gives the first process what it needs of the descriptors, and those *opened*."""
    request.send_descriptors(link, message + _needs(plan), [streams.events, streams.control, *opened])
    os.close(streams.control)


def _needs(plan: Plan) -> bytes:
    """What the first process has to load for *plan*."""
    return marshal.dumps((plan.limits, bool(plan.terminal))) if plan.limits or plan.terminal else b""


def _enter_network(plan: Plan, proxy: int) -> None:
    from runner_e2e.sandbox import doors

    try:
        doors.enter(plan, proxy)
    except OSError as error:
        if not mounts.is_refusal(error):
            raise
        raise mounts.UnavailableError("network", error) from error


def _leave_network(plan: Plan, report: Reporter) -> None:
    from runner_e2e.sandbox import doors

    try:
        doors.forbid_other_sockets(plan, report)
    except OSError as error:
        raise _RefusedError("the network stays open", str(error), "leave the network open in the policy") from error


def _open_terminal(plan: Plan, streams: Streams, link: _socket.socket) -> int:
    """Opens a terminal for the agent and hands its other end to the first process; returns the agent's end."""
    from runner_e2e.sandbox.terminal import open_pair

    try:
        master, slave = open_pair(streams.terminal, user=plan.user if plan.mapped else -1)
    except OSError as error:
        why, fix = error.strerror or str(error), "redirect standard input, for example from /dev/null"
        raise _RefusedError("no terminal can be opened for the agent", why, fix) from error
    request.send_descriptors(link, TERMINAL, (streams.terminal, master, slave))
    os.close(master)
    return slave


def _with_terminal(plan: Plan, streams: Streams, terminal: int) -> Streams:
    """*streams* with the agent's terminal in the place of the launcher's; it becomes the controlling one."""
    if terminal < 0:
        return streams
    from runner_e2e.sandbox.terminal import take

    take(terminal)
    names = ("stdin", "stdout", "stderr")
    return streams.replace(**{names[number]: terminal for number in plan.terminal})


def _restrict(plan: Plan, report: Reporter) -> None:
    """Gives up what the agent must not have: none of it can be taken back."""
    report.layer("descriptors", "active")
    report.layer("session", "active")
    _leave_keyrings(plan, report)
    _change_user(plan, report)
    _raise_wall(plan, report)
    _drop_capabilities()
    report.layer("capabilities", "active")
    _take_keyrings_away(plan, report)
    if plan.network:
        _leave_network(plan, report)


def _prepare_exec(plan: Plan, streams: Streams, mask: bytes, report: Reporter) -> None:
    for number, descriptor in enumerate((streams.stdin, streams.stdout, streams.stderr)):
        os.dup2(descriptor, number)
    _enter_directory(plan)
    if plan.limits:
        _limit(plan, report)
    for signal in (_SIGPIPE, _SIGXFSZ):
        kernel.default_action(signal)
    if plan.namespaces & kernel.CLONE_NEWPID == 0:
        kernel.set_parent_death_signal(_SIGKILL)
    kernel.unblock_signals(mask)


def drop_bounding_set() -> None:
    """Makes sure that no exec gains a capability; an ordinary user, who may not drop them, gains none anyway."""
    if kernel.holds_bounding_capability(0):
        for capability in range(_LAST_CAPABILITY + 1):
            try:
                kernel.drop_bounding_capability(capability)
            except OSError:
                break


def assemble_filter() -> None:
    """Assembles the filter of system calls once for all launches of this process and its forks."""
    try:
        seccomp.program()
    except OSError:
        return  # a launch says it


def map_own_ids(user: int, group: int) -> None:
    """Maps this process's own user and group to themselves in its new user namespace."""
    for name, content in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)


def _tell_namespaces(plan: Plan, report: Reporter) -> None:
    for layer, flag in (
        ("mounts", kernel.CLONE_NEWNS),
        ("pids", kernel.CLONE_NEWPID),
        ("ipc", kernel.CLONE_NEWIPC),
    ):
        if plan.namespaces & flag:
            report.layer(layer, "active")
    if plan.namespaces and plan.need("startup-files") != "off":
        why = "another user" if plan.mapped else "read-only, in a home of its own"
        report.layer("startup-files", "active", why)


def _leave_keyrings(plan: Plan, report: Reporter) -> None:
    if plan.need("keyrings") == "off":
        return
    try:
        kernel.join_new_session_keyring()
    except OSError as error:
        if not mounts.is_refusal(error):
            raise
        if error.errno != errno.ENOSYS and plan.need("keyrings") == "required":
            raise _RefusedError(
                "no session keyring of its own", str(error), "do not require the layer keyrings"
            ) from error
        report.note("limit", f"the agent keeps the session keyring of the launcher: {error.strerror}")


def _change_user(plan: Plan, report: Reporter) -> None:
    """Drops the bounding set and every group, then takes the agent's user and group."""
    if plan.mode != "user-namespace":  # there, no user that the agent can become has any
        drop_bounding_set()
    if plan.user < 0:
        return
    os.setgroups([])
    os.setresgid(plan.group, plan.group, plan.group)
    os.setresuid(plan.user, plan.user, plan.user)
    if plan.mapped:
        report.layer("identity", "active", f"user {plan.user}, group {plan.group}")


def _raise_wall(plan: Plan, report: Reporter) -> None:
    rights = landlock.rights_of(plan.abi)
    kernel.forbid_new_privileges()
    if plan.locked:
        _lock_mounts(plan)
        report.layer("wall", "active", "locked-mounts")
        if rights.scopes:
            landlock.restrict_scopes(rights)
    elif plan.namespaces & kernel.CLONE_NEWNS:
        landlock.restrict_privileges(rights)
        report.layer("wall", "active", "landlock, covers by mount")
    else:
        count = landlock.restrict_paths(rights, plan.steps)
        report.layer("wall", "active", f"landlock alone, {count} rules")
        for text in rights.limits:
            report.note("limit", text)
    if rights.scopes:
        report.layer("scopes", "active")


def _lock_mounts(plan: Plan) -> None:
    """Enters a user namespace below the one that made the covers: from there the kernel refuses to take them off."""
    user = plan.user if plan.user >= 0 else plan.launcher_user
    group = plan.group if plan.group >= 0 else plan.launcher_group
    kernel.set_dumpable(dumpable=True)  # the map of ids is ours to write only then
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    map_own_ids(user, group)
    for step in plan.steps:
        if step.hidden:
            _expect_locked(step.path)


def _expect_locked(path: str) -> None:
    try:
        kernel.umount(path, kernel.MNT_DETACH)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return
        raise
    raise _RefusedError("the covers are not locked", f"{path} could be uncovered from inside", "use the wall landlock")


def _drop_capabilities() -> None:
    kernel.drop_ambient_capabilities()
    kernel.set_capabilities()


def _take_keyrings_away(plan: Plan, report: Reporter) -> None:
    if plan.need("keyrings") == "off":
        return
    try:
        kernel.install_filter(seccomp.program())
    except OSError as error:
        if not mounts.is_refusal(error):
            raise
        if plan.need("keyrings") == "required":
            raise _RefusedError("the keyrings stay open", str(error), "do not require the layer keyrings") from error
        report.layer("keyrings", "unavailable", str(error))
        return
    report.layer("keyrings", "active")


def _check(plan: Plan) -> None:
    """Tries, as the agent, what the agent must not be able to do."""
    covered = bool(plan.namespaces & kernel.CLONE_NEWNS)
    for step in plan.steps:
        if step.hidden:
            _check_hidden(step, covered=covered)
        elif step.role == "expose":
            _check_exposed(step)
    if plan.namespaces & kernel.CLONE_NEWPID:
        seen = {name for name in os.listdir("/proc") if name.isdigit()} - {"1", str(os.getpid())}
        if seen:
            raise _RefusedError("processes outside are visible", f"/proc shows {', '.join(sorted(seen))}")


def _check_again(plan: Plan) -> None:
    """Tries again what can have changed since, without a change of any mount.

    A file has got another name: its cover goes with the name that it was laid on, to wherever that is moved. Or a
    directory above an exposure has been closed to the agent.
    """
    for step in plan.steps:
        if step.hidden and not step.directory:
            _check_hidden(step, covered=True)
        elif step.role == "expose":
            _check_exposed(step)
        elif step.role == "lock" and not step.directory and os.path.isfile(step.path) and os.access(step.path, os.W_OK):
            raise mounts.ChangedError(f"{step.path} was replaced during the launch")


def _check_hidden(step: Step, *, covered: bool) -> None:
    if covered:
        try:
            found = os.stat(step.path)
        except PermissionError:
            return  # a directory above lets the agent's user not even come near
        if (found.st_dev, found.st_ino) == (step.device, step.inode):
            raise _RefusedError(f"{step.path} is not covered", "its path still leads to what is hidden")
    try:
        descriptor = os.open(step.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in {*_DENIED, errno.ENXIO}:
            return
        raise
    os.close(descriptor)
    raise _RefusedError(f"{step.path} is not hidden", "it can be opened from inside", "report this as a defect")


def _check_exposed(step: Step) -> None:
    fix = "give the agent's user the right to reach it, or do not expose it"
    try:
        found = os.stat(step.path)
        readable = os.access(step.path, os.R_OK)
    except OSError as error:
        raise _RefusedError(f"exposed path {step.path} cannot be reached from inside", str(error), fix) from error
    if (found.st_dev, found.st_ino) != (step.device, step.inode):
        raise _RefusedError(f"exposed path {step.path} is another file inside", "it was replaced during the launch")
    if not readable:
        raise _RefusedError(f"exposed path {step.path} cannot be read from inside", "permission denied", fix)


def _limit(plan: Plan, report: Reporter) -> None:
    from runner_e2e.sandbox import limits

    try:
        for note in limits.apply(dict(plan.limits), others=plan.others):
            report.note("limit", note)
    except (OSError, ValueError) as error:
        raise _RefusedError(
            "the limits cannot be set", str(error), "leave out what this host does not allow"
        ) from error


def _enter_directory(plan: Plan) -> None:
    try:
        os.chdir(plan.directory)
    except OSError as error:
        raise _RefusedError(
            f"the working directory {plan.directory} cannot be entered from inside",
            error.strerror or str(error),
            "start in a directory that the agent may use, or name it as a workspace",
        ) from error


def _execute(plan: Plan) -> NoReturn:
    """Replaces this process, searching ``PATH`` as shells do; raises with status 126 or 127."""
    name, environment = plan.argv[0], dict(plan.environment)
    places = [name] if "/" in name else [f"{place or '.'}/{name}" for place in _search_path(environment)]
    worst: OSError | None = None
    for place in places:
        try:
            os.execve(place, plan.argv, environment)  # noqa: S606 - this process becomes it
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
                worst = worst or error
            elif os.path.exists(place):
                raise _RefusedError(
                    f"{place} cannot be started", "the interpreter named in its first line is missing", "", 127
                ) from error
    if worst is None:
        where = name if "/" in name else f"PATH ({environment.get('PATH', _DEFAULT_PATH)})"
        why = f"there is no {where}" if "/" in name else f"it is not on {where}"
        raise _RefusedError(
            f"{name}: command not found", why, "check its name; hidden directories hold no commands", 127
        )
    raise _RefusedError(f"{name}: cannot be executed", *_explain(worst), 126) from worst


def _execute_open(plan: Plan, program: int) -> NoReturn:
    """Replaces this process by an open file, which it and what it starts can reopen; raises with status 126."""
    # Beyond what shells use for themselves, and beyond the last descriptor of this process.
    number = os.dup2(program, max(20, program + 8), inheritable=True)
    path = f"/proc/self/fd/{number}"
    try:
        os.execve(path, plan.argv, {**dict(plan.environment), RUNTIME_VARIABLE: path})  # noqa: S606
    except OSError as error:
        raise _RefusedError(f"{plan.argv[0]}: cannot be executed", *_explain(error), 126) from error


def _search_path(environment: dict[str, str]) -> list[str]:
    return environment.get("PATH", _DEFAULT_PATH).split(":")


def _explain(error: OSError) -> tuple[str, str]:
    if error.errno == errno.ENOEXEC:
        return (
            "it is neither a program nor a script with an interpreter line",
            "start it with #!, or name the interpreter",
        )
    if error.errno == errno.E2BIG:
        return "its arguments and environment are longer than the kernel takes", "pass them in a file"
    return error.strerror or str(error), "check its permissions"
