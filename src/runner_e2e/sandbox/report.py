"""What a launch hid, showed and was protected by."""

from __future__ import annotations

from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.sandbox.limits import Crossing
    from runner_e2e.sandbox.plan import Plan
    from runner_e2e.sandbox.planning import Survey
    from runner_e2e.sandbox.proxy import Asked

__all__ = ["REPORT_SCHEMA", "LayerState", "Outcome", "Report", "make_report"]

REPORT_SCHEMA = "runner-e2e.sandbox-report/v1"

# What a launch leaves open whatever protects it.
_ALWAYS = ("the agent reads everything that is not hidden, its exposed paths and its own state among it",)
# Layer that is not active -> what that leaves open.
_OPEN_WITHOUT = {
    "mounts": "names, sizes and times of hidden entries can be asked for, and directories above hidden ones cannot be"
    " listed or added to",
    "pids": "command lines, status and mounts of processes outside can be read",
    "ipc": "System V and POSIX shared memory and queues are shared with processes outside",
    "identity": "files of the launcher's user that are not hidden can be changed",
    "startup-files": "startup files, commands and hooks of the launcher's user can be changed",
    "keyrings": "the kernel's keyrings of the user can be read",
    "network": "the network is reachable as from the launcher, services on loopback too",
    "session": "the agent shares the launcher's session and terminal",
}


class LayerState(Record):
    """What became of a layer: "active", "unavailable" or "off", and why."""

    layer: str
    state: str
    why: str = ""


class Report(Record):
    """One launch.

    ``mode`` is how the view was made: privileged, sudo, user-namespace or bare; ``wall`` what keeps it: landlock,
    locked-mounts or landlock-alone. ``user`` is the agent's. ``absent`` are paths to hide that do not exist,
    ``created`` directories made before the launch. ``limits`` say what stays open. ``resources`` are limits on what
    the launch may use, in bytes, seconds or pieces; ``ended`` is the one that ended it. ``network`` is what the agent
    reaches: open, none, loopback or hosts, those of ``hosts``; ``asked`` is what it asked the proxy for, told at its
    end, as ``replaced`` is: hidden paths that were no longer there.
    """

    mode: str
    wall: str
    user: int
    hidden: tuple[str, ...]
    absent: tuple[str, ...]
    exposed: tuple[str, ...]
    created: tuple[str, ...]
    layers: tuple[LayerState, ...]
    limits: tuple[str, ...]
    resources: tuple[tuple[str, int], ...] = ()
    ended: Crossing | None = None
    network: str = "open"
    hosts: tuple[str, ...] = ()
    asked: tuple[Asked, ...] = ()
    replaced: tuple[str, ...] = ()

    def state(self, layer: str) -> str:
        """The state of one layer."""
        return next(entry.state for entry in self.layers if entry.layer == layer)

    def to_document(self) -> dict[str, object]:
        """The JSON object of this report."""
        layers = [entry.values() for entry in self.layers]
        ended = self.ended.values() if self.ended else None
        return {
            "schema": REPORT_SCHEMA,
            **self.values(),
            "layers": layers,
            "resources": dict(self.resources),
            "ended": ended,
            "asked": [entry.values() for entry in self.asked],
        }

    def verdict(self) -> str:
        """Which limit ended the launch, for people; "" if none did."""
        if self.ended is None:
            return ""
        from runner_e2e.sandbox.limits import show

        value = show(self.ended.limit, dict(self.resources)[self.ended.limit])
        return f"sandbox: ended by the limit {self.ended.limit} ({value}): {self.ended.seen}"

    def last_lines(self) -> list[str]:
        """What is known only at the end and must be told, as short lines for a log."""
        lines = [self.verdict()] if self.ended else []
        return lines + [
            f"sandbox: {path} was replaced or removed while the agent ran: what came instead was not hidden"
            for path in self.replaced
        ]

    def refusals(self) -> list[str]:
        """What the proxy refused, as short lines for a log."""
        return [
            f"sandbox: refused {entry.host}:{entry.port} ({entry.times}x): {entry.refused}"
            for entry in self.asked
            if entry.refused
        ]

    def lines(self) -> list[str]:
        """The report as short lines for a log."""
        active = ", ".join(entry.layer for entry in self.layers if entry.state == "active")
        lines = [f"sandbox: wall {self.wall}, made {self.mode}, user {self.user}", f"sandbox: active: {active}"]
        lines += [f"sandbox: hidden {path}" for path in self.hidden]
        lines += [f"sandbox: exposed {path}" for path in self.exposed]
        lines += [f"sandbox: created {path}" for path in self.created]
        lines += [f"sandbox: absent {path}" for path in self.absent]
        if self.resources:
            from runner_e2e.sandbox.limits import show

            amounts = ", ".join(f"{name} {show(name, value)}" for name, value in self.resources)
            lines.append(f"sandbox: limits: {amounts}")
        if self.network != "open":
            lines.append(f"sandbox: network: {', '.join(self.hosts) or self.network}")
        lines += [f"sandbox: {e.layer} {e.state}: {e.why}" for e in self.layers if e.state == "unavailable"]
        return lines + [
            f"sandbox: limit: {text}" for text in self.limits if text not in (*_ALWAYS, _OPEN_WITHOUT["network"])
        ]


class Outcome(Record):
    """How a launch ended: the status as shells give it (128 + n for signal n), and what protected it."""

    status: int
    report: Report


def make_report(
    plan: Plan,
    found: Survey,
    *,
    created: tuple[str, ...],
    layers: Mapping[str, tuple[str, str]],
    limits: tuple[str, ...],
) -> Report:
    """The report of the launch of *plan*; *layers* are the states that were told, with why."""
    states = []
    for layer, need in plan.layers:
        state, why = layers.get(layer, ("", ""))
        if not state:
            state, why = ("off", "by policy") if need == "off" else ("unavailable", _reason(plan, layer))
        states.append(LayerState(layer=layer, state=state, why=why))
    inactive = [entry.layer for entry in states if entry.state != "active"]
    opened = [_OPEN_WITHOUT[layer] for layer in inactive if layer in _OPEN_WITHOUT]
    return Report(
        mode=plan.mode,
        wall="locked-mounts" if plan.locked else "landlock" if plan.namespaces else "landlock-alone",
        user=plan.user if plan.user >= 0 else plan.launcher_user,
        hidden=tuple(fact.real for fact in found.hidden),
        absent=found.absent,
        exposed=tuple(fact.real for fact in found.exposed),
        created=created,
        layers=tuple(states),
        resources=plan.limits,
        network=plan.network or "open",
        hosts=plan.hosts,
        limits=(*_ALWAYS, *dict.fromkeys((*opened, *plan.notes, *found.limits, *limits))),
    )


def _reason(plan: Plan, layer: str) -> str:
    if layer == "scopes":
        return f"Landlock ABI {plan.abi} has none; they came with 6"
    if layer == "identity" and plan.mode == "user-namespace":
        return "an ordinary user cannot give the agent a user of its own"
    return "it needs mounts" if plan.mode == "bare" else "the launcher's user is kept"
