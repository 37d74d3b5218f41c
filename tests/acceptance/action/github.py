"""A double of GitHub that knows a repository on this machine, and what act must say to its steps."""

from __future__ import annotations

import contextlib
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.github_double.clock import ManualClock
from tests.github_double.server import Server
from tests.github_double.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.github_double.state import Run

TOKEN = "ghs-the-token-of-the-run"


@contextlib.contextmanager
def github_with(repository: Path, workflow: str) -> Iterator[Server]:
    """A double with the commit of *repository* on its default branch, and the *workflow* there."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True)
    # Its clock is the machine's: the steps compare nonces with it.
    with Server(State(clock=ManualClock(datetime.now(UTC).timestamp())), validating=False) as double:
        state = double.state
        state.objects[head.stdout.strip()] = {"kind": "commit", "tree": "", "parents": [], "message": ""}
        state.refs["refs/heads/main"] = head.stdout.strip()
        state.tokens[TOKEN] = state.users["alice"]
        state.add_workflow(f".github/workflows/{workflow}", triggers=("schedule", "workflow_dispatch"))
        yield double


def start_run(double: Server, event: str = "workflow_dispatch", **inputs: str) -> Run:
    """Creates a run of the workflow, as a dispatch or the schedule would."""
    state = double.state
    return state.start(state.workflows[0], event, "refs/heads/main", state.users["alice"], inputs)


def runner_words(double: Server, run: Run, *, allowlist: str = "[11]") -> list[str]:
    """What act is told beside the workflow: who started it, which run it is, where the API is, the allowlist."""
    words = ["--actor", run.actor.login, "--var", f"RUNNER_E2E_ALLOWLIST={allowlist}"]
    variables = {"API_URL": double.url, "RUN_ID": str(run.id), "REPOSITORY": double.state.repository}
    return words + [word for name, value in variables.items() for word in ("--env", f"GITHUB_{name}={value}")]
