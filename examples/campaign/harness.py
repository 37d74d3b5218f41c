"""The harness of the example campaign: trusted code that runs one cell.

It takes the id of its cell from the environment, prepares a workspace, starts the agent through
``runner-e2e sandbox exec``, looks at what the agent did, and writes its result. A real harness starts a real
product here; the contract with the engine is the same (docs/harness.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from planning import NoCodexError, judge, run_planning
from snoop_report import plant_traces, report_findings

HERE = Path(__file__).resolve().parent
AGENT_SECONDS = 120


def take_case() -> tuple[str, str, str]:
    """The id of the cell, its profile and its case. The id leaves this process's environment at once."""
    selected = os.environ.pop("PAPERCLIP_RUNNER_E2E_SELECTED_ID")
    _, profile, _, case = selected.split(".", 3)
    return selected, profile, case


def agent_command(hide: list[Path], expose: list[Path], agent: list[str]) -> list[str]:
    """The command that starts an agent: behind the sandbox, unless the catalog's environment says ``none``."""
    if os.environ.get("EXAMPLE_AGENT_WALL") == "none":
        return agent
    options = ["--share", str(HERE / "agents")]  # it runs from there, also where its own user could not look
    options += [word for path in hide for word in ("--hide", str(path))]
    options += [word for path in expose for word in ("--expose", str(path))]
    return ["runner-e2e", "sandbox", "exec", *options, "--", *agent]


def run_agent(command: list[str], workspace: Path) -> int:
    """Runs the agent in its workspace; its status, or 124 when it took too long."""
    try:
        return subprocess.run(command, cwd=workspace, timeout=AGENT_SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        return 124


def write_result(verdict: str, failure_class: str = "", message: str = "") -> None:
    """Writes the result where the engine looks for it."""
    result: dict[str, object] = {"schema": "runner-e2e.harness-result/v1", "verdict": verdict}
    if failure_class:
        result["failure"] = {"class": failure_class, "message": message}
    result["usage"] = {"cost_usd": 0.0}
    Path(os.environ["RUNNER_E2E_RESULT"]).write_text(json.dumps(result))


def run_task(case: str, workspace: Path) -> None:
    """A case with a task: the files in the workspace must be as expected afterwards."""
    definition = json.loads((HERE / "cases" / f"{case}.json").read_text())
    if int(os.environ["RUNNER_E2E_ATTEMPT"]) <= definition.get("busy-attempts", 0):
        write_result("failed", "transient_infrastructure", "the provider answered 529: overloaded (simulated)")
        return
    for name, text in definition["files"].items():
        (workspace / name).write_text(text)
    (workspace / "TASK.md").write_text("\n".join(definition["task"]) + "\n")
    agent = [sys.executable, str(HERE / "agents" / "writer.py")]
    status = run_agent(agent_command([], [], agent), workspace)
    wrong = [
        name
        for name, text in definition["expect"].items()
        if not (workspace / name).is_file() or (workspace / name).read_text() != text
    ]
    if status or wrong:
        write_result("failed", "candidate_failure", f"status {status}, wrong or missing: {', '.join(wrong) or 'none'}")
    else:
        write_result("passed")


def run_snoop(selected: str, instance: Path, workspace: Path) -> None:
    """A case without a task: an agent that looks for its own case id, first of all where products leave it."""
    traces = plant_traces(selected, instance)
    places = workspace / "places.json"
    places.write_text(json.dumps({kind: str(path) for kind, path in traces.places.items()}))
    agent = [sys.executable, str(HERE / "agents" / "snoop.py"), str(places)]
    status = run_agent(agent_command(traces.hide, [traces.own_session], agent), workspace)
    # Beside the result: there the agent can neither read the report nor put a link in its place.
    report = Path(os.environ["RUNNER_E2E_RESULT"]).with_name("findings.json")
    named = report_findings(selected, workspace / "loot.json", report)
    walled = os.environ.get("EXAMPLE_AGENT_WALL") != "none"
    if status or named is None:
        write_result("failed", "candidate_failure", f"the snoop did not finish (status {status})")
    elif walled and named:
        write_result("failed", "candidate_failure", f"{named} sources named the case behind the sandbox")
    elif not walled and not named:
        write_result("failed", "candidate_failure", "the snoop found nothing without a sandbox, so it proves nothing")
    else:
        write_result("passed")


def run_plan(instance: Path, workspace: Path) -> None:
    """A case for the real Codex: it plans, and must not write. Its own sandbox runs within this product's."""
    home, private = instance / "codex-home", Path(os.environ["RUNNER_E2E_RESULT"]).parent
    walls = ["--wall", "locked-mounts", "--workspace", str(workspace), "--workspace", str(home), "--quiet"]
    try:
        outcome = run_planning(instance, workspace, private, wall=["runner-e2e", "sandbox", "exec", *walls, "--"])
    except NoCodexError as error:
        write_result("failed", "permanent_infrastructure", str(error))
        return
    failure_class, message = judge(outcome)
    write_result("failed" if failure_class else "passed", failure_class, message)


def main() -> int:
    """Runs the cell that the environment names."""
    selected, profile, case = take_case()
    instance = Path(os.environ["RUNNER_E2E_INSTANCE"])
    workspace = instance / "workspace"
    workspace.mkdir()
    if profile == "snoop":
        run_snoop(selected, instance, workspace)
    elif profile == "runner-codex":
        run_plan(instance, workspace)
    else:
        run_task(case, workspace)
    return 0


if __name__ == "__main__":
    sys.exit(main())
