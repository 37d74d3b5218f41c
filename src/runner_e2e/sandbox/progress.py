"""What a launcher knows of a launch, from the events it hears; and which way to try next when the host refuses one."""

from __future__ import annotations

import os

from runner_e2e.sandbox.report import Outcome, make_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.errors import LaunchError
    from runner_e2e.sandbox.events import Event
    from runner_e2e.sandbox.limits import Crossing
    from runner_e2e.sandbox.plan import Plan, Step
    from runner_e2e.sandbox.planning import Host, Survey
    from runner_e2e.sandbox.policy import Policy
    from runner_e2e.sandbox.proxy import Asked
    from runner_e2e.sandbox.report import Report

__all__ = ["Progress", "Ways", "exit_status", "require_landlock"]

_CAN_BE_REFUSED = ("mounts", "pids", "ipc", "network", "identity")


# What timeout(1) ends with, too.
_LIMIT_STATUS = 124
# 128 + SIGXCPU, 128 + SIGXFSZ
_LIMIT_OF_STATUS = {152: "cpu", 153: "file-size"}


def exit_status(wait_status: int) -> int:
    """The status that a shell gives for *wait_status* of waitpid(2)."""
    return 128 + os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else os.WEXITSTATUS(wait_status)


def require_landlock(policy: Policy, host: Host) -> None:
    """Raises :class:`LaunchError` where the wall that *policy* asks for cannot be built."""
    if host.abi > 0 or policy.wall == "locked-mounts":
        return
    from runner_e2e.errors import LaunchError

    raise LaunchError(
        "the sandbox cannot be set up: this kernel has no Landlock",
        why="landlock_create_ruleset is missing or switched off; without it nothing keeps the agent in",
        fix="use Linux 5.13 or later with landlock in the lsm= list of the kernel's command line",
    )


class Ways:
    """The ways to launch, strongest first; a refused layer is left out where the policy lets it be."""

    def __init__(self, policy: Policy, modes: Sequence[str]) -> None:
        self.policy = policy
        self.modes = list(modes)
        self.without: dict[str, str] = {}
        if policy.need("mounts") == "off":
            self.modes = ["bare"]

    @property
    def mode(self) -> str:
        """The mode to try now."""
        return self.modes[0]

    def refuse(self, layer: str, why: str) -> None:
        """Takes the host's refusal of *layer*; raises :class:`LaunchError` when nothing weaker is allowed."""
        self.without[layer] = f"{self.without[layer]}; {why}" if layer in self.without else why
        if layer != "mounts":
            if layer not in _CAN_BE_REFUSED or self.policy.need(layer) == "required":
                raise _unavailable(layer, self.without[layer])
            return
        self.modes.pop(0)
        needs_mounts = self.policy.need("mounts") == "required" or self.policy.wall == "locked-mounts"
        if not self.modes or (needs_mounts and self.modes == ["bare"]):
            raise _unavailable("mounts", self.without["mounts"])

    def reasons(self) -> dict[str, str]:
        """Layer left out -> why. What a refused way lacked says nothing about the one that is tried now."""
        if self.mode != "bare":
            return {layer: why for layer, why in self.without.items() if layer != "mounts"}
        if self.policy.wall == "locked-mounts":
            raise _unavailable("mounts", self.without.get("mounts", "the layer mounts is off"))
        for layer in ("pids", "ipc", "network", "identity", "startup-files"):
            # Without a namespace, system calls are filtered instead where nothing at all is to be reached.
            kept = layer == "network" and self.policy.network.reach == "none"
            if self.policy.need(layer) == "required" and not kept:
                raise _unavailable(layer, self.without.get("mounts", "the layer mounts is off"))
        return dict(self.without)


def _unavailable(layer: str, why: str) -> LaunchError:
    from runner_e2e.errors import LaunchError

    return LaunchError(
        f"the layer {layer} is required and this host refuses it",
        why=why,
        fix="run as root or where user namespaces are allowed, or do not require it",
    )


class Progress:
    """One attempt at a launch, as told by its events."""

    def __init__(self, plan: Plan, found: Survey, *, created: tuple[str, ...], without: dict[str, str]) -> None:
        self.plan = plan
        self.found = found
        self.created = created
        self.layers = {name: ("unavailable", why) for name, why in without.items()}
        self.limits: list[str] = []
        self.refused: tuple[str, str] | None = None
        self.failure: tuple[str, ...] | None = None
        self.status: int | None = None
        self.crossing: Crossing | None = None
        self.asked: tuple[Asked, ...] = ()
        self.replaced: tuple[str, ...] = ()
        self.started = False

    def hear(self, event: Event, on_start: Callable[[Report], None] | None = None) -> None:
        """Takes one event; calls *on_start* when it says that the command runs."""
        if event.kind == "layer":
            name, state, *why = event.fields
            self.layers[name] = (state, why[0] if why else "")
        elif event.kind == "limit":
            self.limits.append(event.fields[0])
        elif event.kind == "started":
            self.started = True
            if on_start:
                on_start(self.report())
        elif event.kind == "unavailable":
            self.refused = (event.fields[0], event.fields[1])
        elif event.kind == "failed":
            self.failure = event.fields
        elif event.kind == "crossed":
            self._cross(*event.fields)
        elif event.kind == "exit":
            self.status = int(event.fields[0])

    def _cross(self, limit: str, seen: str) -> None:
        from runner_e2e.sandbox.limits import Crossing

        self.crossing = Crossing(limit=limit, seen=seen)

    def report(self) -> Report:
        """What protects this launch."""
        report = make_report(self.plan, self.found, created=self.created, layers=self.layers, limits=tuple(self.limits))
        if self.asked or self.replaced:
            report = report.replace(asked=self.asked, replaced=self.replaced)
        return report.replace(ended=self.crossing) if self.crossing else report

    def outcome(self) -> Outcome:
        """How it ended; raises when the command never ran."""
        if self.failure is not None:
            raise _failed(self.failure)
        if self.status is None:
            raise _failed(("125", "the first process of the sandbox was killed", "it ended without a word"))
        status = exit_status(self.status)
        self.replaced = tuple(step.path for step in self.plan.steps if step.hidden and _is_another(step))
        if self.crossing is not None:
            return Outcome(status=_LIMIT_STATUS, report=self.report())
        if (name := _LIMIT_OF_STATUS.get(status)) and name in dict(self.plan.limits):
            self._cross(name, "the kernel ended the command")
        return Outcome(status=status, report=self.report())


def _is_another(step: Step) -> bool:
    """Whether what *step* hid is no longer there: its cover went with it, and hid nothing that came instead."""
    try:
        found = os.lstat(step.path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return (found.st_dev, found.st_ino) != (step.device, step.inode)


def _failed(fields: Sequence[str]) -> LaunchError:
    from runner_e2e.errors import CommandNotExecutableError, CommandNotFoundError, LaunchError

    status, what, why, fix = (*fields, "", "", "")[:4]
    kind = {"126": CommandNotExecutableError, "127": CommandNotFoundError}.get(status, LaunchError)
    return kind(what, why=why, fix=fix)
