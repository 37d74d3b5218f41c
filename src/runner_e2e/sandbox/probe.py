"""Proves on this host, before anything is paid for, that the walls hold.

Every attempt is made outside, where it must succeed, and inside, where it must not.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import LaunchError
from runner_e2e.sandbox.attempts.program import ATTEMPTS, NETWORK_ATTEMPTS, named
from runner_e2e.sandbox.command import entry
from runner_e2e.sandbox.fixture import ID_VARIABLE, StoppedError, World
from runner_e2e.sandbox.layouts import apply, probe_checks
from runner_e2e.sandbox.policy import DROPPED_VARIABLES, EnvironmentRules, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.sandbox.attempts.model import Attempt, Trial
    from runner_e2e.sandbox.layouts import Layout

__all__ = [
    "PROBE_SCHEMA",
    "TOLD_WITHOUT_NAMESPACE",
    "Check",
    "ProbeResult",
    "StoppedError",
    "append_to_log",
    "judge",
    "open_without",
    "run_probe",
]

PROBE_SCHEMA: Final = "runner-e2e.sandbox-probe/v1"

# Layer that is not active -> attempts that then may get through: the limits that the documentation names.
OPEN_WITHOUT: Final[Mapping[str, frozenset[str]]] = {
    "mounts": frozenset(
        {
            "stat",
            "access",
            "change-mode",
            "change-times",
            "set-attribute",
            "statfs",
            "read-link",
            "watch",
            "hidden-socket",
        }
    ),
    "startup-files": frozenset(
        {"change-startup-file", "replace-startup-file", "make-startup-file", "add-command", "add-hook"}
    ),
    "pids": frozenset(
        {
            "run:harnessCmdline",
            "any-command-line",
            "harness-mounts",
            "harness-status",
            "harness-descriptors",
            "prlimit",
            "oom-score",
        }
    ),
    "ipc": frozenset({"system-v-memory", "memory-file", "message-queue"}),
    "keyrings": frozenset({"keyring"}),
    "scopes": frozenset({"abstract-socket", "signal"}),
    "identity": frozenset({"core-pattern"}),
}


# What the kernel still tells where the network is taken away by a filter of system calls, without a namespace.
TOLD_WITHOUT_NAMESPACE: Final = frozenset({"connections", "connections-of-harness", "socket-diagnostics", "interfaces"})


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: what was tried, what came of it outside and inside, and the verdict.

    ``expected`` is denied, usable or recorded. ``verdict`` is ok, limit (gets through because a layer is missing here),
    not-applicable (this host has nothing of the kind) or failure.
    """

    name: str
    tries: str
    expected: str
    outside: str
    inside: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """All checks of one probe, and what protected the launch."""

    layout: str
    seconds: float
    report: dict[str, object]
    checks: tuple[Check, ...]

    @property
    def failures(self) -> tuple[str, ...]:
        """Names of the checks that failed."""
        return tuple(check.name for check in self.checks if check.verdict == "failure")

    @property
    def limits(self) -> tuple[str, ...]:
        """Names of the attempts that get through because this host lacks a layer."""
        return tuple(check.name for check in self.checks if check.verdict == "limit")

    def summary(self) -> dict[str, object]:
        """The JSON object of this result without its single checks."""
        verdicts = [check.verdict for check in self.checks]
        return {
            "layout": self.layout,
            "seconds": round(self.seconds, 3),
            "checks": len(verdicts),
            "held": verdicts.count("ok"),
            "failures": list(self.failures),
            "limits": list(self.limits),
            "not_applicable": [check.name for check in self.checks if check.verdict == "not-applicable"],
        }

    def to_document(self) -> dict[str, object]:
        """The JSON object of this result."""
        return {
            "schema": PROBE_SCHEMA,
            "layout": self.layout,
            "seconds": round(self.seconds, 3),
            "failures": list(self.failures),
            "limits": list(self.limits),
            "checks": [asdict(check) for check in self.checks],
            "report": self.report,
        }


def open_without(states: Mapping[str, str]) -> frozenset[str]:
    """Attempts that may get through with these layers (name -> state): those of every layer that is not active."""
    missing = [names for layer, names in OPEN_WITHOUT.items() if states.get(layer) != "active"]
    return frozenset[str]().union(*missing)


def judge(  # noqa: PLR0913 - what a verdict depends on
    attempt: Attempt,
    outside: Trial | None,
    inside: Trial | None,
    *,
    canaries: tuple[str, str],
    lasting: bool = True,
    usable: bool = False,
    allowed: frozenset[str] = frozenset(),
) -> Check:
    """The verdict on one attempt. *canaries* are those of the world outside and of the world inside.

    *lasting* is whether a change inside reached the real file, *usable* whether success inside is what is wanted,
    *allowed* are the attempts that may get through here.
    """
    expected = "usable" if usable else "recorded" if attempt.name in allowed else "denied"
    got_out = _got(attempt, outside, canaries[0])
    got_in = _got(attempt, inside, canaries[1]) and (lasting or not attempt.changes)
    if outside is None or inside is None:
        verdict = "failure"
    elif outside.outcome == "absent" or (attempt.may_lack and not got_out):
        verdict = "not-applicable"
    elif not got_out:
        verdict = "failure"
    elif usable:
        verdict = "ok" if got_in else "failure"
    elif not got_in:
        verdict = "ok"
    else:
        verdict = "limit" if attempt.name in allowed else "failure"
    return Check(
        name=attempt.name,
        tries=attempt.tries,
        expected=expected,
        outside=_words(outside, got=got_out),
        inside=_words(inside, got=got_in),
        verdict=verdict,
    )


