"""``command: claim``: takes the claim of this attempt, or ends the run before anything is paid."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from runner_e2e.cli.step import run_step


def claim() -> int:
    """Loads the work only inside the step's edge, so that an environment that lacks a package is told clearly."""
    from runner_e2e.cli import step_gate

    return step_gate.claim()


if __name__ == "__main__":
    sys.exit(run_step("claim", claim))
