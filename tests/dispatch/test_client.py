"""The client against a double whose runs claim, pay and leave results: each cell is paid for once, and said to be."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.dispatch.client_scene import KEY, ClientScene
from tests.github_double import shapes
from tests.github_double.crash import CrashError
from tests.github_double.faults import FAULTS

from runner_e2e.dispatch.attachment import GRACE_UNKNOWN
from runner_e2e.dispatch.claim import CLAIMS
from runner_e2e.dispatch.github_api import Limits
from runner_e2e.dispatch.money import BudgetError
from runner_e2e.dispatch.shared_ledger import SharedLedger
from runner_e2e.errors import GitHubError, RefusedError, RunnerE2EError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.github_double.server import Server
    from tests.github_double.state import Run

    from runner_e2e.dispatch.campaign import Campaign


@pytest.fixture
def scene(double: Server, tmp_path: Path) -> ClientScene:
    return ClientScene(double, tmp_path)


def test_a_campaign_without_trouble(scene: ClientScene) -> None:
    scene.shards = 3
    campaign = scene.plan(target="main")
    scene.run(campaign)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"] * 3
    assert len(scene.player.payments) == 3
    assert [shard.actual for shard in scene.found(campaign)] == [500_000] * 3
    assert len(scene.double.requests("POST", "/dispatches")) == 3
    told = [(each.kind, each.shard) for each in scene.events]
    for shard in range(3):
        assert [kind for kind, index in told if index == shard] == ["sent", "running", "ended", "settled"]
    assert {run.inputs["target"] for run in scene.state.runs.values()} == {"main"}


def test_again_it_does_nothing(scene: ClientScene) -> None:
    campaign = scene.plan()
    scene.run(campaign)
    before = len(scene.double.requests("POST"))
    scene.run(campaign)
    assert len(scene.double.requests("POST")) == before


# The one request whose reply decides over money


@pytest.mark.parametrize("fault", ["done-502", "done-500", "done-hang-up", "done-cut", "done-hang"])
def test_a_lost_reply_to_what_was_carried_out(scene: ClientScene, fault: str) -> None:
    scene.double.faults.order(fault, "POST", "/dispatches")
    campaign = scene.plan()
    with scene.client(impatient=True) as client:
        client.start(campaign)
        assert scene.states(campaign) == ["unknown"]
        client.watch(campaign.id)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]
    assert len(scene.player.payments) == 3


@pytest.mark.parametrize("fault", ["lost-502", "lost-hang-up", "lost-hang", "html"])
def test_a_lost_request_is_decided_after_the_grace_window(scene: ClientScene, fault: str) -> None:
    scene.double.faults.order(fault, "POST", "/dispatches")
    campaign, began = scene.plan(), scene.state.clock.now()
    with scene.client(impatient=True) as client:
        client.start(campaign)
        client.watch(campaign.id)
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    assert (shard.state, shard.note) == ("unpaid", "nothing was paid: no run with its nonce has appeared")
    assert scene.state.clock.now() - began >= GRACE_UNKNOWN
    with scene.client() as client:
        client.resolve(campaign.id, send_again=[0])
        client.watch(campaign.id)
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    assert (shard.state, shard.round) == ("settled", 2)
    assert len(scene.player.payments) == 3


@pytest.mark.parametrize("fault", ["forbidden", "conflict", "stale-404"])
def test_what_github_refuses_keeps_its_state_until_it_is_repaired(scene: ClientScene, fault: str) -> None:
    scene.shards = 3
    for _ in range(2):
        scene.double.faults.order(fault, "POST", "/dispatches", skip=1)
    campaign = scene.plan()
    with scene.client() as client:
        with pytest.raises(RefusedError, match="refuses the dispatch") as caught:
            client.start(campaign)
        assert "dispatch resume" in caught.value.problem.fix
        assert scene.states(campaign) == ["sent", "reserved", "reserved"]
        client.resume(campaign.id)
        client.watch(campaign.id)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"] * 3
    assert len(scene.dispatches()) == 3


def test_what_was_sent_is_watched_though_the_rest_is_refused(scene: ClientScene) -> None:
    scene.shards = 3
    for _ in range(20):
        scene.double.faults.order("forbidden", "POST", "/dispatches", skip=1)
    campaign = scene.plan()
    with scene.client() as client:
        with pytest.raises(RefusedError, match="refuses the dispatch"):
            client.start(campaign)
        with pytest.raises(RefusedError, match="refuses the dispatch"):
            client.watch(campaign.id)
    assert scene.states(campaign) == ["settled", "reserved", "reserved"]


@pytest.mark.parametrize("fault", ["limit-403", "limit-429", "limit-429-bare", "moved-elsewhere"])
def test_what_did_not_get_through_is_sent_later(scene: ClientScene, fault: str) -> None:
    scene.double.faults.order(fault, "POST", "/dispatches")
    campaign = scene.plan()
    scene.run(campaign)
    scene.check(campaign)
    assert scene.double.faults.fired[fault] == 1
    assert scene.states(campaign) == ["settled"]


def test_a_limit_that_does_not_end(scene: ClientScene) -> None:
    for _ in range(20):
        scene.double.faults.order("limit-hour", "POST", "/dispatches")
    campaign = scene.plan()
    with pytest.raises(GitHubError, match="limits the calls"), scene.client() as client:
        client.start(campaign)
    assert scene.states(campaign) == ["reserved"]
    assert 1 < len(scene.double.requests("POST", "/dispatches")) < 10


def test_a_server_that_does_not_know_the_run_of_a_dispatch(scene: ClientScene) -> None:
    scene.shards, scene.state.old_server = 3, True
    campaign = scene.plan()
    scene.run(campaign)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"] * 3
    # Learned once, and remembered by the ledger.
    assert [each.status for each in scene.double.requests("POST", "/dispatches")] == [400, 204, 204, 204]
    scene.player.payments.clear()
    scene.run(scene.plan())
    assert [each.status for each in scene.double.requests("POST", "/dispatches")][4:] == [204, 204, 204]


def test_a_server_that_tells_no_names_of_runs(scene: ClientScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claims alone say then which run is whose; and no other shard's run is taken for a twin."""
    full = shapes.run

    def without(*given: Any) -> dict[str, Any]:
        return {name: value for name, value in full(*given).items() if name != "display_title"}

    monkeypatch.setattr(shapes, "run", without)
    scene.shards, scene.state.old_server = 3, True
    campaign = scene.plan()
    scene.run(campaign)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"] * 3
    assert not scene.double.requests("POST", "/cancel")


