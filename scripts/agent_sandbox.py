"""Starts an agent in the sandbox, quickly: ``python3 -I -S agent_sandbox.py [OPTION…] -- COMMAND…``.

The same as ``runner-e2e sandbox exec``, with nothing but the standard library in the process that holds the walls.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "src"))  # noqa: PTH118, PTH120

from runner_e2e.sandbox.arguments import parse_arguments
from runner_e2e.sandbox.command import execute, failure_status


def runner_files() -> list[str]:
    """The CI runner's own files; looked for only inside a job, where the module for it is worth its start-up."""
    if not any(name.startswith("GITHUB_") for name in os.environ):
        return []
    from runner_e2e import gha

    return [os.fspath(path) for path in gha.runner_files()]


def log(line: str) -> None:
    """Writes one line of the log."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Runs the command and returns its status, or 125 to 127 with one message."""
    try:
        return execute(parse_arguments(sys.argv[1:]), also_hide=runner_files(), log=log)
    except Exception as error:
        from runner_e2e.errors import RunnerE2EError

        if not isinstance(error, RunnerE2EError):
            raise
        log(f"agent_sandbox: {error}")
        return failure_status(error.exit_code)


if __name__ == "__main__":
    sys.exit(main())
