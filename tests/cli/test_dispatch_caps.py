"""``runner-e2e dispatch caps`` and what else of the command line reserves, against a double of GitHub."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.github_double.server import Server

from runner_e2e.cli.group import run as run_command
from runner_e2e.dispatch.github_api import GitHubApi
from runner_e2e.dispatch.shared_ledger import BRANCH, Entry, SharedLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ask = Callable[..., tuple[int, str, str]]

REPO = ("--repo", "octo/evals")
NONCE = "20261130t120000z-0123456789abcdef"
DOLLAR = 1_000_000


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("GITHUB_REPOSITORY", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with Server() as server:
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        monkeypatch.setenv("GH_TOKEN", "token-of-alice")
        workflow = server.state.add_workflow(".github/workflows/paid-campaign.yml", inputs={"nonce": False})
        workflow.run_name = "Paid campaign ${{ inputs.nonce }}"
        yield server


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], double: Server) -> Ask:
    """Runs a verb of ``dispatch``; its status and both outputs."""
    del double

    def make(*words: str) -> tuple[int, str, str]:
        status = run_command(["dispatch", *words, *REPO])
        out, err = capsys.readouterr()
        return status, out, err

    return make


@pytest.fixture
def ledger(double: Server) -> SharedLedger:
    return SharedLedger(GitHubApi(repository="octo/evals", token="token-of-alice", url=double.url))


def entry(**changes: Any) -> Entry:
    given = {"key": "run-7", "campaign": "run-7", "owner": "run-7", "nonce": NONCE, "cells": 2, "reserved": 3 * DOLLAR}
    return Entry(**{**given, **changes})


def test_without_a_ledger_it_shows_that_there_is_no_cap_and_makes_none(ask: Ask, double: Server) -> None:
    status, out, err = ask("caps")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "a campaign: no cap",
        "2026-11-30: $0.00 spent, $0.00 reserved; no cap",
        "2026-11: $0.00 spent, $0.00 reserved; no cap",
    ]
    assert f"refs/heads/{BRANCH}" not in double.state.refs


def test_caps_are_set_shown_and_taken_away(ask: Ask, ledger: SharedLedger) -> None:
    assert ask("caps", "--campaign", "50", "--day", "$10.50", "--month", "5")[0] == 0
    ledger.set_caps(month=None)
    ledger.reserve([entry(), entry(key="run-8", nonce="n8", run=8)])
    ledger.settle([("run-8", 9 * DOLLAR, 8)])
    assert ask("caps", "--month", "5")[1].splitlines() == [
        "a campaign: at most $50.00",
        "2026-11-30: $9.00 spent, $3.00 reserved; $1.50 over $10.50",
        "2026-11: $9.00 spent, $3.00 reserved; $7.00 over $5.00",
        "reserved:",
        "  run-7: $3.00 on 2026-11-30 by run-7",
    ]
    status, out, _ = ask("caps", "--none", "campaign", "--none", "month", "--settle", "run-7", "1.25", "--json")
    assert status == 0
    document = json.loads(out)
    assert document["campaign_cap"] is None
    assert [(each["cap"], each["left"], each["settled"]) for each in document["rooms"]] == [
        (10_500_000, 250_000, 10_250_000), (None, None, 10_250_000),
    ]  # fmt: skip
    assert document["reserved"] == []


def test_what_is_unknown_is_counted(ask: Ask, ledger: SharedLedger) -> None:
    ledger.set_caps()
    ledger.reserve([entry(reserved=None)])
    out = ask("caps", "--day", "10")[1]
    assert "2026-11-30: $0.00 spent, $0.00 reserved, 1 of unknown cost; $10.00 left of $10.00" in out
    assert "run-7: unknown on 2026-11-30" in out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--day", "ten"), 2, "'ten' is no amount of money"),
        (("--day", "-1"), 2, "no amount of money"),
        (("--day", "1", "--none", "day"), 2, "--day and --none day exclude each other"),
        (("--settle", "run-9", "1"), 3, "nothing is reserved as run-9"),
        (("--settle", "rnu-7", "1"), 3, "the key is misspelt"),
        (("--none", "year"), 2, "year"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(
    ask: Ask, double: Server, ledger: SharedLedger, words: tuple[str, ...], status: int, said: str
) -> None:
    ledger.reserve([entry()])
    before = double.state.refs[f"refs/heads/{BRANCH}"]
    got, _, err = ask("caps", *words)
    assert (got, said in err) == (status, True), err
    assert "Traceback" not in err
    assert double.state.refs[f"refs/heads/{BRANCH}"] == before


def test_a_rerun_is_reserved_before_it_is_authorised(ask: Ask, double: Server, ledger: SharedLedger) -> None:
    state = double.state
    run = state.dispatch("paid-campaign.yml", "main", {"nonce": NONCE}, state.users["alice"])
    ledger.set_caps(day=5 * DOLLAR)
    status, _, err = ask("authorise-rerun", str(run.id))
    assert status == 3
    assert f"what attempt 2 of run {run.id} will cost is not known" in err
    ledger.reserve([entry(key="c-1/0/1", campaign="c-1", owner="alice/1f2e")])
    status, _, err = ask("authorise-rerun", str(run.id))
    assert status == 3
    assert "$3.00 more would pass the cap of 2026-11-30, $5.00" in err
    assert not any("reruns" in ref for ref in state.refs)
    assert ask("authorise-rerun", str(run.id), "--cost", "2")[0] == 0
    assert f"refs/runner-e2e/reruns/{NONCE}-2" in state.refs
    assert ledger.entries("c-1")[-1] == entry(
        key=f"run-{run.id}-2", campaign="c-1", owner="alice/1f2e", nonce=f"{NONCE}-2", reserved=2 * DOLLAR,
        day="2026-11-30",
    )  # fmt: skip
    assert ask("authorise-rerun", str(run.id))[0] == 0  # again: it stands


def test_a_twin_reserves_nothing(ask: Ask, double: Server, ledger: SharedLedger) -> None:
    state = double.state
    runs = [state.dispatch("paid-campaign.yml", "main", {"nonce": NONCE}, state.users["alice"]) for _ in range(2)]
    ledger.reserve([entry()])
    assert ask("authorise-rerun", str(runs[0].id))[0] == 0
    before = ledger.spent("day")
    status, _, err = ask("authorise-rerun", str(runs[1].id))
    assert status == 3
    assert f"run {runs[0].id}, attempt 1, has claimed" in err
    assert ledger.spent("day") == before
