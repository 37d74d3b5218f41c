"""The program that makes the attempts: the targets as a JSON file, a JSON line for each trial on the output."""

from __future__ import annotations

import json
import os
import sys
from functools import partial

from runner_e2e.sandbox.attempts import files, network, processes
from runner_e2e.sandbox.attempts.model import Attempt, Targets, perform

__all__ = ["ATTEMPTS", "NETWORK_ATTEMPTS", "main", "named"]

ATTEMPTS: tuple[Attempt, ...] = (*files.ATTEMPTS, *processes.ATTEMPTS)
NETWORK_ATTEMPTS: tuple[Attempt, ...] = network.ATTEMPTS  # denied only where the policy says what is reached


def _read(path: str, targets: Targets) -> str:
    """Read another run's file."""
    del targets
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4000)


def _list(path: str, targets: Targets) -> str:
    """List a directory that holds every run's entry."""
    del targets
    return " ".join(os.listdir(path)) or "empty"


def _use(path: str, targets: Targets) -> str:
    """Write and read the run's own state."""
    del targets
    name = path
    if os.path.isdir(path):
        os.listdir(path)
        name = f"{path}/probe-{os.getpid()}"
    with open(name, "a+", encoding="utf-8") as file:
        file.write("probe")
        file.seek(0)
        read = file.read()
    if name != path:
        os.unlink(name)
    return read[-5:]


_ACTIONS = {"read": (_read, True), "list": (_list, False), "use": (_use, False)}


def named(checks: list[dict[str, str]]) -> tuple[Attempt, ...]:
    """The attempts of a layout's named checks."""
    made = []
    for check in checks:
        action, reads = _ACTIONS[check["action"]]
        made.append(Attempt(name=check["name"], run=partial(action, check["path"]), reads=reads))
    return tuple(made)


def main() -> None:
    """Makes every attempt."""
    with open(sys.argv[1], encoding="utf-8") as file:
        targets = Targets(**json.load(file))
    perform((*named(targets.checks), *ATTEMPTS, *NETWORK_ATTEMPTS), targets)
