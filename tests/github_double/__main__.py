"""Starts a double by hand: ``python -m tests.github_double [--port 8500] [--workflow FILE]``.

It prints what to set so that the product talks to it, then one line a request. Nothing leaves the machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.github_double.clock import RealClock
from tests.github_double.faults import FAULTS
from tests.github_double.server import Entry, Server
from tests.github_double.state import State


def main() -> int:
    """Serves until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.github_double", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="a free one by default")
    parser.add_argument("--repository", default="octo/evals", metavar="OWNER/NAME")
    parser.add_argument("--workflow", type=Path, action="append", default=[], help="a workflow file of the repository")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="what goes wrong with a tenth of all requests")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    given = parser.parse_args()
    state = State(repository=given.repository, clock=RealClock())
    for path in given.workflow:
        workflow = state.add_workflow(f".github/workflows/{path.name}", triggers=("workflow_dispatch", "schedule"))
        workflow.inputs = {"nonce": False, "selection": False, "target": False}
        workflow.run_name = f"{path.stem} ${{{{ inputs.nonce }}}}"
        state.write_file(workflow.path, state.default_branch, path.read_bytes(), "workflow", None)
    with Server(state, port=given.port) as server:
        if given.fault:
            server.faults.at_random(given.seed, 0.1, (given.fault,))
        server.after = show
        print(f"export GITHUB_API_URL={server.url} GH_TOKEN=token-of-alice")
        print(f"runner-e2e doctor --repo {state.repository}", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return 0


def show(entry: Entry) -> None:
    """One request."""
    print(f"{entry.status} {entry.verb} {entry.path} {entry.fault}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
