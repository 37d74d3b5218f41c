"""Inside a job the CI runner's own files are hidden by default, and the step can still write its outputs afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ENTRIES = {
    "command line": [str(Path(sys.executable).parent / "runner-e2e"), "sandbox", "exec"],
    "quick entry": [sys.executable, "-I", "-S", str(ROOT / "scripts" / "agent_sandbox.py")],
}


@pytest.mark.parametrize("entry", list(ENTRIES))
def test_the_runners_files_are_hidden_and_outputs_work_afterwards(tmp_path: Path, entry: str) -> None:
    temporary = tmp_path / "work" / "_temp"
    for directory in ("_github_workflow", "_runner_file_commands"):
        (temporary / directory).mkdir(parents=True)
    event = temporary / "_github_workflow" / "event.json"
    event.write_text('{"inputs": {"selected-id": "canary"}}')
    script = temporary / "5f0e1d2c-1111-2222-3333-444455556666.sh"
    script.write_text("run-cell canary\n")
    output = temporary / "_runner_file_commands" / "set_output_1"
    output.write_text("")
    diagnostics = tmp_path / "_diag" / "Worker_1.log"
    diagnostics.parent.mkdir()
    diagnostics.write_text("canary\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_OUTPUT": str(output),
        "RUNNER_TEMP": str(temporary),
    }
    (tmp_path / "home").mkdir()
    search = f"cat {event} {script} {output}/* {diagnostics}; env; grep -r canary {tmp_path}; echo searched"
    done = subprocess.run(
        [*ENTRIES[entry], "--", "/bin/sh", "-c", search],
        env=environment,
        cwd=tmp_path / "work",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "searched", done.stderr
    assert "canary" not in done.stdout
    assert "GITHUB_" not in done.stdout
    assert f"sandbox: hidden {event.parent}" in done.stderr
    output.write_text("verdict=passed\n")
    assert event.read_text().count("canary") == 1
