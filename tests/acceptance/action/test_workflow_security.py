"""The template that lints workflows, with this repository's action, run for real on a pull request."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.acceptance.action.act_job import REPOSITORY, ActJob, make_repository, run_job

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE = REPOSITORY / "workflows-templates" / "workflow-security.yml"
LEAK = """\
on:
  workflow_dispatch:
    inputs:
      selected-id:
        required: true
permissions: {}
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: ./evaluate.sh
        env:
          CELL: ${{ inputs.selected-id }}
"""
SCRIPT = '#!/bin/bash\ncase=${CELL##*.}\ntool --case "$case"\n'


def lint(directory: Path, files: dict[str, str]) -> ActJob:
    """Runs the template in a repository of *files*."""
    repository = make_repository(directory, {".github/workflows/workflow-security.yml": TEMPLATE.read_text(), **files})
    return run_job(
        repository, "workflow-security.yml", inputs={}, secrets={}, watch=["nothing-of-this-name"],
        directory=directory, event_name="pull_request",
    )  # fmt: skip


def outputs_of(job: ActJob) -> dict[str, str]:
    return dict(re.findall(r"::set-output:: ([a-z-]+)=(\S+)", job.output))


def uploaded(job: ActJob) -> list[dict[str, str]]:
    """Rule and place of every result that was handed to code scanning."""
    log = json.loads((job.artifacts / "runner-e2e-lint" / "lint.sarif").read_text())
    places = [(each, each["locations"][0]["physicalLocation"]) for each in log["runs"][0]["results"]]
    return [{"rule": each["ruleId"], "path": place["artifactLocation"]["uri"]} for each, place in places]


def test_a_leak_fails_the_job_and_is_shown_everywhere(tmp_path: Path) -> None:
    job = lint(tmp_path, {".github/workflows/evaluate.yml": LEAK, "evaluate.sh": SCRIPT})
    assert job.status == 1, job.output
    assert {"rule": "confidential-argv", "path": "evaluate.sh"} in uploaded(job)
    assert outputs_of(job)["findings"] == str(len(uploaded(job)))
    assert "::error title=confidential-argv (high confidence),file=evaluate.sh,line=3,col=13" in job.output
    assert "Summary - ### ❌ Workflow lint: " in job.output
    assert "The whole report" in job.output


def test_the_template_lints_itself_clean_without_a_catalog(tmp_path: Path) -> None:
    job = lint(tmp_path, {"README.md": "nothing\n"})
    assert job.status == 0, job.output
    assert uploaded(job) == []
    assert outputs_of(job)["findings"] == "0"
    assert "Summary - ### ✅ Workflow lint: no findings in 1 file" in job.output
