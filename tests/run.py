"""Runs every test: first what may run in parallel, then what looks at the whole machine, alone.

Extra arguments go to both pytest runs. The second one's summary is the last thing printed. A checkout below /tmp is
tested in a copy elsewhere: sandboxes give their programs a /tmp of their own, in which the checkout would be missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NO_TESTS = 5  # pytest's status when a selection is empty, as the serial part may be under -k


def main(arguments: list[str]) -> int:
    """Runs the tests here, or in a copy where this place would change what they find."""
    if ROOT.is_relative_to("/tmp"):
        with tempfile.TemporaryDirectory(prefix="runner-e2e-tests-", dir="/var/tmp") as directory:
            return run_in_a_copy(Path(directory), arguments)
    return run_tests(arguments)


def run_in_a_copy(directory: Path, arguments: list[str]) -> int:
    """Copies the checkout, makes its environment there, and runs the tests of the copy."""
    print(f"run: {ROOT} lies below /tmp, so a copy in {directory} is tested", flush=True)
    directory.chmod(0o755)  # agents that run as another user must get there
    copy = directory / "checkout"
    leave = shutil.ignore_patterns("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".runner-e2e", ".work")

    def ignore(place: str, names: list[str]) -> set[str]:
        environments = {"dev", "runtime"} if place == str(ROOT / ".venv") else set()
        return environments | set(leave(place, names))

    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignore)
    made = subprocess.run(
        [sys.executable, str(copy / "scripts" / "make_environment.py"), "dev", ".venv/dev"], cwd=copy, check=False
    )
    if made.returncode:
        return made.returncode
    return subprocess.run(
        [copy / ".venv" / "dev" / "bin" / "python3", "tests/run.py", *arguments], cwd=copy, check=False
    ).returncode


def run_tests(arguments: list[str]) -> int:
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