def test_a_workflow_whose_file_is_deleted_in_the_middle(scene: ClientScene) -> None:
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        scene.state.workflows.clear()
        scene.playing = True
        client.watch(campaign.id)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]


def test_many_runs_of_others(scene: ClientScene) -> None:
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        others = [stranger(scene, {"nonce": f"20261130t000000z-{number:016x}"}) for number in range(250)]
        for run in others:
            run.last.status = "completed"
        scene.playing = True
        client.watch(campaign.id)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]


# Twins


@pytest.mark.parametrize("seed", range(6))
def test_a_dispatch_that_arrives_twice(double: Server, tmp_path: Path, seed: int) -> None:
    scene = ClientScene(double, tmp_path, seed=seed)
    scene.double.faults.order("duplicate", "POST", "/dispatches")
    campaign = scene.plan()
    scene.run(campaign)
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    assert shard.state == "settled"
    assert {each.run for each in scene.player.payments} == {shard.run}
    assert len(scene.state.runs) == 2


def test_a_twin_that_waits_is_cancelled_and_the_oldest_does_not_count(scene: ClientScene) -> None:
    """The first run stands in the queue for ever; the second has the claim."""
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        (first,) = scene.state.runs.values()
        assert scene.found(campaign)[0].hinted_run == first.id
        second = scene.state.dispatch("paid-campaign.yml", "main", first.inputs, first.actor)
        del scene.state.runs[first.id]  # the player does not see it
        scene.player.play()
        scene.state.runs[first.id] = first
        client.watch(campaign.id)
    (shard,) = scene.found(campaign)
    assert (shard.state, shard.run) == ("settled", second.id)
    assert first.last.conclusion == "cancelled"
    assert any(each.kind == "twin" for each in scene.events)
    scene.check(campaign)


