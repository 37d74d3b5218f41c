"""The agent of our own selftest: does its small task, then looks where a case id would lie."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path


def readable(paths: list[Path]) -> dict[str, str]:
    """Path -> content of those that can be read."""
    found = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[str(path)] = path.read_text(errors="replace")
    return found


def listed(directory: Path, pattern: str) -> list[Path]:
    """What a pattern finds below a directory; nothing where that is refused."""
    with contextlib.suppress(OSError):
        return sorted(directory.glob(pattern))
    return []


def runner_files() -> list[Path]:
    """The CI runner's files beside this job, as GitHub's runner and act lay them down."""
    found = []
    for parent in Path.cwd().parents:
        found += listed(parent, "_temp/_github_workflow/*.json") + listed(parent, "_temp/*.sh")
        found += listed(parent, "_temp/_runner_file_commands/*") + listed(parent, "act/workflow/*")
    return found


def main() -> int:
    """Writes what was asked for and what could be read."""
    secret = readable([*map(Path, sys.argv[1:]), *runner_files()])
    processes = [path for path in listed(Path("/proc"), "*") if path.name.isdigit()]
    seen = readable([path / name for path in processes for name in ("cmdline", "environ")])
    report = {
        "greeting": "hello",
        "read": sorted(secret),
        "seen": [*secret.values(), *seen.values()],
    }
    Path("report.json").write_text(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
