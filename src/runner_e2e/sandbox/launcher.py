"""Starts a command in the sandbox, by the strongest way this host allows, and tells what protected it.

Ways are tried from the strongest down: as root; in a user namespace, or as root through a ``sudo`` that asks for no
password; by Landlock alone. A layer that the policy requires is never given up; one that is best available is given up
only when the host refuses it, and the report says so. Without Landlock nothing starts.
"""

from __future__ import annotations

import os
import select

from runner_e2e.sandbox.events import Streams, parse
from runner_e2e.sandbox.mounts import is_refusal, remedy
from runner_e2e.sandbox.origin import Origin
from runner_e2e.sandbox.planning import modes_of, read_host
from runner_e2e.sandbox.prepared import prepare
from runner_e2e.sandbox.progress import Progress, Ways
from runner_e2e.sandbox.request import Start, pack
from runner_e2e.sandbox.streams import Relays, refuse_reopening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.sandbox.plan import Plan
    from runner_e2e.sandbox.policy import Policy
    from runner_e2e.sandbox.prepared import Prepared
    from runner_e2e.sandbox.proxy import Proxy
    from runner_e2e.sandbox.report import Outcome, Report
    from runner_e2e.sandbox.request import Packed
    from runner_e2e.sandbox.terminal import Foreground

__all__ = ["launch", "run"]

_BLOCK = 1 << 16


def launch(  # noqa: PLR0913
    policy: Policy,
    argv: Sequence[str],
    *,
    directory: str | None = None,
    environment: Mapping[str, str] | None = None,
    started: Callable[[Report], None] | None = None,
    program: int = -1,
    origin: Origin | None = None,
) -> Outcome:
    """Runs *argv* under *policy* with this process's streams, passes signals on, and waits for its end.

    Only for a process with one thread; others use :class:`runner_e2e.sandbox.harness.Launcher`. *started* is called
    once the command runs. *program* is an open file to execute instead of looking for ``argv[0]``. *origin* is this
    process where none is given.
    Raises :class:`LaunchError` (125), :class:`CommandNotExecutableError` (126) or :class:`CommandNotFoundError` (127)
    when it does not run.
    """
    prepared = prepare(policy, host=read_host(), directory=directory, environment=environment)
    return run(prepared, argv, started=started, program=program, origin=origin or Origin())


def run(
    prepared: Prepared,
    argv: Sequence[str],
    *,
    started: Callable[[Report], None] | None,
    program: int,
    origin: Origin,
) -> Outcome:
    """As :func:`launch`, under a policy that was *prepared*."""
    ways = Ways(prepared.policy, modes_of(prepared.host))
    terminal = _terminal()
    proxy: Proxy | None = None
    while True:
        without = ways.reasons()
        plan, packed = prepared.plan(ways.mode, without)
        plan = plan.replace(argv=tuple(argv))
        if terminal:
            plan = plan.replace(terminal=terminal)
            packed = pack(plan)
        if not prepared.policy.relay_streams:
            refuse_reopening((0, 1, 2), plan.steps)
        if plan.doors and proxy is None:
            proxy = _start_proxy(plan)
        progress = Progress(plan, prepared.found, created=prepared.created, without=without)
        try:
            _attempt(progress, packed, started=started, program=program, proxy=proxy, origin=origin)
        finally:
            if proxy and progress.refused is None:
                proxy.close()
        if progress.refused is None:
            return progress.outcome()
        ways.refuse(*progress.refused)


def _start_proxy(plan: Plan) -> Proxy:
    from runner_e2e.sandbox.proxy import Proxy

    return Proxy(plan.hosts)


def _terminal() -> tuple[int, ...]:
    """The standard streams that are this process's own terminal, in which somebody may type."""
    if not os.isatty(0):
        return ()
    from runner_e2e.sandbox.terminal import handed_over

    return handed_over()