def test_no_run_is_cancelled_before_another_holds_the_claim(scene: ClientScene) -> None:
    scene.double.faults.order("duplicate", "POST", "/dispatches")
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        client.step(campaign.id)
        client.step(campaign.id)
    assert not scene.double.requests("POST", "/cancel")
    assert scene.states(campaign) == ["sent"]


# What GitHub shows late, or not at all


@pytest.mark.parametrize(("reply", "delay"), [("", 1_500), ("done-502", 500)])
def test_a_run_that_is_listed_late(scene: ClientScene, reply: str, delay: float) -> None:
    scene.state.listing_delay = delay
    if reply:
        scene.double.faults.order(reply, "POST", "/dispatches")
    campaign = scene.plan()
    scene.run(campaign)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]


def test_a_claim_that_is_listed_late(scene: ClientScene) -> None:
    """The run has paid and ended, and the list of claims does not have its claim: to burn it finds who holds it."""
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        scene.player.play()
        scene.double.faults.order("late-list", "GET", "matching-refs/runner-e2e")
        client.watch(campaign.id)
    assert scene.double.faults.fired["late-list"] == 1
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]


def test_results_that_are_listed_late(scene: ClientScene) -> None:
    for _ in range(3):
        scene.double.faults.order("late-list", "GET", "/artifacts")
    campaign = scene.plan()
    scene.run(campaign)
    scene.check(campaign)
    assert scene.found(campaign)[0].actual == 1_500_000
    assert scene.double.faults.fired["late-list"] == 3


def test_results_that_have_expired_keep_the_reservation(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        scene.player.play()
        (run,) = scene.state.runs.values()
        run.artifacts[0].expired = True
        client.watch(campaign.id)
        cells = list(client._ledger.cells(campaign.id))
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    # What the cells cost together the run's last job has written.
    assert (shard.state, shard.actual, shard.kept) == ("settled", 0, 1_500_000)
    assert "expired" in shard.note
    assert {(cell.verdict, cell.actual) for cell in cells} == {("failed", None)}


@pytest.mark.parametrize("when", ["in doubt", "ended"])
def test_a_run_that_is_deleted_keeps_the_reservation(scene: ClientScene, when: str) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        if when == "ended":
            client.step(campaign.id)
        scene.player.play()
        (number,) = scene.state.runs
        del scene.state.runs[number]
        began = scene.state.clock.now()
        client.watch(campaign.id)
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    assert (shard.state, shard.run, shard.kept) == ("settled", number, 1_500_000)
    assert "deleted" in shard.note
    # A replica that is behind says the same, so it is not believed at once.
    assert scene.state.clock.now() - began >= 600


def test_a_run_that_cannot_pay_is_decided_at_once(double: Server, tmp_path: Path) -> None:
    scene = ClientScene(double, tmp_path)
    scene.player._allowlist = "[99]"
    campaign, began = scene.plan(), scene.state.clock.now()
    scene.run(campaign)
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    assert shard.state == "unpaid"
    assert "ended before its claim" in shard.note
    assert scene.state.clock.now() - began < GRACE_UNKNOWN


def test_a_run_that_stands_in_the_queue_is_waited_for(scene: ClientScene) -> None:
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        for _ in range(5):
            scene.state.clock.sleep(3_600)
            client.step(campaign.id)
            client.resolve(campaign.id)
        assert scene.states(campaign) == ["sent"]
        scene.player.play()
        client.watch(campaign.id)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]


