"""What the doctor says of repositories that lack one thing each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runner_e2e.dispatch.doctor import Check, Expected, examine
from runner_e2e.dispatch.shared_ledger_file import BRANCH, Caps, caps_as_text
from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.github_double.server import Server
    from tests.github_double.state import State

    from runner_e2e.dispatch.github_api import GitHubApi

TEMPLATE = Path(__file__).resolve().parent.parent.parent / "workflows-templates" / "paid-campaign.yml"
LEDGER = f"refs/heads/{BRANCH}"
PATH = ".github/workflows/paid-campaign.yml"
EXPECTED = Expected(secrets=("OPENAI_API_KEY",))
POLICY = {"deployment_branch_policy": {"protected_branches": True, "custom_branch_policies": False}}


@pytest.fixture(autouse=True)
def ready(double: Server) -> State:
    """A repository in which nothing is missing."""
    state = double.state
    state.protected.add("main")
    state.environments["paid-evals"] = dict(POLICY)
    state.environment_secrets["paid-evals"] = {"RUNNER_E2E_CAMPAIGN_KEY", "OPENAI_API_KEY"}
    state.variables["RUNNER_E2E_ALLOWLIST"] = "[11]"
    state.add_workflow(PATH)
    write(state, TEMPLATE.read_text())
    state.refs[LEDGER] = state.commit(
        {"caps.json": caps_as_text(Caps(campaign=50_000_000, day=20_000_000)).encode()}, [], "caps"
    )
    return state


def write(state: State, text: str) -> None:
    names = state.files("main")
    state.write_file(PATH, "main", text.encode(), "workflow", names.get(PATH))


def of(api: GitHubApi, name: str) -> list[Check]:
    return [check for check in examine(api, EXPECTED) if check.name == name and check.state != "ok"]


def test_nothing_is_missing(api: GitHubApi) -> None:
    checks = examine(api, EXPECTED)
    assert {check.state for check in checks} == {"ok"}
    assert [check.name for check in checks] == [
        "repository", "actions", "token", "default branch", "environment", "secrets", "allowlist", "workflow", "caps",
    ]  # fmt: skip


def test_caps_and_what_is_left(api: GitHubApi) -> None:
    (check,) = [check for check in examine(api, EXPECTED) if check.name == "caps"]
    assert check.what == "at most $50.00 a campaign; $20.00 a day, $20.00 left"


def test_a_repository_without_caps(api: GitHubApi, ready: State) -> None:
    ready.refs[LEDGER] = ready.commit({"caps.json": caps_as_text(Caps()).encode()}, [], "no caps")
    assert [check.state for check in of(api, "caps")] == ["warning"]
    del ready.refs[LEDGER]
    (check,) = of(api, "caps")
    assert (check.state, check.fix.startswith("runner-e2e dispatch caps --day USD")) == ("warning", True)
    assert LEDGER not in ready.refs


def test_a_ledger_that_cannot_be_used(api: GitHubApi, ready: State) -> None:
    ready.refs[LEDGER] = ready.refs["refs/heads/main"]
    (check,) = of(api, "caps")
    assert (check.state, check.what) == ("failed", f"the branch {BRANCH} is no ledger")


def without(text: str) -> Callable[[State], Any]:
    return lambda state: write(state, TEMPLATE.read_text().replace(text, ""))


@pytest.mark.parametrize(
    ("change", "name", "state", "said"),
    [
        (lambda s: setattr(s, "actions_enabled", False), "actions", "failed", "is disabled"),
        (lambda s: setattr(s, "default_permissions", "write"), "token", "warning", "may write by default"),
        (lambda s: s.protected.clear(), "default branch", "failed", "not protected"),
        (lambda s: s.environments.clear(), "environment", "failed", "no environment paid-evals"),
        (lambda s: s.environments.clear(), "secrets", "failed", "RUNNER_E2E_CAMPAIGN_KEY, OPENAI_API_KEY"),
        (lambda s: s.environments["paid-evals"].clear(), "environment", "failed", "every branch"),
        (lambda s: s.environment_secrets.clear(), "secrets", "failed", "RUNNER_E2E_CAMPAIGN_KEY, OPENAI_API_KEY"),
        (lambda s: s.secrets.add("OPENAI_API_KEY"), "secrets", "failed", "every workflow on every branch"),
        (lambda s: s.variables.clear(), "allowlist", "failed", "no variable"),
        (lambda s: s.variables.update(RUNNER_E2E_ALLOWLIST='["alice"]'), "allowlist", "failed", "entry 1"),
        (lambda s: s.variables.update(RUNNER_E2E_ALLOWLIST="[11, 41898282]"), "allowlist", "warning", "every workflow"),
        (lambda s: s.workflows.clear(), "workflow", "failed", "no workflow paid-campaign.yml"),
        (lambda s: setattr(s.workflows[0], "state", "disabled_manually"), "workflow", "failed", "is disabled"),
        (without("inputs.nonce ||"), "workflow", "failed", "run-name"),
        (without("command: claim"), "workflow", "failed", "no step with `command: claim`"),
        (lambda s: write(s, "on: push\njobs: {}\n"), "workflow", "failed", "no trigger `workflow_dispatch`"),
        (lambda s: write(s, "on: workflow_dispatch\n"), "workflow", "failed", "input nonce, selection, target: GitHub"),
        (lambda s: write(s, "on: [\n"), "workflow", "failed", "is no valid workflow"),
        (without("secrets.OPENAI_API_KEY"), "workflow", "warning", "does not give OPENAI_API_KEY, which the catalog"),
    ],
)
def test_what_is_missing(double: Server, api: GitHubApi, change: Any, name: str, state: str, said: str) -> None:
    change(double.state)
    found = of(api, name)
    assert any(check.state == state and said in check.what for check in found), found
    assert all(check.fix for check in found)


@pytest.mark.parametrize(
    ("path", "name"),
    [("permissions$", "actions"), ("permissions/workflow", "token"), ("environments/.*/secrets", "secrets"),
     ("variables", "allowlist"), ("branches", "branch")],
)  # fmt: skip
def test_what_the_token_may_not_see_is_unknown(double: Server, api: GitHubApi, path: str, name: str) -> None:
    for _ in range(4):
        double.faults.order("forbidden", "GET", path)
    (check,) = of(api, name)
    assert check.state == "unknown"
    assert "permission" in check.fix


def test_an_unreadable_repository_is_an_error(connect: Callable[..., GitHubApi]) -> None:
    with pytest.raises(GitHubError, match="404"):
        examine(connect(repository="octo/none"), EXPECTED)


def test_a_workflow_for_single_cells_needs_no_campaign_key(api: GitHubApi, ready: State) -> None:
    path = ".github/workflows/paid-cell.yml"
    ready.add_workflow(path)
    text = (TEMPLATE.parent / "paid-cell.yml").read_text()
    ready.write_file(path, "main", text.encode(), "workflow", None)
    ready.environment_secrets["paid-evals"] = {"OPENAI_API_KEY"}
    expected = Expected(workflows=("paid-cell.yml",), secrets=("OPENAI_API_KEY",))
    checks = examine(api, expected)
    assert [check for check in checks if check.state != "ok"] == []
    (check,) = [check for check in checks if check.name == "workflow"]
    assert check.what == f"{path} pays for one cell that is named, and claims"
    ready.write_file(
        path, "main", text.replace("secrets.OPENAI", "secrets.RUNNER_E2E_CAMPAIGN_KEY || secrets.OPENAI").encode(),
        "with a key", ready.files("main")[path],
    )  # fmt: skip
    (check,) = [check for check in examine(api, expected) if check.state != "ok"]
    assert check.what == "paid-evals has no secret RUNNER_E2E_CAMPAIGN_KEY"


@pytest.mark.parametrize(
    ("campaigns", "fix"),
    [
        (True, "KEY: ${{ matrix.credential == 'KEY' && secrets.KEY || '' }} in"),
        (False, "KEY: ${{ contains(fromJSON(needs.plan.outputs.credentials), 'KEY') && secrets.KEY || '' }} in"),
    ],
)
def test_a_key_that_no_step_gets(api: GitHubApi, ready: State, campaigns: bool, fix: str) -> None:
    name = "paid-campaign.yml" if campaigns else "paid-cell.yml"
    text = (TEMPLATE.parent / name).read_text()
    path = PATH if campaigns else ".github/workflows/paid-cell.yml"
    if not campaigns:
        ready.add_workflow(path)

    def told() -> list[Check]:
        checks = examine(api, Expected(workflows=(name,), secrets=("OPENAI_API_KEY", "KEY")))
        return [each for each in checks if each.name == "workflow" and each.state != "ok"]

    for changed in (text, text.replace("secrets.OPENAI_API_KEY", "secrets[matrix.credential]")):
        ready.write_file(path, "main", changed.encode(), "workflow", ready.files("main").get(path))
        assert [each.fix.startswith(fix) for each in told()] == ([True] if changed == text else [])


def test_one_of_the_ready_workflows_is_enough(api: GitHubApi, ready: State) -> None:
    path = ".github/workflows/paid-cell.yml"
    ready.add_workflow(path)
    ready.write_file(path, "main", (TEMPLATE.parent / "paid-cell.yml").read_bytes(), "workflow", None)
    whats = [check.what for check in examine(api, EXPECTED) if check.name == "workflow"]
    assert whats == [
        f"{PATH} has the inputs nonce, selection, target", f"{path} pays for one cell that is named, and claims"
    ]  # fmt: skip
    ready.workflows.pop(0)
    ready.environment_secrets["paid-evals"] = {"OPENAI_API_KEY"}
    checks = examine(api, EXPECTED)
    assert {check.state for check in checks} == {"ok"}
    assert [check.what for check in checks if check.name == "workflow"] == whats[1:]
    named = examine(api, Expected(workflows=("paid-cell.yml", "other.yml", "paid-campaign.yml")))
    assert [check.what.partition(":")[0] for check in named if check.state == "failed"] == [
        "paid-evals has no secret RUNNER_E2E_CAMPAIGN_KEY",
        "octo/evals has no workflow other.yml",
        "octo/evals has no workflow paid-campaign.yml",
    ]
