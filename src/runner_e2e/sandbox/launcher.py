"""Starts a command in the sandbox, by the strongest way this host allows, and tells what protected it.

Ways are tried from the strongest down: as root, in a user namespace, by Landlock alone. A layer that the policy
requires is never given up; one that is best available is given up only when the host refuses it, and the report says
so. Without Landlock nothing starts.
"""

from __future__ import annotations

import os
import select
import stat

from runner_e2e import kernel
from runner_e2e.sandbox import init, mounts
from runner_e2e.sandbox.events import Streams, parse
from runner_e2e.sandbox.planning import make_plan, read_host, survey
from runner_e2e.sandbox.record import Record
from runner_e2e.sandbox.view import decides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.errors import LaunchError
    from runner_e2e.sandbox.events import Event
    from runner_e2e.sandbox.plan import Plan
    from runner_e2e.sandbox.planning import Host, Survey
    from runner_e2e.sandbox.policy import Policy

__all__ = ["Outcome", "Report", "exit_status", "launch"]

REPORT_SCHEMA = "runner-e2e.sandbox-report/v1"

_SIGCHLD, _SIGCONT, _SIGSTOP, _SIGTSTP = 17, 18, 19, 20
_FROM_TERMINAL = 0x80  # SI_KERNEL
_BLOCK = 1 << 16


class Report(Record):
    """What a launch hid, showed and was protected by.

    ``layers`` are (name, state, why); a state is "active", "unavailable" or "off". ``limits`` say what stays open.
    """

    mode: str
    wall: str
    user: int
    hidden: tuple[str, ...]
    absent: tuple[str, ...]
    exposed: tuple[str, ...]
    created: tuple[str, ...]
    layers: tuple[tuple[str, str, str], ...]
    limits: tuple[str, ...]

    def to_document(self) -> dict[str, object]:
        """The JSON object of this report."""
        layers = [{"layer": name, "state": state, "why": why} for name, state, why in self.layers]
        return {"schema": REPORT_SCHEMA, **self.values(), "layers": layers}

    def lines(self) -> list[str]:
        """The report as short lines for a log."""
        active = ", ".join(name for name, state, _ in self.layers if state == "active")
        lines = [f"sandbox: {self.wall}, {self.mode}, user {self.user}; active: {active}"]
        lines += [f"sandbox: hidden {path}" for path in self.hidden]
        lines += [f"sandbox: exposed {path}" for path in self.exposed]
        lines += [f"sandbox: {name} {state}: {why}" for name, state, why in self.layers if state == "unavailable"]
        return lines + [f"sandbox: limit: {text}" for text in self.limits]


class Outcome(Record):
    """How a launch ended: the status as shells give it (128 + n for signal n), and what protected it."""

    status: int
    report: Report


def exit_status(wait_status: int) -> int:
    """The status that a shell gives for *wait_status* of waitpid(2)."""
    return 128 + os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else os.WEXITSTATUS(wait_status)


def launch(
    policy: Policy,
    argv: Sequence[str],
    *,
    directory: str | None = None,
    environment: Mapping[str, str] | None = None,
    started: Callable[[Report], None] | None = None,
) -> Outcome:
    """Runs *argv* under *policy* with this process's streams, passes signals on, and waits for its end.

    Only for a process with one thread. *started* is called once the command runs. Raises :class:`LaunchError` (125),
    :class:`CommandNotExecutableError` (126) or :class:`CommandNotFoundError` (127) when it does not.
    """
    variables = dict(os.environ if environment is None else environment)
    host = read_host()
    if host.abi == 0 and policy.wall == "landlock":
        raise _no_landlock()
    created = _create(policy.create)
    found = survey(policy, directory=directory or os.getcwd(), environment=variables, user=host.user)
    without: dict[str, str] = {}
    for mode in _modes(host):
        while True:
            plan = make_plan(found, policy, argv, host=host, mode=mode, without=without, environment=variables)
            attempt = _Attempt(plan, found, created, without, started)
            refused = attempt.run(relay=policy.relay_streams)
            if refused is None:
                return attempt.outcome()
            layer, why = refused
            _give_up(policy, layer, why)
            without[layer] = why
            if layer == "mounts":
                break
    raise _unavailable("mounts", without.get("mounts", ""))


def _modes(host: Host) -> tuple[str, ...]:
    return ("privileged", "bare") if host.privileged else ("user-namespace", "bare")


def _give_up(policy: Policy, layer: str, why: str) -> None:
    needed = policy.need(layer) == "required" or (layer == "mounts" and policy.wall == "locked-mounts")
    if needed or layer not in {"mounts", "pids", "ipc", "network", "identity"}:
        raise _unavailable(layer, why)


def _unavailable(layer: str, why: str) -> LaunchError:
    from runner_e2e.errors import LaunchError

    return LaunchError(
        f"the layer {layer} is required and this host refuses it",
        why=why,
        fix="run as root or where user namespaces are allowed, or do not require it",
    )