def test_a_run_that_waits_for_an_approval_is_told_once(scene: ClientScene) -> None:
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        (run,) = scene.state.runs.values()
        run.last.status = "waiting"
        for _ in range(3):
            client.step(campaign.id)
    assert scene.found(campaign)[0].note == f"run {run.id} is waiting and has not claimed yet"
    assert [each.text for each in scene.events if each.kind == "warning"] == [
        f"shard 0: run {run.id} waits for somebody to approve it"
    ]


def test_a_machine_that_is_lost_leaves_its_cost_unknown(scene: ClientScene) -> None:
    campaign = scene.plan()
    scene.playing = False
    with scene.client() as client:
        client.start(campaign)
        (run,) = scene.state.runs.values()
        for _ in range(10_000):
            if len(scene.player.payments) == 1:
                break
            scene.player.turn()
        scene.player.switch_off(run)
        scene.player.play()
        run.artifacts.clear()
        client.watch(campaign.id)
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    assert shard.state == "settled"
    assert 0 < shard.kept <= shard.reserved


# Strangers


def claim_for(scene: ClientScene, nonce: str, message: str) -> None:
    kept = {"tag": "x", "message": message, "object": scene.state.refs["refs/heads/main"], "type": "commit"}
    sha = scene.state.store("tag", {**kept, "date": scene.state.clock.now()})
    scene.state.refs[f"refs/{CLAIMS}/{nonce}"] = sha


def stranger(scene: ClientScene, inputs: dict[str, str]) -> Run:
    return scene.state.dispatch("paid-campaign.yml", "main", inputs, scene.state.add_user("mallory", 66))


@pytest.mark.parametrize("what", ["run", "tag"])
def test_a_claim_that_is_not_ours_needs_a_person(scene: ClientScene, what: str) -> None:
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        (shard,) = scene.found(campaign)
        (first,) = scene.state.runs.values()
        message = "hello"
        if what == "run":
            run = stranger(scene, first.inputs)
            message = json.dumps({"nonce": shard.nonce, "run": run.id, "attempt": 1})
        claim_for(scene, str(shard.nonce), message)
        client.watch(campaign.id)
        assert scene.states(campaign) == ["stuck"]
        client.resolve(campaign.id)
        (shard,) = scene.found(campaign)
        assert shard.state == "stuck"
        assert ("mallory" if what == "run" else "no tag of runner-e2e") in shard.note
        assert not scene.double.requests("POST", "/cancel")
        with pytest.raises(UsageError, match="does not exist"):
            client.resolve(campaign.id, give_up_on=[7])
        client.resolve(campaign.id, give_up_on=[0])
    (shard,) = scene.found(campaign)
    assert (shard.state, shard.kept) == ("settled", 3_000_000)
    scene.check(campaign)


def test_a_stranger_that_copies_the_nonce_is_not_waited_for(scene: ClientScene) -> None:
    scene.double.faults.order("lost-502", "POST", "/dispatches")
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        (shard,) = scene.found(campaign)
        run = stranger(scene, {"nonce": str(shard.nonce)})
        scene.player._allowlist = "[11, 66]"
        client.watch(campaign.id)
    assert scene.states(campaign) == ["unpaid"]
    scene.player.play()
    assert scene.player.payments == []
    assert "given up by the client" in scene.player.why(run, "Claim")


# Budget


def test_a_cap_refuses_before_anything_is_sent(scene: ClientScene) -> None:
    with scene.client() as client:
        client._context.shared.set_caps(day=2_900_000)
        campaign = scene.plan()
        with pytest.raises(BudgetError, match="would pass the cap"):
            client.start(campaign)
        with pytest.raises(BudgetError):
            client.watch(campaign.id)
        assert scene.states(campaign) == ["planned"]
        assert not scene.double.requests("POST", "/dispatches")
        client._context.shared.set_caps(day=3_000_000)
        client.start(campaign)
        client.watch(campaign.id)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]