def _got(attempt: Attempt, trial: Trial | None, canary: str) -> bool:
    return trial is not None and trial.outcome == "done" and (not attempt.reads or canary in trial.detail)


def _words(trial: Trial | None, *, got: bool) -> str:
    if trial is None:
        return "not tried: the attempts ended early"
    if trial.outcome == "done":
        return "succeeded" if got else "found nothing"
    return trial.detail if trial.outcome == "denied" else f"absent: {trial.detail}"


def run_probe(
    layout: Layout,
    *,
    policy: Policy | None = None,
    python: str = sys.executable,
    stop: int = -1,
) -> ProbeResult:
    """Probes this host with *layout*; *policy* gives the wall, the identity and the layers to probe with.

    Raises :class:`StoppedError` as soon as the descriptor *stop* is readable.
    """
    began = time.monotonic()
    with World.make(python=python, furnish=_furnisher(layout)) as world:
        outside = world.trials(world.command(python), _variables(layout, world.root), stop=stop)
        out_canary = world.canary
    with World.make(python=python, furnish=_furnisher(layout)) as world:
        words, report_path = _launch_words(layout, world, policy or Policy(), python)
        before = {attempt.name: world.state(attempt.changes) for attempt in ATTEMPTS if attempt.changes}
        inside = world.trials([*words, *world.command(python)], _variables(layout, world.root), stop=stop)
        report = json.loads(report_path.read_text())
        changed = {a.name for a in ATTEMPTS if a.changes and world.state(a.changes) != before[a.name]}
        checks = world.targets.checks
        canaries = (out_canary, world.canary)
    states = {entry["layer"]: entry["state"] for entry in report["layers"]}
    allowed = open_without(states)
    if states.get("pids") != "active":
        allowed |= TOLD_WITHOUT_NAMESPACE
    network = NETWORK_ATTEMPTS if states.get("network") == "active" else ()
    usable = {check["name"] for check in checks if check["action"] == "use"}
    judged = [
        judge(
            attempt,
            outside.get(attempt.name),
            inside.get(attempt.name),
            canaries=canaries,
            lasting=attempt.name in changed,
            usable=attempt.name in usable,
            allowed=allowed,
        )
        for attempt in (*named(checks), *ATTEMPTS, *network)
    ]
    seconds = time.monotonic() - began
    return ProbeResult(layout=layout.name, seconds=seconds, report=report, checks=tuple(judged))


def _values(layout: Layout, root: Path) -> dict[str, str]:
    instance = str(root / "instance")
    return {"instance": instance} | {
        name: text.replace("{instance}", instance) for name, text in layout.probe.given.items()
    }


def _variables(layout: Layout, root: Path) -> dict[str, str]:
    instance = str(root / "instance")
    return {name: text.replace("{instance}", instance) for name, text in layout.probe.environment.items()}


def _furnisher(layout: Layout) -> Callable[[Path, str], list[dict[str, str]]]:
    """What puts the files of *layout* and its named checks into a world."""

    def furnish(root: Path, canary: str) -> list[dict[str, str]]:
        checks = probe_checks(layout, values=_values(layout, root), environment=_variables(layout, root))
        for _, action, path in checks:
            _make(Path(path), canary, action)
        return [{"name": name, "action": action, "path": path} for name, action, path in checks]

    return furnish


def _make(path: Path, canary: str, action: str) -> None:
    if action == "read":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{canary}\n")
    elif action == "use" and path.suffix:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    else:
        path.mkdir(parents=True, exist_ok=True)


def _launch_words(layout: Layout, world: World, base: Policy, python: str) -> tuple[list[str], Path]:
    scope = apply(
        layout,
        provider=layout.probe.provider,
        values=_values(layout, world.root),
        environment=_variables(layout, world.root),
    )
    interpreter = (os.path.dirname(os.path.dirname(os.path.realpath(python))), os.path.dirname(os.path.dirname(python)))
    own = Policy(hide=world.hidden, workspace=(str(world.work),), share=tuple(dict.fromkeys(interpreter)))
    policy = base.joined(scope).joined(own)
    rules = EnvironmentRules(drop=(*DROPPED_VARIABLES, ID_VARIABLE))
    policy_path, report_path = world.root / "policy.json", world.root / "report.json"
    policy_path.write_text(json.dumps(policy.replace(environment=rules).to_document()))
    options = ["--policy", str(policy_path), "--report", str(report_path), "--quiet", "--"]
    return [*entry(python), *options], report_path


def append_to_log(result: ProbeResult, path: Path) -> None:
    """Appends the result as one JSON line to a server's log."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result.to_document()) + "\n")
    except OSError as error:
        raise LaunchError(
            f"the probe cannot be appended to {path}", why=error.strerror or str(error), fix="name a writable file"
        ) from error
