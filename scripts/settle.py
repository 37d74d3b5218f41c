"""``command: settle``: writes what the run has cost into the shared ledger."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from runner_e2e.cli.step import run_step


def settle() -> int:
    """Loads the work only inside the step's edge, so that an environment that lacks a package is told clearly."""
    from runner_e2e.cli import step_settle

    return step_settle.settle()


if __name__ == "__main__":
    sys.exit(run_step("settle", settle))