def test_two_operators_start_the_same_campaign(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
    scene.state.tokens["token-of-bob"] = scene.state.add_user("bob", 12)
    with (
        scene.client(ledger="of-bob.sqlite", token="token-of-bob") as other,
        pytest.raises(RefusedError, match="alice"),
    ):
        other.start(campaign)
    assert len(scene.double.requests("POST", "/dispatches")) == 1
    scene.run(campaign)
    scene.check(campaign)


def test_two_processes_of_one_ledger(scene: ClientScene) -> None:
    campaign = scene.plan()
    with (
        scene.client() as client,
        scene.ledger() as ledger,
        scene.client() as other,
    ):
        ledger.add(campaign)
        with ledger.acting(campaign.id):
            for act in (client.watch, client.step, client.resume, other.resolve):
                with pytest.raises(RefusedError, match="being run already"):
                    act(campaign.id)
    assert not scene.double.log


# Time


def test_a_nonce_that_became_old_is_made_anew_before_it_is_sent(scene: ClientScene) -> None:
    campaign = scene.plan()
    for _ in range(20):
        scene.double.faults.order("limit-hour", "POST", "/dispatches")
    with pytest.raises(GitHubError), scene.client() as client:
        client.start(campaign)
    scene.double.faults._orders.clear()
    old = scene.found(campaign)[0].nonce
    scene.state.clock.sleep(30 * 3_600)
    scene.run(campaign)
    scene.check(campaign)
    (shard,) = scene.found(campaign)
    assert (shard.state, shard.round) == ("settled", 1)
    assert shard.nonce != old
    assert list(scene.dispatches()) == [shard.nonce]


def test_many_months_later(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
    scene.state.clock.sleep(90 * 86_400)
    scene.run(campaign)
    scene.check(campaign)


# Cancelling


def test_to_cancel_before_anything_was_sent(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client._ledger.add(campaign)
        client.cancel(campaign.id)
        client.start(campaign)
        client.watch(campaign.id)
    assert scene.states(campaign) == ["cancelled"]
    assert not scene.double.requests("POST")


def test_to_cancel_what_is_in_doubt(scene: ClientScene) -> None:
    scene.shards = 3
    scene.playing = False
    scene.double.faults.order("lost-502", "POST", "/dispatches")
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        client.cancel(campaign.id)
    assert scene.states(campaign) == ["cancelled"] * 3
    scene.player.play()
    assert scene.player.payments == []
    assert [run.last.conclusion for run in scene.state.runs.values()] == ["cancelled"] * 2
    scene.check(campaign)
    with pytest.raises(RefusedError, match="cancelled"), scene.client() as client:
        client.resolve(campaign.id, send_again=[0])


def test_to_send_one_again_leaves_another_the_time_to_appear(scene: ClientScene) -> None:
    """Also by somebody whose client was killed on the way: what that one has sent is not listed yet."""
    scene.shards = 2
    scene.playing = False
    for _ in range(2):
        scene.double.faults.order("lost-502", "POST", "/dispatches")
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        client.resolve(campaign.id)
        assert scene.states(campaign) == ["unpaid"] * 2
        scene.state.old_server, scene.state.listing_delay = True, 900.0  # no reply names a run
        client.resolve(campaign.id, send_again=[0])
        client.resolve(campaign.id, send_again=[1])
        assert scene.states(campaign) == ["sent"] * 2
        scene.playing = True
        client.watch(campaign.id)
    assert scene.states(campaign) == ["settled"] * 2
    scene.check(campaign)


def test_to_cancel_what_runs(scene: ClientScene) -> None:
    scene.playing = False
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        for _ in range(10_000):
            if len(scene.player.payments) == 1:
                break
            scene.player.turn()
        client.cancel(campaign.id)
        client.watch(campaign.id)
    (shard,) = scene.found(campaign)
    assert shard.state == "settled"
    assert len(scene.player.payments) < 3
    scene.check(campaign)


# Bad input


def test_a_workflow_that_changed_after_the_preflight(scene: ClientScene) -> None:
    """GitHub refuses each dispatch then; the client looks what is wrong before it sends another."""
    scene.shards = 3
    campaign = scene.plan()

    def disable(_: Any) -> None:
        scene.workflow.state = "disabled_manually"

    scene.double.faults.order("lost-502", "POST", "/dispatches")
    with scene.client() as client:
        client._context.say = lambda event: disable(event) if event.kind == "unknown" else None
        with pytest.raises(RefusedError, match="disabled"):
            client.start(campaign)
        assert scene.states(campaign) == ["unknown", "reserved", "reserved"]
        scene.workflow.state = "active"
        client.resume(campaign.id)
        client.watch(campaign.id)
    assert scene.states(campaign) == ["unpaid", "settled", "settled"]
    scene.check(campaign)


def test_a_repository_that_is_renamed_in_the_middle(scene: ClientScene) -> None:
    scene.shards = 3
    campaign = scene.plan()

    def rename(_: Any) -> None:
        scene.state.former_names.add("octo/evals")
        scene.state.repository = "octo/renamed"

    scene.playing = False
    with scene.client() as client:
        client._context.say = lambda event: rename(event) if (event.kind, event.shard) == ("sent", 0) else None
        with pytest.raises(RefusedError, match="called octo/renamed now"):
            client.start(campaign)
        assert scene.states(campaign) == ["sent", "reserved", "reserved"]
        # The run that was sent opens its selection by the old name, and so does not pay; it is watched to its end.
        scene.player.play()
        with pytest.raises(RefusedError, match="called octo/renamed now"):
            client.watch(campaign.id)
    assert scene.states(campaign) == ["unpaid", "reserved", "reserved"]
    assert scene.player.payments == []


@pytest.mark.parametrize("again", [False, True])
def test_a_repository_that_is_renamed_before_its_results_are_fetched(scene: ClientScene, again: bool) -> None:
    campaign = scene.plan()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(scene.client())
        client.start(campaign)
        scene.player.play()
        # One connection is kept, as by a client that watches, or another is made, as by one that was ended.
        client = stack.enter_context(scene.client()) if again else client
        with client._ledger.acting(campaign.id):
            client._look(client._ledger.campaign(campaign.id), "grace")
        assert scene.states(campaign) == ["ended"]
        scene.state.former_names.add("octo/evals")
        scene.state.repository = "octo/renamed"
        client = stack.enter_context(scene.client()) if again else client
        client.watch(campaign.id)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]


def test_another_repository_of_the_same_name(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        scene.state.repository_id = 6
        with pytest.raises(RefusedError, match="another repository"):
            client.start(scene.plan()) if client._ledger.bind(campaign.id, repository_id=6) else None


def test_without_the_key_nothing_is_sent(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client._context.keys = (bytes(range(32)),)
        with pytest.raises(RefusedError, match="campaign key"):
            client.start(campaign)
        assert scene.states(campaign) == ["reserved"]
        client._context.keys = (KEY,)
        client.start(campaign)
        client.watch(campaign.id)
    scene.check(campaign)


def test_a_token_of_an_app(scene: ClientScene) -> None:
    """GitHub does not say who it is; its runs are those of a bot."""
    scene.state.tokens["token-of-app"] = scene.state.add_user("cells[bot]", 77, kind="Bot")
    scene.player._allowlist = "[77]"
    scene.token = "token-of-app"
    campaign = scene.plan()
    scene.run(campaign)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"]
    assert SharedLedger(scene.api()).entries(campaign.id)[0].owner.startswith("app/")


def test_a_network_that_stays_away_ends_the_watch(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)
        scene.double.faults.at_random(1, 1.0, ("lost-502",))
        with pytest.raises(GitHubError):
            client.watch(campaign.id)
        scene.double.faults.at_random(1, 0.0)
        client.watch(campaign.id)
    scene.check(campaign)


def test_an_interrupt_loses_nothing(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.client() as client:
        client.start(campaign)

        def interrupt(_: float) -> None:
            raise KeyboardInterrupt

        client._context.wait = interrupt
        with pytest.raises(KeyboardInterrupt):
            client.watch(campaign.id)
    scene.run(campaign)
    scene.check(campaign)


def test_a_nonce_names_no_cell(scene: ClientScene) -> None:
    """What is public before the run is: the inputs. They hold no id and no handle."""
    campaign = scene.plan()
    scene.run(campaign)
    (sent,) = scene.double.requests("POST", "/dispatches")
    text = json.dumps(sent.body)
    assert "chat" not in text
    assert "cell-" not in text


# Everything, at every request


def go_on(scene: ClientScene, campaign: Campaign, *, most: int = 12) -> None:
    """What a patient person does: the same command again after each error, until nothing is open."""
    for _ in range(most):
        try:
            scene.run(campaign)
        except RunnerE2EError:
            scene.wait(60)
            continue
        return
    raise AssertionError("the campaign does not end")


REQUESTS = range(1, 26)
# Those that hang take as long as the client has patience.
QUICK = tuple(name for name in FAULTS if not name.endswith("-hang"))


def test_how_many_requests_a_campaign_takes(scene: ClientScene) -> None:
    """The tests below reach each of them."""
    counted: list[str] = []
    campaign = scene.plan()
    with scene.client() as client:
        client._context.api.limits = Limits(before=counted.append, wait=scene.wait, now=scene.state.clock.now)
        client.start(campaign)
        client.watch(campaign.id)
    assert 12 < len(counted) < REQUESTS.stop


@pytest.mark.parametrize("sent", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", REQUESTS)
def test_a_crash_at_every_request(scene: ClientScene, number: int, sent: bool) -> None:
    campaign = scene.plan()
    with contextlib.suppress(CrashError), scene.client(crash_at=number, sent=sent) as client:
        client.start(campaign)
        client.watch(campaign.id)
    go_on(scene, campaign)
    scene.check(campaign)
    # What was not sent when the client died is proven not to be, and then a person may send it again.
    assert scene.states(campaign) == (["settled"] if scene.player.payments else ["unpaid"])
    assert scene.player.payments or not scene.dispatches()


@pytest.mark.parametrize("number", REQUESTS)
def test_faults_at_every_request(double: Server, tmp_path: Path, number: int) -> None:
    """Each request of client and runs meets some kinds of faults, and each kind many requests."""
    for kind in QUICK[number % 4 :: 4]:
        scene = ClientScene(double, tmp_path / kind, seed=number)
        double.faults.order(kind, "", "", skip=number - 1)
        campaign = scene.plan()
        go_on(scene, campaign)
        scene.check(campaign)
        assert scene.states(campaign)[0] in {"settled", "unpaid"}, kind


@pytest.mark.parametrize("seed", range(8))
def test_a_storm_of_faults(double: Server, tmp_path: Path, seed: int) -> None:
    scene = ClientScene(double, tmp_path, seed=seed, shards=3)
    campaign = scene.plan()
    double.faults.at_random(seed, 0.15, QUICK)
    for _ in range(40):
        with contextlib.suppress(RunnerE2EError):
            scene.run(campaign)
            break
        scene.wait(600)
    double.faults.at_random(seed, 0.0)
    go_on(scene, campaign)
    scene.check(campaign)
    assert set(scene.states(campaign)) <= {"settled", "unpaid"}
    assert len(double.faults.fired) > 5