def _no_landlock() -> LaunchError:
    from runner_e2e.errors import LaunchError

    return LaunchError(
        "the sandbox cannot be set up: this kernel has no Landlock",
        why="landlock_create_ruleset is missing or switched off; without it nothing keeps the agent in",
        fix="use Linux 5.13 or later with landlock in the lsm= list of the kernel's command line",
    )


def _create(paths: Sequence[str]) -> tuple[str, ...]:
    """Makes the directories that a launch may not make itself because their parent is hidden from it."""
    made = []
    for path in paths:
        if not os.path.isdir(path):
            try:
                os.makedirs(path, mode=0o755)
            except OSError as error:
                from runner_e2e.errors import LaunchError

                why, fix = error.strerror or str(error), "make it yourself, or take it out of the policy"
                raise LaunchError(f"{path} could not be created before the launch", why=why, fix=fix) from error
            made.append(path)
    return tuple(made)


class _Attempt:
    """One try at a launch: the pipes, the first process, and what it says."""

    def __init__(
        self,
        plan: Plan,
        found: Survey,
        created: tuple[str, ...],
        without: Mapping[str, str],
        started: Callable[[Report], None] | None,
    ) -> None:
        self.plan = plan
        self.found = found
        self.created = created
        self.layers = {name: ("unavailable", why) for name, why in without.items()}
        self.limits = list(found.limits)
        self.started = started
        self.refused: tuple[str, str] | None = None
        self.failure: tuple[str, ...] | None = None
        self.status: int | None = None

    def run(self, *, relay: bool) -> tuple[str, str] | None:
        """Runs to the end; None, or the layer that the host refused and why."""
        events_read, events_write = os.pipe2(os.O_CLOEXEC)
        control_read, control_write = os.pipe2(os.O_CLOEXEC)
        streams = Relays(self.plan, relay=relay)
        try:
            maps = mounts.ownership_maps(self.plan)
        except OSError as error:
            return "identity", f"files cannot be shown as another user's: {error.strerror}"
        mask = kernel.block_signals()
        try:
            try:
                first = kernel.clone_process(self.plan.namespaces)
            except OSError as error:
                return self._refused_clone(error)
            if first == 0:
                kernel.unblock_signals(mask)
                handed = Streams(
                    stdin=streams.inner[0],
                    stdout=streams.inner[1],
                    stderr=streams.inner[2],
                    events=events_write,
                    control=control_read,
                )
                init.run(self.plan, handed, maps)
            streams.close_inner()
            os.close(events_write)
            os.close(control_read)
            events_write = control_read = -1
            self._attend(events_read, control_write, streams)
            os.waitpid(first, 0)
        finally:
            for descriptor in (events_read, events_write, control_read, control_write, *maps.values()):
                if descriptor >= 0:
                    os.close(descriptor)
            streams.close()
            kernel.unblock_signals(mask)
        return self.refused

    def _refused_clone(self, error: OSError) -> tuple[str, str]:
        if not self.plan.namespaces:
            from runner_e2e.errors import LaunchError

            raise LaunchError("no process could be started", why=str(error), fix="end other processes") from error
        return "mounts", f"new namespaces are refused: {error.strerror}"

    def _attend(self, events: int, control: int, streams: Relays) -> None:
        """Handles events, signals and relayed streams until the first process closes its end."""
        signals = kernel.signal_descriptor()
        waiting = select.poll()
        waiting.register(events, select.POLLIN)
        waiting.register(signals, select.POLLIN)
        streams.register(waiting)
        rest = b""
        try:
            while True:
                for descriptor, _ in waiting.poll():
                    if descriptor == signals:
                        _pass_on(os.read(signals, 128), control)
                    elif descriptor == events:
                        block = os.read(events, _BLOCK)
                        if not block:
                            streams.drain()
                            return
                        *lines, rest = (rest + block).split(b"\n")
                        for line in lines:
                            self._handle(parse(line))
                    else:
                        streams.move(descriptor, waiting)
        finally:
            os.close(signals)

    def _handle(self, event: Event) -> None:
        if event.kind == "layer":
            name, state, *why = event.fields
            self.layers[name] = (state, why[0] if why else "")
        elif event.kind == "limit":
            self.limits.append(event.fields[0])
        elif event.kind == "started" and self.started:
            self.started(self.report())
        elif event.kind == "unavailable":
            self.refused = (event.fields[0], event.fields[1])
        elif event.kind == "failed":
            self.failure = event.fields
        elif event.kind == "exit":
            self.status = int(event.fields[0])

    def outcome(self) -> Outcome:
        """How it ended; raises when the command never ran."""
        if self.failure is not None:
            raise _failed(self.failure)
        if self.status is None:
            raise _failed(("125", "the first process of the sandbox was killed", "it ended without a word", ""))
        return Outcome(status=exit_status(self.status), report=self.report())

    def report(self) -> Report:
        """What protects this launch."""
        plan, found = self.plan, self.found
        layers = []
        for name, need in plan.layers:
            state, why = self.layers.get(name, ("off", "by policy") if need == "off" else ("unavailable", ""))
            if name == "wall":
                wall = why
            layers.append((name, state, why))
        return Report(
            mode=plan.mode,
            wall=wall,
            user=plan.user if plan.user >= 0 else plan.launcher_user,
            hidden=tuple(fact.real for fact in found.hidden),
            absent=found.absent,
            exposed=tuple(fact.real for fact in found.exposed),
            created=self.created,
            layers=tuple(layers),
            limits=tuple(self.limits),
        )


