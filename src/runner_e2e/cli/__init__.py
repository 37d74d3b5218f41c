"""The command line: one file a verb, loaded only when it is called.

Only this package and ``scripts/`` print or exit the process.
"""

from __future__ import annotations

import sys

from runner_e2e import __version__

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Runs ``runner-e2e`` with *arguments* (default: those of the process) and returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:  # answered before click is imported: scripts ask this often
        print(f"runner-e2e {__version__}")
        return 0
    from runner_e2e.cli.group import run

    return run(given)
