"""``command: run``: runs the selected cell in the environment that ``command: setup`` made; installs nothing."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from runner_e2e.cli.step import run_step


def run() -> int:
    """Loads the engine only inside the step's edge, so that an environment that lacks a package is told clearly."""
    from runner_e2e.cli.step_run import run_selected_cell

    return run_selected_cell()


if __name__ == "__main__":
    sys.exit(run_step("run", run))
