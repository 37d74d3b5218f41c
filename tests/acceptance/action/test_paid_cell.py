"""The template of a paid cell, with this repository's action, run for real: what anybody can see of the selected id."""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.action.act_job import HERE, REPOSITORY, ActJob, make_repository, run_job
from tests.acceptance.action.github import TOKEN, github_with, runner_words, start_run

from runner_e2e.dispatch.github_api import GitHubApi
from runner_e2e.dispatch.shared_ledger import SharedLedger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.dispatch.shared_ledger_file import Entry

TEMPLATE = REPOSITORY / "workflows-templates" / "paid-cell.yml"
RUN_STEP = re.compile(
    r"uses: org/runner-e2e-action@\S+ # v1\n( +env:\n(?: +[A-Z0-9_]+: .*\n)+) +with:\n +command: run\n +claim: .*\n"
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
expected-cost: 1
retries: 1
"""
# A run has five jobs, and each installs the locked packages for real.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that other users may pass, as the work directory of a runner is; pytest's own are closed."""
    with tempfile.TemporaryDirectory(prefix="paid-cell-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A run under act: its job, the id of its cell, the provider's key, and what the ledger kept of it."""

    job: ActJob
    selected: str
    key: str
    entries: tuple[Entry, ...]


def dispatch(workflow: str, directory: Path, *, profile: str = "scripted", cap: int = 0, attempt: int = 1) -> Scene:
    """Runs *workflow* with a random canary as the case, in a repository with a *cap* of micro-dollars a day if any."""
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
        ledger = SharedLedger(GitHubApi(repository="octo/evals", token=TOKEN, url=double.url))
        if cap:
            ledger.set_caps(day=cap)
        run = start_run(double)
        for _ in range(1, attempt):
            run.last.status, run.last.conclusion = "completed", "failure"
            double.state.rerun(run, double.state.users["alice"], failed_only=False)
        job = run_job(
            repository,
            "paid-cell.yml",
            inputs={"selected-id": selected, "credential": "ANTHROPIC_API_KEY"},
            secrets={"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": "sk-of-another-provider", "GITHUB_TOKEN": TOKEN},
            watch=[canary],
            directory=directory,
            extra=[*runner_words(double, run), "--env", f"GITHUB_RUN_ATTEMPT={attempt}"],
        )
        entries = ledger.entries(f"run-{run.id}") if cap else ()
        return Scene(job=job, selected=selected, key=key, entries=tuple(entries))


def outputs_of(job: ActJob) -> dict[str, str]:
    """The outputs of the acting step, which are the only ones that say something of these."""
    return dict(re.findall(r"::set-output:: ([a-z-]+)=(\S+)", job.output))


def test_the_template_runs_a_cell_and_shows_its_id_nowhere(directory: Path) -> None:
    scene = dispatch(TEMPLATE.read_text(), directory, cap=2_000_000)
    job, selected, key = scene.job, scene.selected, scene.key
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

    # It was reserved with its retry, within the cap, and settled at what its record says.
    (entry,) = scene.entries
    assert (entry.cells, entry.reserved, entry.state, entry.charged) == (1, 2_000_000, "settled", 0)


@pytest.mark.parametrize(
    ("cap", "attempt", "said"),
    [(1_000_000, 1, "$2.00 more would pass the cap of "), (0, 2, "attempt 2 of this run may not pay")],
    ids=["a cap", "a rerun"],
)
def test_what_may_not_be_paid_ends_before_the_cell(directory: Path, cap: int, attempt: int, said: str) -> None:
    scene = dispatch(TEMPLATE.read_text(), directory, cap=cap, attempt=attempt)
    assert scene.job.status == 1, scene.job.output
    assert said in scene.job.output
    assert "run: cell-" not in scene.job.output
    assert "verdict" not in outputs_of(scene.job)
    assert not [entry for entry in scene.entries if entry.counts]
    assert scene.job.seen == ()


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
    scene = dispatch(workflow, directory)
    job, selected = scene.job, scene.selected
    assert any(selected in line and "cells explain --id" in line for line in job.seen), job.seen


def test_a_harness_that_prints_its_key_fails_and_shows_it_nowhere(directory: Path) -> None:
    scene = dispatch(TEMPLATE.read_text(), directory, profile="leaky")
    job, selected, key = scene.job, scene.selected, scene.key
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
