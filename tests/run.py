"""Runs every test: first what may run in parallel, then what looks at the whole machine, alone.

Extra arguments go to both pytest runs. The second one's summary is the last thing printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NO_TESTS = 5  # pytest's status when a selection is empty, as the serial part may be under -k


def main(arguments: list[str]) -> int:
    """Returns the first status that is not fine."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    workers = str(max(2, len(os.sched_getaffinity(0))))
    parts = (["-n", workers, "--dist=worksteal", "-m", "not serial"], ["-m", "serial"])
    statuses = [
        subprocess.run(
            [sys.executable, "-m", "pytest", *part, *arguments], cwd=ROOT, env=environment, check=False
        ).returncode
        for part in parts
    ]
    if all(status == NO_TESTS for status in statuses):
        return NO_TESTS
    return next((status for status in statuses if status not in {0, NO_TESTS}), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
