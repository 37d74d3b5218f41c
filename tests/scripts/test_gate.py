"""``command: gate``, ``plan``, ``claim`` and ``settle`` as a runner starts them, against a double of GitHub."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.github_double.clock import ManualClock
from tests.github_double.server import Server
from tests.github_double.state import Job as Work
from tests.github_double.state import Run, State

from runner_e2e.cells.handles import handle, random_key
from runner_e2e.cells.sealed import new_nonce, seal
from runner_e2e.dispatch.github_api import GitHubApi
from runner_e2e.dispatch.shared_ledger import BRANCH, SharedLedger
from runner_e2e.report.billing import Usage
from runner_e2e.report.results import Exit, Host, Output, Result, Retry, write_result

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
KEY, OLD_KEY = random_key(), random_key()
CANARY = "chat.codex.local.canary-51f2d8"
CATALOG = """
harness: { command: [python3, harness.py] }
credentials: { OPENAI_API_KEY: }
profiles: { codex: { credential: OPENAI_API_KEY } }
environments: { local: }
suites:
  chat: { profiles: [codex], environments: [local], cases: [canary-51f2d8, other], expected-cost: 0.5 }
"""


@dataclass(kw_only=True)
class Job:
    """One run of a workflow on the double, and the files that a runner gives to its steps."""

    double: Server
    run: Run
    directory: Path
    environ: dict[str, str] = field(default_factory=dict)

    def step(self, command: str, *, attempt: int = 1, **inputs: Any) -> subprocess.CompletedProcess[str]:
        for name in ("output", "summary"):
            (self.directory / name).write_text("")
        state, run = self.double.state, self.run
        contexts = {
            "ACTIONS": "true",
            "REPOSITORY": state.repository,
            "REPOSITORY_ID": str(state.repository_id),
            "RUN_ID": str(run.id),
            "RUN_ATTEMPT": str(attempt),
            "EVENT_NAME": run.event,
            "REF": run.ref,
            "SHA": run.sha,
            "WORKFLOW_SHA": run.sha,
            "WORKFLOW_REF": f"{state.repository}/{run.workflow.path}@{run.ref}",
            "ACTOR": run.actor.login,
            "ACTOR_ID": str(run.actor.id),
            "TRIGGERING_ACTOR": run.attempts[attempt - 1].triggering_actor.login,
            "API_URL": self.double.url,
            "OUTPUT": str(self.directory / "output"),
            "STEP_SUMMARY": str(self.directory / "summary"),
        }
        given = {f"RUNNER_E2E_INPUT_{name.upper()}": value for name, value in inputs.items()}
        environ = {"PATH": os.environ["PATH"], **{f"GITHUB_{name}": value for name, value in contexts.items()}}
        return subprocess.run(
            [sys.executable, "-I", str(SCRIPTS / f"{command}.py")],
            cwd=self.directory, env={**environ, **given, **self.environ}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    @property
    def outputs(self) -> dict[str, str]:
        text = (self.directory / "output").read_text()
        return dict(re.findall(r"^([a-z-]+)<<\S+\n(.*?)\nrunner-e2e-", text, re.MULTILINE | re.DOTALL))


@pytest.fixture
def double() -> Iterator[Server]:
    # GitHub's clock is the machine's: nonces are compared with it.
    with Server(State(clock=ManualClock(datetime.now(UTC).timestamp()))) as server:
        server.state.add_workflow(
            ".github/workflows/paid.yml", inputs={"nonce": False}, triggers=("workflow_dispatch", "schedule")
        )
        yield server


@pytest.fixture
def job(double: Server, tmp_path: Path) -> Job:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(CATALOG)
    alice = double.state.users["alice"]
    return Job(double=double, directory=tmp_path, run=double.state.dispatch("paid.yml", "main", {}, alice))


GATE: dict[str, Any] = {"github_token": "token-of-alice", "allowlist": "[11]"}


def test_the_gate_passes_and_pins_the_target(job: Job) -> None:
    job.double.state.refs["refs/heads/feature/x"] = sha = job.double.state.commit({"f": b""}, [], "feature")
    done = job.step("gate", **GATE, target="feature/x")
    assert done.returncode == 0, done.stdout
    assert job.outputs == {"target-sha": sha, "target-ref": "refs/heads/feature/x", "default-branch": "main"}
    assert "may pay: `workflow_dispatch` by alice (id 11)" in done.stdout


def test_a_repeated_gate_needs_one_request(job: Job) -> None:
    claim = f"n:{job.run.id}:1"
    done = job.step("gate", **GATE, default_branch="main", claim=claim)
    assert done.returncode == 0, done.stdout
    assert len(job.double.log) == 1
    assert job.outputs["target-sha"] == job.run.sha


@pytest.mark.parametrize(
    ("inputs", "status", "said"),
    [
        ({"allowlist": "[22]"}, 3, "alice (id 11) is not on the allowlist"),
        ({"allowlist": ""}, 3, "the allowlist is empty"),
        ({"github_token": ""}, 2, "there is no token"),
        ({"github_token": "wrong"}, 3, "401"),
        ({"target": "gone"}, 3, "no branch 'gone'"),
        ({"target": "refs/heads/main"}, 3, "is a ref"),
        ({"default_branch": "other"}, 3, "definition is on `main`"),
        ({"claim": "n:1:1"}, 3, "the claim is that of run 1"),
    ],
)
def test_the_gate_refuses(job: Job, inputs: dict[str, Any], status: int, said: str) -> None:
    done = job.step("gate", **{**GATE, **inputs})
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout
    assert done.stdout.startswith("::error title=runner-e2e gate::")
    assert not job.outputs


def test_an_api_that_fails_is_a_refusal(job: Job) -> None:
    job.double.faults.order("html", "GET", "attempts")
    done = job.step("gate", **GATE)
    assert done.returncode == 3
    assert "HTML" in done.stdout


@pytest.mark.parametrize("number", ["", "0", "-1", "\u00b2", "\u0661", "1 ", "1e3", "9" * 5000, "../1"])
@pytest.mark.parametrize("command", ["gate", "claim"])
def test_a_job_that_does_not_say_which_run_it_is(job: Job, command: str, number: str) -> None:
    job.environ = {"GITHUB_RUN_ID": number}
    done = job.step(command, **GATE)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "does not say which run it belongs to" in done.stdout
    assert not job.double.log


def test_the_record_of_another_run_is_no_claim(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    other = job.double.state.dispatch("paid.yml", "main", {}, job.double.state.users["alice"])
    monkeypatch.setattr(job.double.state, "run", lambda _: other)
    done = job.step("claim", github_token="token-of-alice")
    assert done.returncode == 3
    assert f"answered run {other.id}, attempt 1, when it was asked for run {job.run.id}" in done.stdout
    assert not any("claims" in name for name in job.double.state.refs)


@pytest.mark.parametrize(
    "environ",
    [{"GITHUB_API_URL": "http://[::1"}, {"GITHUB_API_URL": "https://x:99999"}, {"GITHUB_REPOSITORY": "octo/.."},
     {"GITHUB_REPOSITORY": ""}, {"RUNNER_E2E_INPUT_GITHUB_TOKEN": "two words"}],
)  # fmt: skip
def test_surroundings_that_cannot_be(job: Job, environ: dict[str, str]) -> None:
    job.environ = environ
    done = job.step("gate", **GATE)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout.startswith("::error title=runner-e2e gate::")
    assert "Traceback" not in done.stdout + done.stderr


def test_every_reason_is_an_annotation(job: Job) -> None:
    job.run.event = "push"
    done = job.step("gate", **{**GATE, "allowlist": "[1]"})
    assert done.returncode == 3
    assert done.stdout.count("::error ") == 2


def test_a_rerun_by_somebody_else(job: Job) -> None:
    bob = job.double.state.add_user("bob", 22)
    job.run.last.status = "completed"
    job.double.state.rerun(job.run, bob, failed_only=True)
    done = job.step("gate", attempt=2, **GATE)
    assert done.returncode == 3
    assert "the triggering actor bob (id 22) is not on the allowlist" in done.stdout
    assert job.step("gate", attempt=2, **{**GATE, "allowlist": "[11, 22]"}).returncode == 0


def entries(job: Job) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(job.outputs["matrix"])["include"]
    return found


def test_the_plan_names_no_cell(job: Job) -> None:
    job.environ = {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}
    done = job.step("plan", suites="chat")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {entry["handle"] for entry in entries(job)} == {handle(KEY, CANARY), handle(KEY, "chat.codex.local.other")}
    assert job.outputs["cells"] == "2"
    assert "$1.00" in done.stdout
    for text in (done.stdout, (job.directory / "output").read_text(), (job.directory / "summary").read_text()):
        assert "canary" not in text


@pytest.mark.parametrize("key", [KEY, OLD_KEY], ids=["current", "previous"])
def test_the_plan_opens_a_sealed_selection(job: Job, key: bytes) -> None:
    job.environ = {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex(), "RUNNER_E2E_CAMPAIGN_KEY_PREVIOUS": OLD_KEY.hex()}
    sealed = seal([CANARY], key=key, nonce="n", repository="octo/evals")
    done = job.step("plan", sealed_selection=sealed, nonce="n")
    assert done.returncode == 0, done.stdout
    (entry,) = entries(job)
    assert entry["handle"] == handle(key, CANARY)
    assert set(entry) == {
        "index", "handle", "credential", "environment_credential", "environment", "timeout", "job_timeout"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "environ", "status", "said"),
    [
        ({"suites": "chat"}, {}, 3, "a matrix needs a campaign key"),
        ({"suites": "none"}, {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}, 2, "none"),
        ({}, {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}, 3, "`all: true`"),
        ({"all": "yes"}, {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}, 2, "write true or false"),
        ({"sealed_selection": "sealed1.x"}, {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}, 3, "damaged"),
        ({"sealed_selection": seal([CANARY], key=OLD_KEY, nonce="n", repository="octo/evals"), "nonce": "n"},
         {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}, 3, "which is not here"),
        ({"sealed_selection": seal([CANARY], key=KEY, nonce="other", repository="octo/evals"), "nonce": "n"},
         {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}, 3, "does not open"),
        ({"sealed_selection": seal([CANARY + "x"], key=KEY, nonce="n", repository="octo/evals"), "nonce": "n"},
         {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}, 3, "does not have a cell"),
        ({"sealed_selection": "sealed1.x", "suites": "chat"}, {}, 2, "excludes selectors"),
        ({"suites": "chat"}, {"RUNNER_E2E_CAMPAIGN_KEY_PREVIOUS": KEY.hex()}, 2, "give the new key"),
    ],
)  # fmt: skip
def test_the_plan_refuses(job: Job, inputs: dict[str, Any], environ: dict[str, str], status: int, said: str) -> None:
    job.environ = environ
    done = job.step("plan", **inputs)
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr
    assert "canary" not in done.stdout + done.stderr
    assert not job.outputs


ID = "PAPERCLIP_RUNNER_E2E_SELECTED_ID"


@pytest.mark.parametrize(
    ("text", "environ", "matrix"),
    [
        (CATALOG, {}, False),
        (CATALOG, {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}, True),
        (f"plain-ids: true{CATALOG}", {}, True),
    ],
    ids=["no key", "a key", "plain ids"],
)
def test_the_plan_of_the_cell_whose_id_is_in_the_environment(
    job: Job, text: str, environ: dict[str, str], matrix: bool
) -> None:
    (job.directory / ".github" / "runner-e2e.yml").write_text(text)
    job.environ = {ID: CANARY, **environ}
    done = job.step("plan")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {job.outputs[name] for name in ("reserved", "largest")} == {"1000000"}
    assert job.outputs["cells"] == "1"
    assert job.outputs["credentials"] == '["OPENAI_API_KEY"]'
    assert ("matrix" in job.outputs) is matrix
    if matrix and environ:
        assert [entry["handle"] for entry in entries(job)] == [handle(KEY, CANARY)]
    assert "plan: 1 cell, expected cost $0.50 an attempt, at most 2 attempts each" in done.stdout
    if "plain-ids" not in text:
        written = [(job.directory / name).read_text() for name in ("output", "summary")]
        assert "canary" not in "".join([done.stdout, done.stderr, *written])


@pytest.mark.parametrize(
    ("inputs", "chosen", "said"),
    [
        ({"suites": "chat"}, CANARY, "excludes selectors and a sealed selection"),
        ({"all": "true"}, CANARY, "excludes selectors and a sealed selection"),
        ({"sealed_selection": "sealed1.x"}, CANARY, "excludes selectors and a sealed selection"),
        ({}, CANARY + "x", "names no cell that may run (it is not shown here)"),
        ({}, "not an id", ID),
    ],
)
def test_the_plan_refuses_an_id(job: Job, inputs: dict[str, Any], chosen: str, said: str) -> None:
    job.environ = {ID: chosen}
    done = job.step("plan", **inputs)
    assert (done.returncode, said in done.stdout) == (2, True), done.stdout + done.stderr
    assert "canary" not in done.stdout + done.stderr
    assert not job.outputs


def test_a_cell_that_is_sealed_twice_is_one_cell(job: Job) -> None:
    job.environ = {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}
    sealed = seal([CANARY, CANARY], key=KEY, nonce="n", repository="octo/evals")
    assert job.step("plan", sealed_selection=sealed, nonce="n").returncode == 0
    assert len(entries(job)) == 1


@pytest.mark.parametrize("claim", ["", "no-claim"])
@pytest.mark.parametrize("named", [False, True], ids=["by its handle", "by its id"])
@pytest.mark.parametrize(
    "text",
    [CATALOG.replace(", expected-cost: 0.5", ""), CATALOG.replace("{ credential: OPENAI_API_KEY }", "")],
    ids=["a key", "a cost"],
)
def test_a_cell_that_is_paid_for_needs_the_claim(job: Job, text: str, named: bool, claim: str) -> None:
    """GitHub drops an output in which it finds a masked text, and the claim reads as empty then."""
    (job.directory / ".github" / "runner-e2e.yml").write_text(text)
    chosen = {ID: CANARY} if named else {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}
    job.environ = {**chosen, "OPENAI_API_KEY": "sk-x"}
    done = job.step("run", claim=claim, handle="" if named else handle(KEY, CANARY))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "this job has no claim" in done.stdout
    assert not (job.directory / ".runner-e2e").exists()


def test_a_plan_of_more_cells_than_a_matrix_takes(job: Job) -> None:
    cases = ", ".join(f"case-{number}" for number in range(257))
    (job.directory / ".github" / "runner-e2e.yml").write_text(CATALOG.replace("canary-51f2d8, other", cases))
    job.environ = {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}
    done = job.step("plan", all="true")
    assert done.returncode == 2
    assert "257 cells" in done.stdout
    assert "runner-e2e dispatch seal" in done.stdout


def test_one_run_gets_the_claim(job: Job) -> None:
    nonce = new_nonce(datetime.now(UTC))
    first, second = job, Job(double=job.double, directory=job.directory, run=job.double.state.dispatch(
        "paid.yml", "main", {}, job.double.state.users["alice"]
    ))  # fmt: skip
    done = first.step("claim", github_token="token-of-alice", nonce=nonce)
    assert done.returncode == 0, done.stdout
    assert first.outputs == {"claim": f"{nonce}:{first.run.id}:1"}
    done = second.step("claim", github_token="token-of-alice", nonce=nonce)
    assert done.returncode == 3
    assert f"run {first.run.id}, attempt 1, has claimed" in done.stdout


@pytest.mark.parametrize(("nonce", "said"), [("20200101t000000z-0123456789abcdef", "stale"), ("x", "no valid form")])
def test_a_nonce_that_is_none(job: Job, nonce: str, said: str) -> None:
    done = job.step("claim", github_token="token-of-alice", nonce=nonce)
    assert done.returncode == 3
    assert said in done.stdout


def test_a_scheduled_run_has_a_nonce_of_its_own(job: Job) -> None:
    job.run.event = "schedule"
    job.step("claim", github_token="token-of-alice", nonce="20261130t120000z-0123456789abcdef")
    assert job.outputs == {"claim": f"schedule-{job.run.id}:{job.run.id}:1"}


def test_a_later_attempt_gets_no_claim_by_itself(job: Job) -> None:
    job.step("claim", github_token="token-of-alice")
    assert job.outputs == {"claim": f"manual-{job.run.id}:{job.run.id}:1"}
    job.run.last.status = "completed"
    job.double.state.rerun(job.run, job.double.state.users["alice"], failed_only=False)
    done = job.step("claim", attempt=2, github_token="token-of-alice")
    assert done.returncode == 3
    assert f"runner-e2e dispatch authorise-rerun {job.run.id}" in done.stdout


PLAN = {"RUNNER_E2E_CAMPAIGN_KEY": KEY.hex()}
DOLLAR = 1_000_000


@pytest.fixture
def ledger(double: Server) -> SharedLedger:
    return SharedLedger(GitHubApi(repository="octo/evals", token="token-of-alice", url=double.url))


def planned(job: Job) -> dict[str, str]:
    """What the job of the plan hands on."""
    job.environ = PLAN
    done = job.step("plan", suites="chat")
    assert done.returncode == 0, done.stdout
    return job.outputs


def claimed(job: Job, plan: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return job.step("claim", github_token="token-of-alice", cells=plan["cells"], reserved=plan["reserved"])


def record(job: Job, name: str, usage: Usage, *, attempt: int = 1, folder: str = "") -> None:
    """A record as the job `results` has fetched it."""
    result = Result(
        id=CANARY, handle=name, campaign="20261130T120000Z-1f2e3d", attempt=attempt, attempts=2, selection="env",
        verdict="passed", failure=None, started="2026-11-30T12:00:00.000Z", ended="2026-11-30T12:01:00.000Z",
        duration_s=60.0, exit=Exit(code=0), usage=usage, retry=Retry(allowed=False, reason="passed"), output=Output(),
        left_processes=0, sandbox=(), notes=(), definition_hash="x", engine="x",
        host=Host(kernel="6.8", machine="x86_64", python="3.13"),
    )  # fmt: skip
    directory = job.directory / "results" / f"result-{name}" / folder
    directory.mkdir(parents=True)
    write_result(result, directory / "result.json")


def known(dollars: float) -> Usage:
    return Usage(cost_usd=dollars, cost_status="reported")


def test_the_plan_says_what_is_to_be_reserved(job: Job) -> None:
    assert planned(job)["reserved"] == "2000000"  # with the retry that every catalog plans
    path = job.directory / ".github" / "runner-e2e.yml"
    path.write_text(f"retries: 0\n{CATALOG}")
    assert planned(job)["reserved"] == "1000000"
    path.write_text(CATALOG.replace(", expected-cost: 0.5", ""))
    job.environ = PLAN
    done = job.step("plan", suites="chat")
    assert "::warning title=runner-e2e plan::what this run may cost is not known" in done.stdout
    assert (job.directory / "output").read_text().count("reserved<<") == 1
    assert "reserved" not in {name for name, value in job.outputs.items() if value}


def test_a_run_without_a_ledger_is_told_so(job: Job) -> None:
    done = claimed(job, planned(job))
    assert done.returncode == 0, done.stdout
    assert "claim: this repository keeps no ledger, so no cap limits the run" in done.stdout
    assert f"refs/heads/{BRANCH}" not in job.double.state.refs
    assert "::warning" not in done.stdout


def test_an_older_workflow_is_told_what_the_claim_lacks(job: Job, ledger: SharedLedger) -> None:
    ledger.set_caps(day=DOLLAR)
    done = job.step("claim", github_token="token-of-alice")
    assert done.returncode == 3
    assert "::warning title=runner-e2e claim::the claim was not told what this run may cost" in done.stdout
    assert "what this costs is not known" in done.stdout


def test_a_run_reserves_claims_and_settles(job: Job, ledger: SharedLedger) -> None:
    ledger.set_caps(day=2 * DOLLAR)
    plan = planned(job)
    done = claimed(job, plan)
    assert done.returncode == 0, done.stdout
    assert f"claim: $2.00 are reserved as run-{job.run.id}\n" in done.stdout
    one, two = sorted(entry["handle"] for entry in json.loads(plan["matrix"])["include"])
    record(job, one, known(0.25), folder="attempt-1")
    record(job, one, known(0.125), attempt=2, folder="attempt-2")
    record(job, two, known(0.5))
    claim = f"manual-{job.run.id}:{job.run.id}:1"
    done = job.step("settle", github_token="token-of-alice", claim=claim, matrix=plan["matrix"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"settle: run-{job.run.id} has cost $0.875 of $2.00 reserved\n" in done.stdout
    assert "**Cost:**" in (job.directory / "summary").read_text()
    assert ledger.spent("day") == 875_000
    assert CANARY not in done.stdout
    # What is left is not enough for another one.
    other = Job(double=job.double, directory=job.directory, run=job.double.state.dispatch(
        "paid.yml", "main", {}, job.double.state.users["alice"]
    ))  # fmt: skip
    done = claimed(other, plan)
    assert done.returncode == 3
    assert "$2.00 more would pass the cap of" in done.stdout
    assert "$0.875 spent + $0.00 reserved + $2.00 = $2.875" in done.stdout


def test_what_is_not_known_keeps_its_share(job: Job, ledger: SharedLedger) -> None:
    ledger.set_caps(day=2 * DOLLAR)
    plan = planned(job)
    claimed(job, plan)
    one, two = sorted(entry["handle"] for entry in json.loads(plan["matrix"])["include"])
    record(job, one, known(0.25))
    record(job, two, Usage())
    (job.directory / "results" / "result-x").mkdir()
    (job.directory / "results" / "result-x" / "result.json").write_text("{")
    claim = f"manual-{job.run.id}:{job.run.id}:1"
    given: dict[str, Any] = {"claim": claim, "matrix": plan["matrix"], "largest": plan["largest"]}
    done = job.step("settle", github_token="token-of-alice", **given)
    assert done.returncode == 0, done.stdout
    assert "has cost $1.25 of $2.00 reserved, with $1.00 kept for 1 cell of unknown cost" in done.stdout
    assert done.stdout.count("::warning title=runner-e2e settle::") == 1
    assert ledger.spent("day") == 1_250_000


def single(job: Job) -> dict[str, str]:
    """What the plan of one cell without a campaign key hands on, after it was claimed."""
    job.environ = {ID: CANARY}
    assert job.step("plan").returncode == 0
    plan = job.outputs
    job.environ = {}
    assert claimed(job, plan).returncode == 0
    return plan


@pytest.mark.parametrize(
    ("usage", "charged", "state"),
    [(known(0.25), 250_000, "settled"), (Usage(), None, "reserved")],
    ids=["a known cost", "an unknown one"],
)
def test_a_single_cell_is_settled_by_its_own_record(
    job: Job, ledger: SharedLedger, usage: Usage, charged: int | None, state: str
) -> None:
    """Its handle is made with a key that only its own job has had."""
    ledger.set_caps(day=DOLLAR)
    plan = single(job)
    record(job, handle(random_key(), CANARY), usage)
    claim = f"manual-{job.run.id}:{job.run.id}:1"
    done = job.step("settle", github_token="token-of-alice", claim=claim, cells=plan["cells"])
    assert done.returncode == 0, done.stdout + done.stderr
    (entry,) = ledger.entries(f"run-{job.run.id}")
    assert (entry.charged, entry.state) == (charged, state)
    fix = f"`runner-e2e dispatch caps --settle run-{job.run.id} USD`"
    assert (fix in done.stdout) is (charged is None)
    assert "caps refuse whatever is to be paid" not in done.stdout


@pytest.mark.parametrize(
    ("conclusion", "charged"), [("skipped", 0), ("success", None), ("", None)], ids=["not begun", "begun", "lost"]
)
def test_a_single_cell_without_a_record(job: Job, ledger: SharedLedger, conclusion: str, charged: int | None) -> None:
    ledger.set_caps(day=DOLLAR)
    plan = single(job)
    step = {"name": "Run the cell", "number": 1, "status": "completed", "conclusion": conclusion or None}
    job.run.last.jobs.append(
        Work(id=991, name="Paid cell", attempt=1, status="completed", conclusion="failure", runner=1, steps=[step])
    )
    job.run.last.jobs.append(Work(id=992, name="Results", attempt=1, status="in_progress", conclusion=None, runner=1))
    claim = f"manual-{job.run.id}:{job.run.id}:1"
    done = job.step("settle", github_token="token-of-alice", claim=claim, cells=plan["cells"])
    assert done.returncode == 0, done.stdout + done.stderr
    (entry,) = ledger.entries(f"run-{job.run.id}")
    assert entry.charged == charged


def test_a_cell_that_is_refused_before_it_starts_costs_nothing(job: Job, ledger: SharedLedger) -> None:
    """Its key is missing: the paid step began, and its record says that nothing was paid."""
    ledger.set_caps(day=DOLLAR)
    plan = single(job)
    claim = f"manual-{job.run.id}:{job.run.id}:1"
    job.environ = {ID: CANARY}
    assert "OPENAI_API_KEY is not set" in job.step("run", claim=claim).stdout
    (job.directory / "results").mkdir()
    Path(job.outputs["result"]).rename(job.directory / "results" / "result.json")
    done = job.step("settle", github_token="token-of-alice", claim=claim, cells=plan["cells"])
    assert f"settle: run-{job.run.id} has cost $0.00 of $1.00 reserved" in done.stdout
    assert ledger.spent("day") == 0


def test_what_was_never_reserved_counts_where_there_is_a_ledger_by_now(job: Job, ledger: SharedLedger) -> None:
    plan = planned(job)
    claim = f"manual-{job.run.id}:{job.run.id}:1"
    inputs: dict[str, Any] = {"github_token": "token-of-alice", "claim": claim, "matrix": plan["matrix"]}
    assert "settle: nothing was reserved for this run" in job.step("settle", **inputs).stdout
    ledger.set_caps(day=DOLLAR)
    done = job.step("settle", **inputs)
    assert (
        f"what run-{job.run.id} has cost is not known; until it is, caps refuse whatever is to be paid" in done.stdout
    )
    for entry in json.loads(plan["matrix"])["include"]:
        record(job, entry["handle"], known(0.25))
    done = job.step("settle", **inputs)
    assert f"settle: run-{job.run.id} has cost $0.50 of an unknown amount reserved" in done.stdout
    assert ledger.spent("day") == 500_000


def test_what_is_settled_stays_where_its_records_are_gone(job: Job, ledger: SharedLedger) -> None:
    ledger.set_caps(day=DOLLAR)
    plan = single(job)
    record(job, handle(random_key(), CANARY), known(0.25))
    inputs: dict[str, Any] = {
        "github_token": "token-of-alice", "claim": f"manual-{job.run.id}:{job.run.id}:1", "cells": plan["cells"]
    }  # fmt: skip
    assert "has cost $0.25 of" in job.step("settle", **inputs).stdout
    shutil.rmtree(job.directory / "results")
    assert f"run-{job.run.id} stays settled at $0.25" in job.step("settle", **inputs).stdout


@pytest.mark.parametrize(
    ("inputs", "status", "said"),
    [
        ({"claim": ""}, 3, "this job has no claim"),
        ({"claim": "n:1:1"}, 3, "the claim is that of run 1"),
        ({"matrix": ""}, 2, "the input `matrix` is not the plan's"),
        ({"matrix": "", "cells": "2"}, 2, "the input `matrix` is not the plan's"),
        ({"matrix": "[]"}, 2, "the input `matrix` is not the plan's"),
        ({"matrix": '{"include": [{"handle": "x"}]}'}, 2, "the input `matrix` is not the plan's"),
        ({"matrix": '{"include": [{"handle": 1}]}'}, 2, "the input `matrix` is not the plan's"),
        ({"github_token": "wrong"}, 3, "401"),
        ({"results": "x" * 5000}, 2, "cannot be looked for"),
        ({"largest": "1.5"}, 2, "the input `largest` is '1.5', which is no whole number"),
    ],
)
def test_what_cannot_be_settled(job: Job, inputs: dict[str, Any], status: int, said: str) -> None:
    plan = planned(job)
    given = {"github_token": "token-of-alice", "claim": f"n:{job.run.id}:1", "matrix": plan["matrix"], **inputs}
    done = job.step("settle", **given)
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr
    assert done.stdout.startswith("::error title=runner-e2e settle::")


@pytest.mark.parametrize("reserved", ["1.5", "-1", "many", "9" * 17])
def test_a_claim_with_an_amount_that_is_none(job: Job, reserved: str) -> None:
    done = job.step("claim", github_token="token-of-alice", cells="2", reserved=reserved)
    assert done.returncode == 2
    assert "fix: give `reserved: ${{ needs.plan.outputs.reserved }}`" in done.stdout.replace("%0A", "\n")
    assert not any("claims" in name for name in job.double.state.refs)
