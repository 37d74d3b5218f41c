"""What somebody changes while a campaign is under way: tokens, branches, names, reruns, the workflow itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dispatch.client_scene import ClientScene
from tests.github_double.player import Payment

from runner_e2e.dispatch.outcomes import PAID_STEP

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.github_double.server import Server

    from runner_e2e.dispatch.campaign import Campaign


@pytest.fixture
def scene(double: Server, tmp_path: Path) -> ClientScene:
    return ClientScene(double, tmp_path, playing=False)


def _start(scene: ClientScene) -> Campaign:
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
    return campaign


def _play_until(scene: ClientScene, done: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if done():
            return
        scene.player.turn()
    raise AssertionError("it never came to that")


def _watch(scene: ClientScene, campaign: Campaign) -> None:
    scene.playing = True
    with scene.client() as client:
        client.watch(campaign.id)
    scene.check(campaign)


def _another_token(scene: ClientScene) -> None:
    scene.token = "token-of-bob"
    scene.state.tokens[scene.token] = scene.state.add_user("bob", 12)


def test_another_token_watches_what_the_first_has_sent(scene: ClientScene) -> None:
    """Somebody approves the run an hour later; it is not given up, though another account asks by then."""
    campaign = _start(scene)
    (run,) = scene.state.runs.values()
    run.last.status = "waiting"
    _another_token(scene)
    with scene.client() as client:
        for _ in range(4):
            scene.state.clock.sleep(3_600)
            client.step(campaign.id)
            client.resolve(campaign.id)
    assert scene.states(campaign) == ["sent"]
    run.last.status = "queued"
    _watch(scene, campaign)
    assert scene.states(campaign) == ["settled"]
    assert len(scene.player.payments) == 3


def _rename_branch(scene: ClientScene) -> None:
    scene.state.refs["refs/heads/trunk"] = scene.state.refs["refs/heads/main"]
    scene.state.default_branch = "trunk"


@pytest.mark.parametrize("change", [_another_token, _rename_branch])
def test_the_claim_is_held_when_something_changes(scene: ClientScene, change: Callable[[ClientScene], None]) -> None:
    campaign = _start(scene)
    _play_until(scene, lambda: bool(scene.player.payments))
    change(scene)
    _watch(scene, campaign)
    assert scene.states(campaign) == ["settled"]
    assert len(scene.player.payments) == 3


def test_runs_get_other_names_while_the_reply_is_lost(scene: ClientScene) -> None:
    """The template of names is changed after the preflight; then the claim alone tells whose run it is."""
    scene.workflow.run_name = "Evaluation of tonight"
    scene.double.faults.order("done-502", "POST", "/dispatches")
    campaign = _start(scene)
    assert scene.states(campaign) == ["unknown"]
    _watch(scene, campaign)
    assert scene.states(campaign) == ["settled"]
    assert len(scene.player.payments) == 3


@pytest.mark.parametrize("seen", [True, False], ids=["seen running", "never seen"])
def test_a_rerun_that_waits_for_an_approval_holds_nothing_up(scene: ClientScene, seen: bool) -> None:
    """Somebody starts the run again, and nobody approves it for weeks: what the first attempt paid is settled."""
    campaign = _start(scene)
    if seen:
        _play_until(scene, lambda: bool(scene.player.payments))
        with scene.client() as client:
            client.step(campaign.id)
        assert scene.states(campaign) == ["running"]
    scene.player.play()
    (run,) = scene.state.runs.values()
    scene.state.clock.sleep(60)
    scene.player.rerun(run).status = "waiting"
    with scene.client() as client:
        client.step(campaign.id)
        scene.state.clock.sleep(600)
        client.step(campaign.id)
    assert scene.states(campaign) == ["settled"]
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    assert (shard.actual, shard.kept) == (1_500_000, 0)


def test_a_rerun_of_what_ended_before_its_claim_holds_nothing_up(scene: ClientScene) -> None:
    campaign = _start(scene)
    (run,) = scene.state.runs.values()
    scene.state.cancel(run)
    scene.player.rerun(run).status = "waiting"
    with scene.client() as client:
        client.step(campaign.id)
    assert scene.states(campaign) == ["unpaid"]
    run.last.status = "queued"
    scene.player.play()
    assert scene.player.payments == []
    scene.check(campaign)


def test_a_workflow_that_lost_its_claim_is_not_taken_for_unpaid(scene: ClientScene) -> None:
    """Its run has ended, nobody holds the claim, and a cell was paid for: to send it again would pay twice."""
    campaign = _start(scene)
    (run,) = scene.state.runs.values()
    with scene.ledger() as ledger:
        name = next(ledger.cells(campaign.id)).handle
    job = scene.player._job(run.last, name, status="completed", conclusion="success")
    job.runner = 1
    job.steps = [{"name": PAID_STEP, "number": 1, "status": "completed", "conclusion": "success"}]
    scene.player.payments.append(Payment(run=run.id, attempt=1, handle=name, authorisation="none"))
    run.last.status, run.last.conclusion = "completed", "success"
    with scene.client() as client:
        client.watch(campaign.id)
        assert scene.states(campaign) == ["stuck"]
        client.resolve(campaign.id)
        (shard,) = scene.found(campaign)
        assert shard.state == "stuck"
        assert f"run {run.id} came to the step that pays" in shard.note
        client.resolve(campaign.id, give_up_on=[0])
    (shard,) = scene.found(campaign)
    assert (shard.state, shard.kept) == ("settled", 3_000_000)
    scene.check(campaign)


@pytest.mark.parametrize("back", [60.0, 3.15e8], ids=["a minute", "ten years"])
@pytest.mark.parametrize("state", ["ended", "unknown", "sent"])
def test_a_clock_that_is_set_back_during_a_wait(scene: ClientScene, state: str, back: float) -> None:
    """The wait for what is missing ends, and is none the shorter."""
    if state != "ended":
        scene.double.faults.order("lost-502", "POST", "/dispatches")
    campaign = _start(scene)
    least, at_end = 600.0, "unpaid"
    if state == "sent":
        with scene.ledger() as ledger, ledger.acting(campaign.id):
            ledger.move(scene.found(campaign)[0], "sent")
        least = 1_800.0
    if state == "ended":
        _play_until(scene, lambda: len(scene.player.payments) == 3)
        (run,) = scene.state.runs.values()
        scene.player.switch_off(run)
        scene.player.play()
        run.artifacts.clear()
        least, at_end = 120.0, "settled"
    offset, waited = 0.0, [0.0]

    def wait(seconds: float) -> None:
        waited.append(seconds)
        assert len(waited) < 100
        scene.state.clock.sleep(seconds)

    with scene.client() as client:
        client._context.now = lambda: scene.state.clock.now() - offset
        client._context.wait = wait
        client.step(campaign.id)
        assert scene.states(campaign) == [state]
        offset = back
        client.watch(campaign.id)
    assert scene.states(campaign) == [at_end]
    assert least - 60 <= sum(waited) < least + 300
    scene.check(campaign)
