"""Launches an artifact, quickly: ``python3 -I -S launch_artifact.py --sha256 DIGEST [OPTION…] PATH [-- ARGUMENT…]``.

The same as ``runner-e2e artifact exec``, with nothing but the standard library in the process.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "src"))  # noqa: PTH118, PTH120

from runner_e2e.artifacts.command import execute, failure_status
from runner_e2e.errors import RunnerE2EError


def log(line: str) -> None:
    """Writes one line of the log."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Becomes the artifact, or returns 125 to 127 after one message."""
    try:
        execute(sys.argv[1:], log=log)
    except RunnerE2EError as error:
        log(f"launch_artifact: {error}")
        return failure_status(error.exit_code)


if __name__ == "__main__":
    sys.exit(main())
