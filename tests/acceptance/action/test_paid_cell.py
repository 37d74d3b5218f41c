"""The template of a paid cell, with this repository's action, run for real: what anybody can see of the selected id."""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.action.act_job import HERE, REPOSITORY, ActJob, make_repository, run_job
from tests.acceptance.action.github import TOKEN, github_with, runner_words, start_run

from runner_e2e.cells.sealed import new_nonce
from runner_e2e.dispatch.claim import authorise
from runner_e2e.dispatch.github_api import GitHubApi
from runner_e2e.dispatch.records import read_last_attempt
from runner_e2e.dispatch.shared_ledger import SharedLedger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.dispatch.shared_ledger_file import Entry

TEMPLATE = REPOSITORY / "workflows-templates" / "paid-cell.yml"
CELL_JOB, CLAIM_JOB = (re.compile(rf"(?m)^  {name}:\n(?:(?: {{4}}.*)?\n)+") for name in ("cell", "claim"))
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
    cases: [CASES, other-case]
timeout: 2m
expected-cost: 1
retries: 1
"""
# A run has up to seven jobs, and each installs the locked packages for real.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that other users may pass, as the work directory of a runner is; pytest's own are closed."""
    with tempfile.TemporaryDirectory(prefix="paid-cell-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A run under act: its job, the ids that were its inputs, the provider's key, and what the ledger kept of it."""

    job: ActJob
    ids: Mapping[str, str]
    key: str
    entries: tuple[Entry, ...]

    def said(self, job: str) -> str:
        """What one *job* of the workflow, by its name, said."""
        return "\n".join(re.findall(rf"(?m)^\[[^/\]]+/{re.escape(job)} *\] ?(.*)$", self.job.output))

    def outputs(self, job: str) -> dict[str, str]:
        """The outputs of its acting step, which are the only ones that say something of these."""
        return dict(re.findall(r"::set-output:: ([a-z-]+)=(\S+)", self.said(job)))

    def seen(self, name: str) -> list[str]:
        """The command lines that held the id in the input *name*."""
        return [line for line in self.job.seen if case_of(self.ids[name]) in line]


def case_of(cell: str) -> str:
    return cell.rpartition(".")[2]


def dispatch(
    workflow: str, directory: Path, *, profiles: Mapping[str, str], cap: int, nonce: str, rerun: bool = False
) -> Scene:
    """Runs *workflow* in a repository with a *cap* of micro-dollars a day.

    *profiles* are those of the cells that the inputs name; each has a random canary as its case. A *rerun* is
    authorised under *nonce*, and nothing is reserved for it.
    """
    ids = {name: f"acceptance.{profile}.local.canary-{secrets.token_hex(8)}" for name, profile in profiles.items()}
    canaries = [case_of(each) for each in ids.values()]
    key = f"sk-{secrets.token_hex(12)}"
    selftest = REPOSITORY / ".github" / "selftest"
    repository = make_repository(
        directory,
        {
            ".github/workflows/paid-cell.yml": workflow,
            ".github/runner-e2e.yml": CATALOG.replace("CASES", ", ".join(canaries)),
            "evals/harness.py": (selftest / "harness.py").read_text(),
            "evals/agent.py": (selftest / "agent.py").read_text(),
            "evals/loud_harness.py": (HERE / "target" / "loud_harness.py").read_text(),
        },
    )
    with github_with(repository, "paid-cell.yml") as double:
        api = GitHubApi(repository="octo/evals", token=TOKEN, url=double.url)
        ledger = SharedLedger(api)
        ledger.set_caps(day=cap)
        run = start_run(double)
        if rerun:
            run.last.status, run.last.conclusion = "completed", "failure"
            authorise(api, read_last_attempt(api, run.id), nonce)
            double.state.rerun(run, double.state.users["alice"], failed_only=False)
        job = run_job(
            repository,
            "paid-cell.yml",
            inputs={**ids, "nonce": nonce},
            secrets={"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": "sk-of-another-provider", "GITHUB_TOKEN": TOKEN},
            watch=canaries,
            directory=directory,
            extra=[*runner_words(double, run), "--env", f"GITHUB_RUN_ATTEMPT={run.last.number}"],
        )
        return Scene(job=job, ids=ids, key=key, entries=ledger.entries(f"run-{run.id}"))


def job_like(pattern: re.Pattern[str], text: str, changes: Mapping[str, str]) -> str:
    """A job of the template once more, with *changes*, each of which must fit."""
    (job,) = pattern.findall(text)
    for old, new in changes.items():
        assert old in job, old
        job = job.replace(old, new)
    return str(job)


def with_careless_cells(template: str) -> str:
    """The template, and after all of its jobs two more paid ones.

    The harness of one prints its key. The acting step of the other names the id as so many do.
    """
    after = {"needs: [gate, plan, claim]": "needs: [gate, plan, claim, results]"}
    leaky = job_like(
        CELL_JOB, template,
        {**after, "  cell:\n": "  leaky:\n", "name: Paid cell": "name: Leaky",
         "inputs.selected-id": "github.event.inputs.selected_id"},
    )  # fmt: skip
    careless = job_like(
        CELL_JOB, template,
        {**after, "  cell:\n": "  careless:\n", "name: Paid cell": "name: Careless",
         "inputs.selected-id": "github.event.inputs.id", "name: Set up\n": "name: Set up\n        id: setup\n"},
    )  # fmt: skip
    command = 'runner-e2e" cells explain --id "$PAPERCLIP_RUNNER_E2E_SELECTED_ID"'
    careless, changed = RUN_STEP.subn(
        lambda match: (
            f"shell: bash\n{match[1]}          PROGRAMS: ${{{{ steps.setup.outputs.programs }}}}\n"
            f"        run: '\"$PROGRAMS/{command}'\n"
        ),
        careless,
    )
    assert changed == 1
    return f"{template.rstrip()}\n\n{leaky.rstrip()}\n\n{careless.rstrip()}\n"


def test_what_anybody_can_see_of_a_cell(directory: Path) -> None:
    """One run: the template's own cell shows its id nowhere, and this file notices where careless ones show theirs."""
    nonce = new_nonce(datetime.now(UTC))
    profiles = {"selected-id": "scripted", "selected_id": "leaky", "id": "scripted"}
    workflow = with_careless_cells(TEMPLATE.read_text())
    scene = dispatch(workflow, directory, profiles=profiles, cap=2_000_000, nonce=nonce)
    output = scene.job.output
    for name in ("Gate", "Plan", "Claim", "Paid cell", "Results"):
        assert "🏁  Job succeeded" in scene.said(name), output
    check_own_cell(scene, nonce)
    check_leaky_cell(scene)

    # The id on a command line is seen, so that none was where none is.
    assert any(scene.ids["id"] in line and "cells explain --id" in line for line in scene.seen("id")), scene.job.seen
    assert scene.seen("selected-id") == scene.seen("selected_id") == []
    assert scene.job.scans > 10  # how often depends on the machine


def check_own_cell(scene: Scene, nonce: str) -> None:
    """It passed, and nobody saw the id: not in the log, not in the summary."""
    selected, output, outputs = scene.ids["selected-id"], scene.job.output, scene.outputs("Paid cell")
    assert outputs["verdict"] == "passed"
    assert re.fullmatch(r"cell-[0-9a-f]{16}", outputs["handle"])
    assert case_of(selected) not in output.lower()
    assert scene.key not in output
    assert "running *** with nothing" in scene.said("Paid cell"), "the harness's output is relayed, and redacted"
    assert "❗  ::error title=injected" not in output, "the runner obeyed a command of the harness"
    assert f"Summary - ### ✅ {outputs['handle']}: passed" in output, "act shows the summary in its output"

    # The record alone maps the handle back.
    record = json.loads((scene.job.artifacts / f"result-{outputs['handle']}" / "result.json").read_text())
    assert (record["id"], record["verdict"]) == (selected, "passed")

    # It was reserved with its retry, within the cap, under its nonce, and settled at what its record says.
    (entry,) = scene.entries
    assert (entry.nonce, entry.cells, entry.reserved, entry.charged) == (nonce, 1, 2_000_000, 0)


def check_leaky_cell(scene: Scene) -> None:
    """It failed, and its key is shown nowhere."""
    said, outputs = scene.said("Leaky"), scene.outputs("Leaky")
    assert "🏁  Job failed" in said
    assert (outputs["verdict"], outputs["failure-class"], outputs["attempts"]) == ("failed", "secret_leak", "1")
    assert "running *** with ***" in said
    assert f"::error title={outputs['handle']}%3A secret_leak::" in said
    assert "| **secret_leak**: the harness printed the value of" in scene.job.output
    assert scene.key not in (scene.job.artifacts / f"result-{outputs['handle']}" / "result.json").read_text()
    assert case_of(scene.ids["selected_id"]) not in scene.job.output


def with_another_claim(template: str) -> str:
    """The template, and its claim and its cell once more, without the nonce."""
    claim = job_like(
        CLAIM_JOB, template,
        {"  claim:\n": "  claim-again:\n", "    name: Claim\n    needs": "    name: Claim again\n    needs",
         "nonce: ${{ inputs.nonce }}": "nonce: ''"},
    )  # fmt: skip
    cell = job_like(
        CELL_JOB, template,
        {"  cell:\n": "  cell-again:\n", "name: Paid cell": "name: Paid again",
         "needs: [gate, plan, claim]": "needs: [gate, plan, claim-again]", "needs.claim.": "needs.claim-again."},
    )  # fmt: skip
    return f"{template.rstrip()}\n\n{claim.rstrip()}\n\n{cell.rstrip()}\n"


def test_what_may_not_be_paid_ends_before_the_cell(directory: Path) -> None:
    """A rerun that is authorised and would pass a cap, and one under a nonce for which nobody has authorised it."""
    nonce = new_nonce(datetime.now(UTC))
    workflow = with_another_claim(TEMPLATE.read_text())
    profiles = {"selected-id": "scripted"}
    scene = dispatch(workflow, directory, profiles=profiles, cap=1_000_000, nonce=nonce, rerun=True)
    assert scene.job.status == 1, scene.job.output
    assert "🏁  Job succeeded" in scene.said("Plan"), scene.job.output
    assert "$2.00 more would pass the cap of " in scene.said("Claim"), scene.job.output
    assert "attempt 2 of this run may not pay" in scene.said("Claim again"), scene.job.output
    assert "run: cell-" not in scene.job.output
    assert (scene.said("Paid cell"), scene.said("Paid again")) == ("", "")
    assert scene.entries == ()
    assert scene.job.seen == ()
