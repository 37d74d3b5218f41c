"""``command: dispatch``: pays for a planned campaign and follows its runs to their end."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from runner_e2e.cli.step import run_step


def dispatch() -> int:
    """Loads the work only inside the step's edge, so that an environment that lacks a package is told clearly."""
    from runner_e2e.cli import step_dispatch

    return step_dispatch.dispatch()


if __name__ == "__main__":
    sys.exit(run_step("dispatch", dispatch))
