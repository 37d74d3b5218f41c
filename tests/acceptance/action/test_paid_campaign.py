"""The template of a paid campaign, run for real under act against a double of GitHub."""

from __future__ import annotations

import json
import secrets
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.action.act_job import HERE, REPOSITORY, ActJob, make_repository, run_job
from tests.acceptance.action.github import TOKEN, github_with, runner_words, start_run
from tests.github_double.server import Server

from runner_e2e.cells.handles import handle, random_key
from runner_e2e.cells.sealed import new_nonce, seal
from runner_e2e.dispatch.github_api import GitHubApi
from runner_e2e.dispatch.shared_ledger import SharedLedger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.github_double.server import Server
    from tests.github_double.state import Run


# A run has up to seven jobs, and each installs the locked packages for real.
pytestmark = pytest.mark.timeout(900)

TEMPLATE = REPOSITORY / "workflows-templates" / "paid-campaign.yml"
CATALOG = """
harness:
  command: [python3, evals/loud_harness.py]
  hide: [evals/harness.py, evals/loud_harness.py]
credentials:
  ANTHROPIC_API_KEY:
  OPENAI_API_KEY:
profiles:
  scripted: { credential: ANTHROPIC_API_KEY }
environments:
  local:
groups:
  nightly: Every night.
suites:
  acceptance:
    profiles: [scripted]
    environments: [local]
    groups: [nightly]
    cases: [CASES]
timeout: 2m
expected-cost: 1
"""


@dataclass(kw_only=True)
class Campaign:
    """A repository with the template, known to a double; two cells whose cases are canaries."""

    double: Server
    repository: Path
    directory: Path
    canaries: tuple[str, str]
    key: bytes
    provider_key: str

    @property
    def ids(self) -> list[str]:
        return [f"acceptance.scripted.local.{canary}" for canary in self.canaries]

    def act(self, run: Run, *, allowlist: str = "[11]", audited: bool = False) -> ActJob:
        """Runs it under act."""
        directory = self.directory / str(run.id)
        directory.mkdir()
        directory.chmod(0o755)
        return run_job(
            self.repository, "paid-campaign.yml", inputs=run.inputs, watch=list(self.canaries), directory=directory,
            secrets={"RUNNER_E2E_CAMPAIGN_KEY": self.key.hex(), "ANTHROPIC_API_KEY": self.provider_key,
                     "OPENAI_API_KEY": "sk-of-another-provider", "GITHUB_TOKEN": TOKEN},
            event_name=run.event, extra=runner_words(self.double, run, allowlist=allowlist), audited=audited,
        )  # fmt: skip


@pytest.fixture
def campaign() -> Iterator[Campaign]:
    # Without a word in them: the probe of the sandbox has canaries of its own, and a piece of one is found too.
    canaries = (f"w{secrets.token_hex(9)}", f"w{secrets.token_hex(9)}")
    selftest = REPOSITORY / ".github" / "selftest"
    # A directory that other users may pass, as the work directory of a runner is.
    with tempfile.TemporaryDirectory(prefix="paid-campaign-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        repository = make_repository(
            directory,
            {
                ".github/workflows/paid-campaign.yml": TEMPLATE.read_text(),
                ".github/runner-e2e.yml": CATALOG.replace("CASES", ", ".join(canaries)),
                "evals/harness.py": (selftest / "harness.py").read_text(),
                "evals/agent.py": (selftest / "agent.py").read_text(),
                "evals/loud_harness.py": (HERE / "target" / "loud_harness.py").read_text(),
            },
        )
        with github_with(repository, "paid-campaign.yml") as double:
            yield Campaign(
                double=double,
                repository=repository,
                directory=directory,
                canaries=canaries,
                key=random_key(),
                provider_key=f"sk-{secrets.token_hex(12)}",
            )


def test_a_sealed_campaign_is_paid_once_and_names_no_cell(campaign: Campaign) -> None:
    nonce = new_nonce(datetime.now(UTC))
    sealed = seal(campaign.ids, key=campaign.key, nonce=nonce, repository="octo/evals")
    run = start_run(campaign.double, nonce=nonce, selection=sealed, target="main")
    ledger = SharedLedger(GitHubApi(repository="octo/evals", token=TOKEN, url=campaign.double.url))
    ledger.set_caps(day=4_000_000)
    # From the kernel's record: no program that is started, agents included, has a canary on its command line.
    job = campaign.act(run, audited=True)
    assert job.status == 0, job.output

    # The results of both cells, in one artifact, each by its handle.
    handles = {handle(campaign.key, each): each for each in campaign.ids}
    found = {
        path.parent.name: json.loads(path.read_text()) for path in (job.artifacts / "results").glob("*/result.json")
    }
    assert {name.removeprefix("result-"): record["id"] for name, record in found.items()} == handles
    assert {record["verdict"] for record in found.values()} == {"passed"}

    # It was reserved with a retry of each cell, within the cap, and settled at what the records say.
    (entry,) = ledger.entries(f"run-{run.id}")
    assert (entry.nonce, entry.reserved, entry.state, entry.charged) == (nonce, 4_000_000, "settled", 0)

    # Nothing that is public names a cell, and no command line does.
    for canary in campaign.canaries:
        assert canary not in job.output.lower()
        assert not any(canary in entry.path or canary in json.dumps(entry.body) for entry in campaign.double.log)
    assert campaign.provider_key not in job.output
    assert campaign.key.hex() not in job.output
    assert job.scans > 100
    assert job.seen == ()

    # A twin with the same inputs passes the gate and gets no claim: no cell of it runs.
    twin = campaign.act(start_run(campaign.double, nonce=nonce, selection=sealed, target="main"))
    assert twin.status != 0
    assert f"run {run.id}, attempt 1, has claimed {nonce}" in twin.output
    assert not list(twin.artifacts.iterdir())
    assert ledger.entries(f"run-{run.id}") == (entry,)


def test_the_schedule_plans_its_groups_and_claims_by_its_run(campaign: Campaign) -> None:
    run = start_run(campaign.double, "schedule")
    # Something else has its claim, so that the run ends before its cells, which the other test runs.
    campaign.double.state.refs[f"refs/runner-e2e/claims/schedule-{run.id}"] = run.sha
    job = campaign.act(run)
    assert job.status != 0
    assert "plan: 2 cells, expected cost $2.00 an attempt" in job.output
    assert f"something else has claimed schedule-{run.id}" in job.output
    assert not list(job.artifacts.iterdir())
    assert job.scans > 10
    assert job.seen == ()
    assert not any(canary in job.output.lower() for canary in campaign.canaries)


@pytest.mark.parametrize(
    ("allowlist", "said"), [("[22]", "alice (id 11) is not on the allowlist"), ("[11]", "answered GET")]
)
def test_what_the_gate_refuses_runs_no_cell(campaign: Campaign, allowlist: str, said: str) -> None:
    if allowlist == "[11]":
        campaign.double.faults.order("html", "GET", "attempts")
    job = campaign.act(start_run(campaign.double, "schedule"), allowlist=allowlist)
    assert job.status != 0
    assert said in job.output
    assert not list(job.artifacts.iterdir())
    assert "running ***" not in job.output
