"""Runs a command under the product's own exec audit and prints what every command line carried, as JSON.

Reads what to run and what to look for from its first line of input, so that no value stands on its own command line
or in its environment. The command's output goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from runner_e2e.sandbox.exec_audit import Canary, Exec, Options, audit


def main() -> int:
    """Audits; the report has the kernel's record of each exec that leaked, and what could not be seen."""
    given = json.loads(sys.stdin.readline())
    canaries = tuple(Canary(name=f"canary {number}", value=value) for number, value in enumerate(given["canaries"]))
    commands: list[list[str]] = []

    def keep(seen: Exec) -> None:
        if seen.leaks:
            commands.append(list(seen.argv))

    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - its descriptor is handed on
        outcome = audit(
            given["command"],
            canaries=canaries,
            options=Options(linger=5, end_survivors=True, timeout=given["timeout"]),
            environ={os.fsencode(name): os.fsencode(value) for name, value in given["environ"].items()},
            directory=Path(given["directory"]),
            descriptors={0: nothing.fileno(), 1: 2, 2: 2},
            sink=keep,
        )
    report = {
        "status": outcome.status, "execs": outcome.execs, "verdict": outcome.verdict, "gaps": outcome.gaps,
        "seen": [" ".join(words) for words in commands], "seconds": outcome.seconds,
    }  # fmt: skip
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
