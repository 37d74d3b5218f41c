"""Starts an agent in the sandbox, quickly: ``python3 -I -S agent_sandbox.py [OPTION…] -- COMMAND…``.

The same as ``runner-e2e sandbox exec``, with nothing but the standard library in the process that holds the walls.
Below ``runner-e2e sandbox serve`` the launch is made by a process that stands ready, and this one only waits for it.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "src"))  # noqa: PTH118, PTH120


def runner_files() -> list[str]:
    """The CI runner's own files; looked for only inside a job, where the module for it is worth its start-up."""
    if not any(name.startswith("GITHUB_") for name in os.environ):
        return []
    from runner_e2e import gha

    return [os.fspath(path) for path in gha.runner_files()]


def main() -> int:
    """Launches, and returns the status."""
    if server := os.environ.get("RUNNER_E2E_SANDBOX_SERVER"):
        from runner_e2e.sandbox import quick_client

        status = quick_client.ask(server, sys.argv[1:])
        if status is not None:
            return status
    import gc

    gc.disable()  # nothing here lives in circles, and each collection costs as much as the mounts of a launch
    from runner_e2e.sandbox import command

    return command.main(sys.argv[1:], runner_files())


if __name__ == "__main__":
    os._exit(main())  # nothing is buffered, and taking Python down would cost a tenth
