"""``dispatch plan``: what is said before anything is paid, with and without GitHub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.github_double.server import Server

from runner_e2e.cells.catalog import read_catalog
from runner_e2e.cells.handles import handle
from runner_e2e.cli.group import run as run_command
from runner_e2e.dispatch.campaign import read_campaign
from runner_e2e.dispatch.github_api import GitHubApi
from runner_e2e.dispatch.shared_ledger import SharedLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY = bytes(range(100, 132))
CATALOG = """\
harness: { command: [x] }
profiles: { p: }
environments: { e: }
suites:
  priced: { profiles: [p], environments: [e], cases: [one, two], expected-cost: 1.25 }
  open: { profiles: [p], environments: [e], cases: [three] }
  free: { profiles: [p], environments: [e], cases: [four], billable: false }
"""
PLAN = ("plan", "--repo", "octo/evals")

Ask: TypeAlias = "Callable[..., tuple[int, str, str]]"


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(validating=False) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        monkeypatch.setenv("GH_TOKEN", "token-of-alice")
        yield server


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ask:
    """Runs a command where the catalog is; its status and both outputs."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RUNNER_E2E_CAMPAIGN_KEY", KEY.hex())
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(CATALOG)

    def make(*words: str) -> tuple[int, str, str]:
        status = run_command(["dispatch", *words])
        out, err = capsys.readouterr()
        return status, out, err

    return make


