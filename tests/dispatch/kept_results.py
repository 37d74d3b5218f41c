"""Result records and the archives that hold them, as the last job of a campaign's run keeps them."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

from tests.github_double.state import Artifact

from runner_e2e.report.billing import Usage
from runner_e2e.report.results import Exit, Failure, Host, Output, Result, Retry, result_as_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.github_double.server import Server
    from tests.github_double.state import Run

__all__ = ["archive", "handle", "keep", "record", "start_run"]


def handle(number: int) -> str:
    """The handle of a made-up cell."""
    return f"cell-{number:016x}"


def record(number: int, *, cost: float | None = 0.25, **changes: Any) -> bytes:
    """A record of one attempt. *cost* is in dollars."""
    verdict = changes.pop("verdict", "passed")
    failure = None if verdict == "passed" else Failure(failure_class="candidate_failure", message="secret-id failed")
    known = {
        "id": f"secret-id/{number}", "handle": handle(number), "campaign": f"20261130T000000Z-{number:06x}",
        "attempt": 1, "attempts": 2, "selection": "env", "verdict": verdict, "failure": failure,
        "started": "2026-11-30T00:00:00.000Z", "ended": "2026-11-30T00:01:00.000Z", "duration_s": 60.0,
        "exit": Exit(code=0), "retry": Retry(allowed=False, reason="passed"), "output": Output(), "left_processes": 0,
        "usage": Usage(cost_usd=cost, cost_status="unknown" if cost is None else "reported"), "sandbox": (),
        "notes": (), "definition_hash": "d", "engine": "1", "host": Host(kernel="6", machine="x86_64", python="3.13"),
    }  # fmt: skip
    return json.dumps(result_as_json(Result(**{**known, **changes}))).encode()


def archive(entries: Iterable[tuple[str | zipfile.ZipInfo, bytes]], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as written:
        for name, content in entries:
            written.writestr(name, content)
    return packed.getvalue()


def start_run(double: Server) -> Run:
    """A run that has ended."""
    workflow = double.state.workflows[0] if double.state.workflows else double.state.add_workflow("paid.yml")
    run = double.state.start(workflow, "schedule", "refs/heads/main", double.state.users["alice"], {})
    run.last.status, run.last.conclusion = "completed", "success"
    return run


def keep(double: Server, run: Run, content: bytes, *, name: str = "results", **changes: Any) -> Artifact:
    """Keeps an artifact of *run*."""
    made = Artifact(id=double.state.number(), name=name, content=content, created_at=double.state.clock.now())
    for attribute, value in changes.items():
        setattr(made, attribute, value)
    run.artifacts.append(made)
    return made
