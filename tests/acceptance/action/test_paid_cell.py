"""The template of a paid cell, with this repository's action, run for real: what anybody can see of the selected id."""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.action.act_job import HERE, REPOSITORY, ActJob, make_repository, run_job
from tests.acceptance.action.github import TOKEN, github_with, runner_words, start_run

if TYPE_CHECKING:
    from collections.abc import Iterator


TEMPLATE = REPOSITORY / "workflows-templates" / "paid-cell.yml"
RUN_STEP = re.compile(
    r"uses: org/runner-e2e-action@\S+ # v1\n( +env:\n(?: +[A-Z0-9_]+: .*\n)+) +with:\n +command: run\n"
)
CATALOG = """
harness:
  command: [python3, evals/loud_harness.py]
  hide: [evals/harness.py, evals/loud_harness.py]
credentials:
  ANTHROPIC_API_KEY:
  OPENAI_API_KEY:
profiles:
  scripted: { credential: ANTHROPIC_API_KEY }
  leaky: { credential: ANTHROPIC_API_KEY, env: { ACCEPTANCE_LEAK: yes } }
environments:
  local:
suites:
  acceptance:
    profiles: [scripted, leaky]
    environments: [local]
    cases: [CASE, other-case]
timeout: 2m
expected-cost: 0
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that other users may pass, as the work directory of a runner is; pytest's own are closed."""
    with tempfile.TemporaryDirectory(prefix="paid-cell-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def dispatch(
    workflow: str, directory: Path, *, profile: str = "scripted", audited: bool = False
) -> tuple[ActJob, str, str]:
    """Runs *workflow* with a random canary as the case; returns the job, the id and the provider's key."""
    canary = f"canary-{secrets.token_hex(8)}"
    selected, key = f"acceptance.{profile}.local.{canary}", f"sk-{secrets.token_hex(12)}"
    selftest = REPOSITORY / ".github" / "selftest"
    repository = make_repository(
        directory,
        {
            ".github/workflows/paid-cell.yml": workflow,
            ".github/runner-e2e.yml": CATALOG.replace("CASE", canary),
            "evals/harness.py": (selftest / "harness.py").read_text(),
            "evals/agent.py": (selftest / "agent.py").read_text(),
            "evals/loud_harness.py": (HERE / "target" / "loud_harness.py").read_text(),
        },
    )
    with github_with(repository, "paid-cell.yml") as double:
        job = run_job(
            repository,
            "paid-cell.yml",
            inputs={"selected-id": selected, "credential": "ANTHROPIC_API_KEY"},
            secrets={"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": "sk-of-another-provider", "GITHUB_TOKEN": TOKEN},
            watch=[canary],
            directory=directory,
            extra=runner_words(double, start_run(double)),
            audited=audited,
        )
    return job, selected, key


def outputs_of(job: ActJob) -> dict[str, str]:
    """The outputs of the acting step, which are the only ones that say something of these."""
    return dict(re.findall(r"::set-output:: ([a-z-]+)=(\S+)", job.output))


def test_the_template_runs_a_cell_and_shows_its_id_nowhere(directory: Path) -> None:
    job, selected, key = dispatch(TEMPLATE.read_text(), directory)
    canary = selected.rpartition(".")[2]
    assert job.status == 0, job.output
    outputs = outputs_of(job)
    assert outputs["verdict"] == "passed"
    assert re.fullmatch(r"cell-[0-9a-f]{16}", outputs["handle"])

    # Nobody saw the id: not in the log, not in the summary, on no command line.
    assert canary not in job.output.lower()
    assert key not in job.output
    assert "running *** with nothing" in job.output, "the harness's output is relayed, and redacted"
    assert "❗  ::error title=injected" not in job.output, "the runner obeyed a command of the harness"
    assert job.scans > 10  # how often depends on the machine
    assert job.seen == ()
    assert f"Summary - ### ✅ {outputs['handle']}: passed" in job.output, "act shows the summary in its output"

    # The record alone maps the handle back.
    record = json.loads((job.artifacts / f"result-{outputs['handle']}" / "result.json").read_text())
    assert record["id"] == selected
    assert record["verdict"] == "passed"


def test_an_id_on_a_command_line_is_seen(directory: Path) -> None:
    """The same workflow, whose acting step names the id as so many do: the watcher of this file must notice."""
    command = 'runner-e2e" cells explain --id "$PAPERCLIP_RUNNER_E2E_SELECTED_ID"'
    workflow = TEMPLATE.read_text().replace("name: Set up\n", "name: Set up\n        id: setup\n")
    workflow, changed = RUN_STEP.subn(
        lambda match: (
            f"shell: bash\n{match[1]}          PROGRAMS: ${{{{ steps.setup.outputs.programs }}}}\n"
            f"        run: '\"$PROGRAMS/{command}'\n"
        ),
        workflow,
    )
    assert changed == 1
    job, selected, _ = dispatch(workflow, directory)
    assert job.status == 0, job.output
    assert any(selected in line and "cells explain --id" in line for line in job.seen), job.seen


def test_a_harness_that_prints_its_key_fails_and_shows_it_nowhere(directory: Path) -> None:
    job, selected, key = dispatch(TEMPLATE.read_text(), directory, profile="leaky")
    assert job.status == 1, job.output
    outputs = outputs_of(job)
    assert (outputs["verdict"], outputs["failure-class"], outputs["attempts"]) == ("failed", "secret_leak", "1")
    assert "running *** with ***" in job.output
    assert f"::error title={outputs['handle']}%3A secret_leak::" in job.output
    assert "| **secret_leak**: the harness printed the value of" in job.output
    assert key not in job.output
    assert key not in (job.artifacts / f"result-{outputs['handle']}" / "result.json").read_text()
    assert selected.rpartition(".")[2] not in job.output
    assert job.seen == ()
