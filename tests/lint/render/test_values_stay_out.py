"""No format has a value: the lint knows values by their names alone, whatever lies around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner_e2e.lint.render import FORMATS

ROOT = Path(__file__).resolve().parents[3]
CANARY = "suite.profile.local.canary-9e71c2"
SECRET = "sk-canary-5b21"


@pytest.mark.parametrize("form", FORMATS)
def test_neither_the_event_nor_the_environment_is_in_a_report(form: str, repository: Path, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"inputs": {"selected-id": CANARY}}))
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT / "src"), "GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event),
        "PAPERCLIP_RUNNER_E2E_SELECTED_ID": CANARY, "ID": CANARY, "INPUT_SELECTED-ID": CANARY, "OPENAI_API_KEY": SECRET,
        "GITHUB_TOKEN": SECRET,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "runner_e2e", "lint", "--profile", "all", "--format", form],
        cwd=repository, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "inputs.selected" in done.stdout
    for value in (CANARY, "canary-9e71c2", SECRET):
        assert value not in done.stdout + done.stderr
