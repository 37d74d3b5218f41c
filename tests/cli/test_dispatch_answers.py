"""What every verb of ``dispatch`` answers about a shard in every state: the fact, and what to do, never silence."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.campaign_prompt import KEY, Shell, shell

from runner_e2e.cells.sealed import new_nonce
from runner_e2e.dispatch import campaign as campaigns
from runner_e2e.dispatch.campaign import read_campaign
from runner_e2e.dispatch.ledger import open_ledger
from runner_e2e.dispatch.shard_states import MEANINGS, STATES, State

if TYPE_CHECKING:
    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import ShardState

__all__ = ["shell"]

UNDER_WAY = tuple(state for state in STATES if state not in {"settled", "cancelled"})


def ledger() -> Ledger:
    return open_ledger(Path(os.environ["RUNNER_E2E_LEDGER"]), now=time.time)


def the_shard() -> ShardState:
    with ledger() as opened:
        (shard,) = opened.shards(opened.campaigns()[0].id)
        return shard


def arrange(shell: Shell, state: State) -> None:
    """A campaign of one shard that has come to *state*, as far as that can be by itself."""
    shell.enter("runner-e2e dispatch plan --group nightly --repo octo/evals -o campaign.json")
    if state in {"planned", "reserved", "sending"}:
        _end_before_the_request(shell, state)
        return
    if state in {"unknown", "unpaid", "cancelled"}:
        shell.double.faults.order("lost-hang-up", "POST", "/dispatches$")
    shell.enter(f"runner-e2e dispatch start campaign.json --yes --quiet {'' if state == 'settled' else '--detach'}")
    if state == "unpaid":
        shell.enter("runner-e2e dispatch resolve CAMPAIGN --quiet")
    elif state == "cancelled":
        shell.enter("runner-e2e dispatch cancel CAMPAIGN --yes --quiet")
    elif state == "stuck":
        refs = shell.double.state.refs
        refs[f"refs/runner-e2e/claims/{the_shard().nonce}"] = refs["refs/heads/main"]
        shell.enter("runner-e2e dispatch watch CAMPAIGN --quiet")
    elif state in {"running", "ended"}:
        while not shell.player.payments:
            shell.player.turn()
        shell.enter("runner-e2e dispatch resolve CAMPAIGN --quiet")
    if state == "ended":
        shell.player.play()
        with ledger() as opened, opened.acting(the_shard().campaign):
            opened.move(the_shard(), "ended", note="")
    assert the_shard().state == state


def _end_before_the_request(shell: Shell, state: State) -> None:
    """A client that was killed before anything was sent."""
    with ledger() as opened:
        campaign = opened.add(read_campaign(Path("campaign.json"), (KEY,)))
        if state == "planned":
            return
        opened.bind(campaign.id, repository_id=shell.double.state.repository_id)
        with opened.acting(campaign.id):
            nonce = new_nonce(datetime.fromtimestamp(time.time(), UTC))
            shard = opened.move(opened.shards(campaign.id)[0], "reserved", nonce=nonce)
            if state == "sending":
                opened.intend(shard)


def commands(answer: str) -> list[str]:
    """The commands that an answer offers, each on a line of its own."""
    return re.findall(r"^\S* *(runner-e2e dispatch .+)$", answer, re.MULTILINE)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", ["status CAMPAIGN", "results CAMPAIGN"])
def test_what_is_read_says_the_state_and_what_to_do(shell: Shell, state: State, verb: str) -> None:
    arrange(shell, state)
    answer = shell.enter(f"runner-e2e dispatch {verb}")
    shard = the_shard()
    assert shard.state == state, "to read changes nothing"
    if state == "settled":
        assert "failed" in answer
        return
    assert f"shard 0 is {state}" in answer
    assert " ".join((shard.note or MEANINGS[state]).split()) in " ".join(answer.split())
    assert bool(commands(answer)) == (state != "cancelled")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "verb", ["resume CAMPAIGN", "resolve CAMPAIGN", "cancel CAMPAIGN --yes", "start campaign.json --yes --detach"]
)
def test_what_is_done_says_what_came_of_it_and_what_to_do(shell: Shell, state: State, verb: str) -> None:
    arrange(shell, state)
    answer = shell.enter(f"runner-e2e dispatch {verb}")
    after = the_shard()
    assert shell.status == (1 if after.state in {"settled", "cancelled"} else 5), answer
    if after.state != "settled":
        assert f"shard 0 is {after.state}" in answer
        assert bool(commands(answer)) == (after.state != "cancelled")
    if after.state == state and after.run is None and not (verb.startswith("resolve") and state in {"sent", "stuck"}):
        assert re.search(r": nothing (waits|is|goes) ", answer) or verb.startswith("cancel"), answer
    assert shell.player.paid_twice() == []


@pytest.mark.parametrize("state", UNDER_WAY)
@pytest.mark.parametrize("last", [False, True], ids=["the first command", "the last command"])
def test_who_does_what_is_offered_comes_to_an_end(shell: Shell, state: State, last: bool) -> None:
    arrange(shell, state)
    answer = shell.enter("runner-e2e dispatch status CAMPAIGN")
    tried: list[str] = []
    while the_shard().state not in {"settled", "cancelled"}:
        offered = commands(answer)
        # To look again at what a stranger holds changes nothing; then only the other one is left.
        tried.append(offered[-1 if last or "resolve" in "".join(tried[-1:]) else 0])
        assert len(tried) < 6, tried
        asks = "--send-again" in tried[-1] or " cancel " in tried[-1]
        answer = shell.enter(f"{tried[-1]}{' --yes' if asks else ''}")
        shell.player.play()
        assert shell.status in {0, 1, 5}, answer
    assert shell.player.paid_twice() == []


def test_a_shard_whose_run_is_there_is_not_decided_and_it_is_said_why(shell: Shell) -> None:
    arrange(shell, "sent")
    answer = shell.enter("runner-e2e dispatch resolve CAMPAIGN")
    assert "next      shard 0 is sent: run 1002 is queued and has not claimed yet\n" in answer
    assert "`resolve` leaves it alone, since it may claim and pay at any moment" in " ".join(answer.split())
    assert [line.split()[2] for line in commands(answer)] == ["watch", "cancel"]


def test_a_run_that_waits_for_an_approval_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    arrange(shell, "sent")
    next(iter(shell.double.state.runs.values())).last.status = "waiting"
    answer = shell.enter("runner-e2e dispatch resolve CAMPAIGN")
    assert "somebody must approve it: on its page" in answer
    monkeypatch.setenv("GITHUB_API_URL", "https://api.github.com")
    answer = shell.enter("runner-e2e dispatch status CAMPAIGN")
    assert "somebody must approve it: https://github.com/octo/evals/actions/runs/1002" in answer


def test_cancel_says_which_runs_it_stops(shell: Shell) -> None:
    arrange(shell, "running")
    assert "shard 0: run 1002 is asked to stop" in shell.enter("runner-e2e dispatch cancel CAMPAIGN --yes")


@pytest.mark.parametrize("option", ["--send-again", "--give-up"])
@pytest.mark.parametrize("state", STATES)
def test_a_decision_that_cannot_be_is_refused_with_another_way(shell: Shell, state: State, option: str) -> None:
    arrange(shell, state)
    before = len(shell.player.payments)
    answer = shell.enter(f"runner-e2e dispatch resolve CAMPAIGN {option} 0 --yes")
    if (option, state) in {("--send-again", "unpaid"), ("--give-up", "stuck")}:
        assert shell.status in {1, 5}, answer
        return
    assert shell.status == 2, answer
    assert re.search(rf"shard 0 of c-\S+ is \w+, and {option} is refused\n  why: .+\n  fix: ", answer), answer
    assert len(shell.player.payments) == before


def test_nobody_is_asked_about_what_is_refused_anyway(shell: Shell) -> None:
    arrange(shell, "settled")
    answer = shell.enter("runner-e2e dispatch resolve CAMPAIGN --send-again 0")
    assert "there is no terminal" not in answer
    assert "is settled, and --send-again is refused" in answer


def test_shards_of_one_kind_are_told_together(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns, "MAXIMUM_JOBS", 1)
    shell.enter("runner-e2e dispatch plan --group nightly --repo octo/evals -o campaign.json")
    answer = shell.enter("runner-e2e dispatch start campaign.json --yes --detach --quiet")
    assert "next      shards 0, 1, 2, 3, 4 are sent: GitHub took the request" in answer
    answer = shell.enter("runner-e2e dispatch resolve CAMPAIGN --quiet")
    assert answer.count("has not claimed yet") == 3
    assert "shards 3, 4 are sent, each for a reason of its own: `runner-e2e dispatch status c-" in " ".join(
        answer.split()
    )
    assert answer.count("`watch` follows it") == 1
