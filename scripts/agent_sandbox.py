"""Starts an agent in the sandbox, quickly: ``python3 -I -S agent_sandbox.py [OPTION…] -- COMMAND…``.

The same as ``runner-e2e sandbox exec``, with nothing but the standard library in the process that holds the walls.
"""

from __future__ import annotations

import gc
import os
import sys

gc.disable()  # nothing here lives in circles, and each collection costs as much as the mounts of a launch
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "src"))  # noqa: PTH118, PTH120

from runner_e2e.sandbox.command import main  # noqa: E402


def runner_files() -> list[str]:
    """The CI runner's own files; looked for only inside a job, where the module for it is worth its start-up."""
    if not any(name.startswith("GITHUB_") for name in os.environ):
        return []
    from runner_e2e import gha

    return [os.fspath(path) for path in gha.runner_files()]


if __name__ == "__main__":
    os._exit(main(sys.argv[1:], runner_files()))  # nothing is buffered, and taking Python down would cost a tenth
