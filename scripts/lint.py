"""``command: lint``: lints the workflows of the workspace; makes the environment first where `setup` has not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from runner_e2e.cli.step import run_step  # noqa: E402 - the package is found only after the line above
from runner_e2e.cli.step_environment import make_environment, refuse_secrets  # noqa: E402

READY = "--ready"  # said to itself by the process that became one of the environment


def lint() -> int:
    """Becomes the Python of the environment, then lints."""
    if READY not in sys.argv[1:]:
        refuse_secrets("lint")
        python = str(make_environment("lint", ROOT) / "python3")
        sys.stdout.flush()
        os.execv(python, [python, "-I", __file__, READY])  # noqa: S606 - replaced, not started
    from runner_e2e.cli.step_lint import lint_workflows

    return lint_workflows()


if __name__ == "__main__":
    sys.exit(run_step("lint", lint))
