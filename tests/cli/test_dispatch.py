"""``gate``, ``dispatch`` and ``doctor`` on the command line, against a double of GitHub."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.github_double.server import Server

from runner_e2e.cells.handles import parse_key, random_key
from runner_e2e.cells.sealed import open_selection
from runner_e2e.cli.group import run as run_command
from runner_e2e.dispatch.claim import CLAIMS, Claim, take_claim
from runner_e2e.dispatch.github_api import GitHubApi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
TEMPLATE = ROOT / "workflows-templates" / "paid-campaign.yml"
REPO = ("--repo", "octo/evals")
POLICY = {"deployment_branch_policy": {"protected_branches": True, "custom_branch_policies": False}}


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "RUNNER_E2E_ALLOWLIST"):
        monkeypatch.delenv(name, raising=False)
    with Server(validating=False) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        monkeypatch.setenv("GH_TOKEN", "token-of-alice")
        workflow = server.state.add_workflow(
            ".github/workflows/paid-campaign.yml", triggers=("workflow_dispatch",), inputs={"nonce": False}
        )
        workflow.run_name = "Paid campaign ${{ inputs.nonce }}"
        yield server


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], double: Server) -> Callable[..., tuple[int, str, str]]:
    """Runs a command; its status and both outputs."""
    del double

    def make(*words: str) -> tuple[int, str, str]:
        status = run_command(list(words))
        out, err = capsys.readouterr()
        return status, out, err

    return make


def test_a_key_is_a_key(ask: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = ask("dispatch", "keygen")
    assert (status, err) == (0, "")
    assert len(parse_key(out.strip())) == 32
    assert ask("dispatch", "keygen")[1] != out


def test_a_selection_is_sealed(
    ask: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(
        "harness: { command: [x] }\nprofiles: { p: }\nenvironments: { e: }\n"
        "suites: { s: { profiles: [p], environments: [e], cases: [one, two], expected-cost: 1 } }\n"
    )
    words = ("dispatch", "seal", "--suite", "s", *REPO)
    assert "RUNNER_E2E_CAMPAIGN_KEY is not set" in ask(*words)[2]
    key = random_key()
    monkeypatch.setenv("RUNNER_E2E_CAMPAIGN_KEY", key.hex())
    status, out, _ = ask(*words, "--target", "main")
    assert status == 0
    (line,) = out.splitlines()
    inputs = json.loads(line)
    assert set(inputs) == {"nonce", "selection", "target"}
    found = open_selection(inputs["selection"], keys=[key], nonce=inputs["nonce"], repository="octo/evals")
    assert set(found.ids) == {"s.p.e.one", "s.p.e.two"}
    assert ask("dispatch", "seal", *REPO)[0] == 3, "a billable run says what it runs"


def test_the_gate_explains_a_run(ask: Callable[..., tuple[int, str, str]], double: Server) -> None:
    state = double.state
    run = state.dispatch("paid-campaign.yml", "main", {}, state.users["alice"])
    status, out, _ = ask("gate", "--run", str(run.id), "--allowlist", "[11]", "--target", "main", *REPO)
    assert status == 0
    assert out.splitlines() == [
        "may pay: `workflow_dispatch` by alice (id 11), definition on main, attempt 1",
        f"target: refs/heads/main at {run.sha}",
    ]
    status, out, err = ask("gate", "--run", str(run.id), "--allowlist", "[12]", *REPO)
    assert (status, out) == (3, "")
    assert "alice (id 11) is not on the allowlist" in err
    assert "fix: an administrator of the repository adds 11" in err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("gate", "--allowlist", "[11]"), 2, "there is no repository"),
        (("gate", "--allowlist", "[11]", *REPO), 3, "does not say which run"),
        (("gate", "--allowlist", "[11]", "--token-env", "NONE", *REPO), 2, "no token"),
        (("gate", "--run", "77", "--allowlist", "[11]", *REPO), 3, "404"),
        (("doctor", "--repo", "octo/none"), 3, "404"),
        (("doctor", "--repo", "octo"), 2, "no repository"),
        (("dispatch", "authorise-rerun", "77", *REPO), 3, "404"),
        (("dispatch", "cleanup", "--older-than", "39", *REPO), 2, "39"),
    ],
)
def test_what_cannot_be_asked(
    ask: Callable[..., tuple[int, str, str]], words: tuple[str, ...], status: int, said: str
) -> None:
    found, _, err = ask(*words)
    assert (found, said in err) == (status, True), err
    assert "Traceback" not in err


def test_a_rerun_is_authorised(ask: Callable[..., tuple[int, str, str]], double: Server) -> None:
    state = double.state
    nonce = "20261130t120000z-0123456789abcdef"
    run = state.dispatch("paid-campaign.yml", "main", {"nonce": nonce}, state.users["alice"])
    status, out, _ = ask("dispatch", "authorise-rerun", str(run.id), *REPO)
    assert status == 0
    assert out == f"attempt 2 of run {run.id} may pay once; start it with `gh run rerun {run.id}`\n"
    assert f"refs/runner-e2e/reruns/{nonce}-2" in state.refs


def test_a_run_whose_name_has_no_nonce_is_not_authorised(
    ask: Callable[..., tuple[int, str, str]], double: Server
) -> None:
    state = double.state
    run = state.dispatch("paid-campaign.yml", "main", {}, state.users["alice"])
    status, _, err = ask("dispatch", "authorise-rerun", str(run.id), *REPO)
    assert status == 3
    assert "ends with no nonce" in err


def test_old_claims_are_removed(
    ask: Callable[..., tuple[int, str, str]], double: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = double.state
    api = GitHubApi(repository="octo/evals", token="token-of-alice", url=double.url)
    commit = state.refs["refs/heads/main"]
    take_claim(api, Claim(nonce="old", run=1, attempt=1), commit=commit)
    state.clock.sleep(39 * 86_400)
    assert ask("dispatch", "cleanup", *REPO)[1] == "0 refs are older than 40 days\n"
    state.clock.sleep(2 * 86_400)
    take_claim(api, Claim(nonce="new", run=2, attempt=1), commit=commit)
    state.refs[f"refs/{CLAIMS}/foreign"] = commit
    # The clock of this machine is years ahead: that of the server counts.
    monkeypatch.setattr("time.time", lambda: state.clock.now() + 1e9)
    status, out, _ = ask("dispatch", "cleanup", "--dry-run", *REPO)
    assert (status, out) == (0, f"would remove refs/{CLAIMS}/old\n1 refs are older than 40 days\n")
    assert ask("dispatch", "cleanup", *REPO)[1] == f"removed refs/{CLAIMS}/old\n1 refs are older than 40 days\n"
    assert {name for name in state.refs if CLAIMS in name} == {f"refs/{CLAIMS}/new", f"refs/{CLAIMS}/foreign"}


@pytest.fixture
def half_ready(double: Server) -> Server:
    """What the documentation shows: two things are missing."""
    state = double.state
    state.environments["paid-evals"] = dict(POLICY)
    state.variables["RUNNER_E2E_ALLOWLIST"] = "[11]"
    state.write_file(".github/workflows/paid-campaign.yml", "main", TEMPLATE.read_bytes(), "workflow", None)
    return double


def test_the_doctor_says_what_the_documentation_shows(
    ask: Callable[..., tuple[int, str, str]], half_ready: Server
) -> None:
    del half_ready
    text = (ROOT / "docs" / "paying.md").read_text()
    shown = re.search(r"<!-- test: doctor -->\n\s*```console\n\s*\$ runner-e2e (.*?)\n(.*?)```", text, re.DOTALL)
    assert shown
    status, out, _ = ask(*shown[1].split())
    assert status == 1
    assert out.rstrip() == re.sub(r"^   ", "", shown[2], flags=re.MULTILINE).rstrip()


def test_the_doctor_asks_for_the_credentials_of_the_catalog(
    ask: Callable[..., tuple[int, str, str]], half_ready: Server, tmp_path: Path
) -> None:
    del half_ready
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(
        "harness: { command: [x] }\ncredentials: { OPENAI_API_KEY: }\nprofiles: { p: }\nenvironments: { e: }\n"
        "suites: { s: { profiles: [p], environments: [e], cases: [c] } }\n"
    )
    status, out, _ = ask("doctor", "--json", *REPO)
    assert status == 1
    checks = json.loads(out)["checks"]
    assert "OPENAI_API_KEY" in next(check["what"] for check in checks if check["name"] == "secrets")


def test_the_documented_messages_are_those_that_are_printed() -> None:
    table = (ROOT / "docs" / "paying.md").read_text().partition("## When something fails")[2]
    said = re.findall(r"^\| (?!message|---)(.+?) \|", table, re.MULTILINE)
    code = " ".join(
        " ".join(re.sub(r'["\']\s*\n\s*f?["\']', "", path.read_text()).split())
        for path in (ROOT / "src" / "runner_e2e").rglob("*.py")
    )
    assert len(said) == 18
    for message in said:
        # Parts in capitals and dots stand for what differs.
        parts = [part.strip() for part in re.split(r"\b(?:NAME|KEY|BRANCH|N|M)\b|…|`|, ", message) if len(part) > 8]
        assert parts, message
        assert all(part in code for part in parts), message