def _attempt(  # noqa: PLR0913 - all that it is made of
    progress: Progress,
    packed: Packed,
    *,
    started: Callable[[Report], None] | None,
    program: int,
    proxy: Proxy | None,
    origin: Origin,
) -> None:
    """One try, to its end: afterwards *progress* knows what came of it."""
    events_read, events_write = os.pipe2(os.O_CLOEXEC)
    control_read, control_write = os.pipe2(os.O_CLOEXEC)
    inner = [events_write, control_read]
    relays = Relays(progress.plan.steps)
    terminal = _open_terminal(progress.plan)
    door = proxy.open_door() if proxy else None
    origin.block_signals()
    try:
        stdin, stdout, stderr = relays.inner
        streams = Streams(
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            events=events_write,
            control=control_read,
            program=program,
            terminal=terminal.descriptor if terminal else -1,
            proxy=door.descriptor if door else -1,
        )
        wait = _begin(progress, packed, streams, origin)
        if wait is None:
            return
        relays.close_inner()
        while inner:
            os.close(inner.pop())
        _attend(progress, events_read, control_write, relays=relays, terminal=terminal, started=started, origin=origin)
        wait()
    finally:
        for descriptor in (events_read, control_write, *inner):
            os.close(descriptor)
        relays.close()
        if terminal:
            terminal.close()
        if door:
            progress.asked = door.end()
        origin.close()


def _open_terminal(plan: Plan) -> Foreground | None:
    if not plan.terminal:
        return None
    from runner_e2e.sandbox.terminal import Foreground

    return Foreground()


def _begin(progress: Progress, packed: Packed, streams: Streams, origin: Origin) -> Callable[[], object] | None:
    """Starts the first process; returns what waits for it, or None when the host refuses."""
    plan = progress.plan
    if plan.mode == "sudo":
        from runner_e2e.sandbox.harness import through_sudo

        return through_sudo(progress, streams, origin.mask)
    try:
        maps = origin.ownership_maps(packed)
    except OSError as error:
        _refuse(progress, error, "identity", "files cannot be shown as another user's")
        return None
    try:
        one = origin.first_processes(packed)
        one.launch(packed, Start(argv=plan.argv, streams=streams), maps)
        one.close()
    except OSError as error:
        _refuse(progress, error, "mounts", "new namespaces are refused")
        return None
    finally:
        for descriptor in maps.values():
            os.close(descriptor)
    origin.tell_begun(packed)
    return lambda: origin.collect(one.process)


def _refuse(progress: Progress, error: OSError, layer: str, what: str) -> None:
    """Leaves the launch to a way without *layer*, unless the host only lacks room: then raises :class:`LaunchError`."""
    if progress.plan.namespaces and is_refusal(error):
        progress.refused = (layer, f"{what}: {error.strerror}")
        return
    from runner_e2e.errors import LaunchError

    why, fix = error.strerror or "", remedy(error) or "end other processes"
    raise LaunchError("no process could be started", why=why, fix=fix) from error


def _attend(  # noqa: PLR0913 - all that it attends to
    progress: Progress,
    events: int,
    control: int,
    *,
    relays: Relays,
    terminal: Foreground | None,
    started: Callable[[Report], None] | None,
    origin: Origin,
) -> None:
    """Handles events, signals and relayed streams until the first process tells the end, or closes its own."""
    signals = origin.open()
    waiting = select.poll()
    waiting.register(events, select.POLLIN)
    waiting.register(signals, select.POLLIN)
    relays.register(waiting)
    rest = b""
    while progress.status is None:
        for descriptor, _ in waiting.poll(terminal.pause if terminal else None):
            if descriptor == signals:
                if not origin.pass_on(control, terminal):
                    waiting.unregister(signals)
            elif descriptor != events:
                relays.move(descriptor, waiting)
            elif block := os.read(events, _BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    progress.hear(parse(line), started)
            else:
                relays.drain()
                return
        if terminal and progress.started:
            terminal.enter(control)
    relays.drain()
