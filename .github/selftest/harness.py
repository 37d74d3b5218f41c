"""The harness of our own selftest: one agent behind the sandbox, with a task that it can only do if the walls hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Runs the agent and judges what it left: a greeting, and what it could read that it must not."""
    selected = os.environ.pop("PAPERCLIP_RUNNER_E2E_SELECTED_ID")
    workspace = Path(os.environ["RUNNER_E2E_INSTANCE"]) / "workspace"
    workspace.mkdir()
    agent = [
        "runner-e2e",
        "sandbox",
        "exec",
        "--",
        sys.executable,
        "-I",
        str(HERE / "agent.py"),
        str(HERE / "harness.py"),
    ]
    done = subprocess.run(agent, cwd=workspace, capture_output=True, text=True, timeout=60, check=False)
    report = workspace / "report.json"
    found = json.loads(report.read_text()) if report.is_file() else {}
    problems = [f"it read {path}" for path in found.get("read", [])]
    problems += ["it met its case id"] if selected in json.dumps(found) else []
    if done.returncode or found.get("greeting") != "hello":
        problems.append(f"status {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
    result: dict[str, object] = {
        "schema": "runner-e2e.harness-result/v1",
        "verdict": "failed" if problems else "passed",
    }
    if problems:
        result["failure"] = {"class": "candidate_failure", "message": "; ".join(problems)}
    result["usage"] = {"cost_usd": 0.0}
    Path(os.environ["RUNNER_E2E_RESULT"]).write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