def test_without_a_token_it_plans_and_says_what_it_did_not_see(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GH_TOKEN", raising=False)
    status, out, _ = ask(*PLAN, "--suite", "priced")
    assert status == 0
    assert "those of all operators were not looked at: there is no token: set GH_TOKEN" in out
    assert "expected    $2.50 for one attempt of each cell" in out
    assert "reserved    $5.00 if every cell needs all of its 2 attempts" in out
    assert out.endswith("Nothing was written. To keep this campaign for `dispatch start`, add -o FILE.\n")
    assert sorted(path.name for path in Path().iterdir()) == [".github"]


def test_offline_makes_no_request(ask: Ask, double: Server) -> None:
    assert "were not looked at: --offline" in ask(*PLAN, "--suite", "priced", "--offline")[1]
    assert double.log == []


def test_a_plan_changes_nothing_at_github(ask: Ask, double: Server) -> None:
    assert ask(*PLAN, "--suite", "priced", "-o", "campaign.json")[0] == 0
    assert double.log
    assert {entry.verb for entry in double.log} == {"GET"}


def test_github_that_does_not_answer_is_said_and_is_no_obstacle(ask: Ask, double: Server) -> None:
    double.faults.order("forbidden", "GET", "")
    status, out, _ = ask(*PLAN, "--suite", "priced")
    assert status == 0
    assert "were not looked at: GitHub's API answered GET" in out


def test_an_unknown_cost_is_refused_until_it_is_assumed(ask: Ask) -> None:
    status, out, err = ask(*PLAN, "--all", "--offline")
    assert (status, out) == (3, "")
    assert "nobody says what 1 cell of 4 cost" in err
    status, out, _ = ask(*PLAN, "--all", "--offline", "--assume-cost", "0.10")
    assert status == 0
    rows = [line.split() for line in out.splitlines()[1:4]]
    assert rows == [
        ["priced", "p", "2", "$1.25", "$2.50", "catalog"],
        ["open", "p", "1", "$0.10", "$0.10", "--assume-cost"],
        ["free", "p", "1", "$0.00", "$0.00", "nothing", "is", "billed"],
    ]
    assert "$2.60 for one attempt of each cell; $0.10 was assumed for 1 cell" in out


def test_what_passes_a_cap_is_refused_with_the_arithmetic_and_not_written(ask: Ask, double: Server) -> None:
    api = GitHubApi(repository="octo/evals", token="token-of-alice", url=double.url)
    SharedLedger(api).set_caps(day=4_000_000, month=100_000_000)
    status, out, err = ask(*PLAN, "--suite", "priced", "-o", "campaign.json")
    assert status == 3
    assert "$5.00 more would pass the cap of 2026-" in err
    assert "$0.00 spent + $0.00 reserved + $5.00 = $5.00, which is $1.00 more than it" in err
    assert "$4.00 left" in out, "the plan is shown all the same"
    assert not Path("campaign.json").exists()
    assert ask(*PLAN, "--suite", "priced", "--max-cost", "4.99")[0] == 3


@pytest.mark.parametrize("private", [True, False])
def test_it_says_who_can_see_what(ask: Ask, double: Server, *, private: bool) -> None:
    double.state.private = private
    out = ask(*PLAN, "--suite", "priced")[1]
    assert ("everybody sees handles" in out) is not private
    assert ("and can download the result records, which name the cells" in out) is not private
    catalog = Path(".github/runner-e2e.yml")
    catalog.write_text(f"plain-ids: true\n{CATALOG}")
    assert "sees the ids of the cells, since the catalog says `plain-ids: true`" in ask(*PLAN, "--suite", "priced")[1]


def test_in_a_job_no_suite_is_shown(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/evals")
    status, out, _ = ask("plan", "--suite", "priced", "--offline")
    assert (status, "priced" in out) == (0, False)
    assert out.startswith("campaign ")


def test_json_and_the_file_say_the_same(ask: Ask) -> None:
    status, out, err = ask(*PLAN, "--suite", "priced", "--max-cost", "6", "--offline", "--json", "-o", "campaign.json")
    assert (status, err, out.count("\n")) == (0, "", 1)
    data = json.loads(out)
    campaign = read_campaign(Path("campaign.json"), [KEY])
    assert (data["schema"], data["campaign"], data["digest"]) == (
        "runner-e2e.dispatch-plan/v1",
        campaign.id,
        campaign.digest,
    )
    assert (data["cells"], data["expected_usd"], data["reserved_usd"], data["max_cost_usd"]) == (2, 2.5, 5.0, 6.0)
    cells = read_catalog(Path(".github/runner-e2e.yml"))
    named = {handle(KEY, f"priced.p.e.{case}") for case in ("one", "two")}
    assert {cell["handle"] for shard in data["shards"] for cell in shard["cells"]} == named
    assert not any(case in Path("campaign.json").read_text() for case in cells.suites["priced"].cases)


def test_only_a_campaign_file_is_written_over(ask: Ask) -> None:
    assert ask(*PLAN, "--suite", "priced", "--offline", "-o", "campaign.json")[0] == 0
    first = Path("campaign.json").read_text()
    assert ask(*PLAN, "--suite", "priced", "--offline", "-o", "campaign.json")[0] == 0
    assert Path("campaign.json").read_text() != first
    Path("notes.txt").write_text("mine")
    status, _, err = ask(*PLAN, "--suite", "priced", "--offline", "-o", "notes.txt")
    assert (status, Path("notes.txt").read_text()) == (2, "mine")
    assert "notes.txt exists and is no campaign file" in err
    status, _, err = ask(*PLAN, "--suite", "priced", "--offline", "-o", "none/campaign.json")
    assert (status, "No such file or directory" in err) == (2, True)
    assert sorted(path.name for path in Path().iterdir()) == [".github", "campaign.json", "notes.txt"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("plan", "--suite", "priced"), 2, "there is no repository"),
        (("plan", "--suite", "priced", "--repo", "octo"), 2, "not named OWNER/NAME"),
        ((*PLAN,), 3, "nothing was selected"),
        ((*PLAN, "--suite", "prised"), 2, "did you mean priced?"),
        ((*PLAN, "--suite", "priced", "--max-cost", "much"), 2, "'much' is no amount of money"),
        ((*PLAN, "--suite", "priced", "--workflow", "../x.yml"), 2, "the workflow is not named by its file"),
        ((*PLAN, "--suite", "priced", "--key-env", "NONE"), 2, "NONE is not set"),
    ],
)
def test_bad_usage_is_one_message(ask: Ask, words: tuple[str, ...], status: int, said: str) -> None:
    found, out, err = ask(*words)
    assert (found, out, said in err) == (status, "", True), err
    assert "Traceback" not in err