def _failed(fields: Sequence[str]) -> LaunchError:
    from runner_e2e.errors import CommandNotExecutableError, CommandNotFoundError, LaunchError

    status, what, why, fix = (*fields, "", "", "")[:4]
    kind = {"126": CommandNotExecutableError, "127": CommandNotFoundError}.get(status, LaunchError)
    return kind(what, why=why, fix=fix)


def _pass_on(message: bytes, control: int) -> None:
    """Sends one signal on: those of the terminal to the agent's whole group."""
    signal = message[0]
    code = int.from_bytes(message[8:12], "little", signed=True)
    if signal == _SIGCHLD:
        return
    try:
        if signal == _SIGTSTP:
            os.write(control, bytes([_SIGSTOP, 1]))
            os.kill(os.getpid(), _SIGSTOP)
            os.write(control, bytes([_SIGCONT, 1]))
        else:
            os.write(control, bytes([signal, int(code == _FROM_TERMINAL)]))
    except BrokenPipeError:
        return


class Relays:
    """The agent's streams. One that is a file in a hidden directory is carried through a pipe: the file itself
    could be opened again from its descriptor. A directory is refused.
    """

    def __init__(self, plan: Plan, *, relay: bool) -> None:
        self.inner = [0, 1, 2]
        self.pumps: dict[int, int] = {}  # descriptor read -> descriptor written
        for number in (0, 1, 2):
            if _reopens_hidden(number, plan):
                if not relay:
                    raise _stream_refused(number, "its file is hidden", "send it elsewhere, or allow relay_streams")
                self._relay(number)

    def _relay(self, number: int) -> None:
        read, write = os.pipe2(os.O_CLOEXEC)
        if number == 0:
            self.inner[0] = read
            self.pumps[os.dup(0)] = write
        else:
            self.inner[number] = write
            self.pumps[read] = os.dup(number)

    def close_inner(self) -> None:
        """Closes the agent's ends in this process."""
        for number, descriptor in enumerate(self.inner):
            if descriptor != number:
                os.close(descriptor)

    def register(self, waiting: select.poll) -> None:
        """Waits for what the agent writes; what it reads is moved when its pipe has room."""
        for source, target in self.pumps.items():
            output = os.get_blocking(source) and stat.S_ISFIFO(os.fstat(source).st_mode)
            waiting.register(source if output else target, select.POLLIN if output else select.POLLOUT)

    def move(self, descriptor: int, waiting: select.poll) -> None:
        """Moves one block through the pump that *descriptor* belongs to; at its end closes it."""
        source = descriptor if descriptor in self.pumps else next(s for s, t in self.pumps.items() if t == descriptor)
        target = self.pumps[source]
        try:
            block = os.read(source, 4096 if descriptor == target else _BLOCK)
            _write_all(target, block)
        except BrokenPipeError:
            block = b""
        if not block:
            waiting.unregister(descriptor)
            os.close(source)
            os.close(target)
            del self.pumps[source]

    def drain(self) -> None:
        """Moves what the agent wrote before it ended."""
        for source, target in self.pumps.items():
            if not stat.S_ISFIFO(os.fstat(source).st_mode):
                continue
            while block := os.read(source, _BLOCK):
                _write_all(target, block)

    def close(self) -> None:
        """Closes every pump that is left."""
        for pair in self.pumps.items():
            for descriptor in pair:
                os.close(descriptor)
        self.pumps.clear()


def _write_all(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]


def _reopens_hidden(number: int, plan: Plan) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError as error:
        raise _stream_refused(number, "it is closed", "redirect it, for example from /dev/null") from error
    if stat.S_ISDIR(mode):
        raise _stream_refused(
            number, "it is a directory, which opens paths behind every cover", "redirect it elsewhere"
        )
    if not stat.S_ISREG(mode):
        return False
    try:
        path = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return True  # without /proc its place is not known
    around = decides(path.removesuffix(" (deleted)"), plan.steps)
    return around is not None and around.hidden


def _stream_refused(number: int, why: str, fix: str) -> LaunchError:
    from runner_e2e.errors import LaunchError

    return LaunchError(f"standard stream {number} is refused", why=why, fix=fix)
