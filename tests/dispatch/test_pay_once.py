"""No cell is paid for twice under one authorisation, and none is lost that should be paid for: whole runs, played."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.github_double.faults import FAULTS
from tests.github_double.player import Player

from runner_e2e.cells.catalog import read_catalog
from runner_e2e.cells.handles import handle, random_key
from runner_e2e.cells.sealed import new_nonce, seal
from runner_e2e.dispatch.claim import CLAIMS, authorise, manual_nonce, nonce_of
from runner_e2e.dispatch.records import read_last_attempt
from runner_e2e.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.github_double.server import Server
    from tests.github_double.state import Run

    from runner_e2e.dispatch.github_api import GitHubApi

KEY = random_key()
IDS = ("chat.codex.local.one", "chat.codex.local.two")
HANDLES = {handle(KEY, each) for each in IDS}
CATALOG = """
harness: { command: [python3, harness.py] }
credentials: { OPENAI_API_KEY: }
profiles: { codex: { credential: OPENAI_API_KEY } }
environments: { local: }
suites: { chat: { profiles: [codex], environments: [local], cases: [one, two], expected-cost: 0.5 } }
"""
# What a job gets over by itself. Others end it, and it has not paid then.
OVERCOME = ("lost-502", "lost-hang-up", "done-502", "done-500", "done-hang-up", "done-cut", "limit-403", "limit-429",
            "limit-429-bare")  # fmt: skip
OTHERS = ("html", "forbidden", "conflict", "stale-404", "stale-304", "moved-elsewhere", "limit-hour", "duplicate",
          "late-list")  # fmt: skip


class Scene:
    """A double that knows the workflow, a player, and one sealed selection of two cells."""

    def __init__(self, double: Server, directory: Path) -> None:
        (directory / "catalog.yml").write_text(CATALOG)
        self.double, self.state = double, double.state
        double.validating = False
        self.catalog = read_catalog(directory / "catalog.yml")
        workflow = self.state.add_workflow(
            ".github/workflows/paid-campaign.yml",
            triggers=("schedule", "workflow_dispatch"),
            inputs={"nonce": False, "selection": False, "target": False},
        )
        workflow.run_name = "Paid campaign ${{ inputs.nonce }}"

    def player(self, seed: int, **settings: Any) -> Player:
        return Player(self.double, self.catalog, keys=(KEY,), seed=seed, **settings)

    def dispatch(self, times: int) -> list[Run]:
        """One dispatch that arrives *times* times."""
        nonce = new_nonce(datetime.fromtimestamp(self.state.clock.now(), UTC))
        inputs = {"nonce": nonce, "selection": seal(IDS, key=KEY, nonce=nonce, repository="octo/evals")}
        return [
            self.state.dispatch("paid-campaign.yml", "main", inputs, self.state.users["alice"]) for _ in range(times)
        ]


@pytest.fixture
def scene(double: Server, tmp_path: Path) -> Scene:
    return Scene(double, tmp_path)


def paid(player: Player, runs: Sequence[Run]) -> list[set[str]]:
    """What each of the runs has paid for."""
    return [{each.handle for each in player.payments if each.run == run.id} for run in runs]


@pytest.mark.parametrize("seed", range(8))
def test_one_of_the_twins_pays_for_all(scene: Scene, seed: int) -> None:
    player, runs = scene.player(seed), scene.dispatch(3)
    player.play()
    assert sorted(map(len, paid(player, runs))) == [0, 0, 2]
    assert player.paid_twice() == []
    loser = next(run for run, found in zip(runs, paid(player, runs), strict=True) if not found)
    assert "has claimed" in player.why(loser, "Claim")
    assert {run.last.conclusion for run in runs} == {"success", "failure"}


def test_the_seed_decides_who_wins(scene: Scene) -> None:
    winners = set()
    for seed in range(8):
        player, runs = scene.player(seed), scene.dispatch(2)
        player.play()
        winners.add([bool(found) for found in paid(player, runs)].index(True))
    assert winners == {0, 1}


def requests_to_the_claim(scene: Scene) -> int:
    """How many requests two twins make, without a fault, until both know who has the claim."""
    scene.dispatch(2)
    scene.player(0).play()
    return 1 + max(index for index, entry in enumerate(scene.double.log) if "/git/" in entry.path)


@pytest.mark.parametrize("fault", OVERCOME)
def test_a_fault_at_every_request_of_two_twins(scene: Scene, fault: str) -> None:
    """Each request until the claim is settled is broken in turn: one run pays for all, the other for nothing."""
    requests = requests_to_the_claim(scene)
    assert requests >= 12
    for number in range(requests):
        player, runs = scene.player(number), scene.dispatch(2)
        scene.double.faults.order(fault, "", "", skip=number)
        player.play()
        assert player.paid_twice() == []
        assert sorted(map(len, paid(player, runs))) == [0, 2], (number, [player.why(run, "Claim") for run in runs])
    assert scene.double.faults.fired == {fault: requests}


@pytest.mark.parametrize("fault", OTHERS)
def test_a_fault_that_ends_a_job_pays_for_nothing_twice(scene: Scene, fault: str) -> None:
    requests = requests_to_the_claim(scene)
    for number in range(requests):
        player, runs = scene.player(number), scene.dispatch(2)
        scene.double.faults.order(fault, "", "", skip=number)
        player.play()
        assert player.paid_twice() == []
        assert sum(bool(found) for found in paid(player, runs)) <= 1
    assert scene.double.faults.fired == {fault: requests}


@pytest.mark.parametrize("seed", range(6))
def test_a_storm_of_faults(scene: Scene, seed: int) -> None:
    kinds = tuple(name for name in FAULTS if "hang" not in name or "up" in name)
    scene.double.faults.at_random(seed, 0.25, kinds)
    player = scene.player(seed)
    groups = [scene.dispatch(2) for _ in range(6)]
    player.play()
    assert player.paid_twice() == []
    for runs in groups:
        assert sum(bool(found) for found in paid(player, runs)) <= 1
    assert len(scene.double.faults.fired) > 8


@pytest.mark.parametrize("seed", range(4))
def test_reruns_without_an_authorisation_pay_nothing(scene: Scene, seed: int) -> None:
    player = scene.player(seed)
    (run,) = scene.dispatch(1)
    player.play()
    assert len(player.payments) == 2
    for failed_only, job in ((False, ""), (True, ""), (True, "Claim"), (True, "Plan"), (True, min(HANDLES))):
        player.rerun(run, failed_only=failed_only, job=job)
        player.play()
        assert len(player.payments) == 2, (failed_only, job)


def test_a_rerun_of_failed_cells_brings_the_old_claim_along(scene: Scene) -> None:
    player = scene.player(1)
    (run,) = scene.dispatch(1)
    player.play()
    cell = next(job for job in run.last.jobs if job.name in HANDLES)
    cell.conclusion = "failure"  # it was paid for and failed
    failed = cell.name
    player.rerun(run, failed_only=True)
    player.play()
    assert len(player.payments) == 2
    assert "attempt 1, and this is run" in player.why(run, failed)


@pytest.mark.parametrize("seed", range(4))
def test_an_authorised_rerun_pays_once_more(scene: Scene, api: GitHubApi, seed: int) -> None:
    player = scene.player(seed)
    (run,) = scene.dispatch(1)
    player.play()
    for attempt in (2, 3):
        record = read_last_attempt(api, run.id)
        authorise(api, record, nonce_of(record))
        player.rerun(run)
        player.play()
        assert len(player.payments) == 2 * attempt
    player.rerun(run)
    player.play()
    assert len(player.payments) == 6
    assert player.paid_twice() == []
    assert len({each.authorisation for each in player.payments}) == 3


def test_the_loser_is_not_authorised_to_pay_beside_the_winner(scene: Scene, api: GitHubApi) -> None:
    player, runs = scene.player(3), scene.dispatch(2)
    player.play()
    loser = next(run for run, found in zip(runs, paid(player, runs), strict=True) if not found)
    record = read_last_attempt(api, loser.id)
    with pytest.raises(RefusedError, match="twin of that one"):
        authorise(api, record, nonce_of(record))


def test_a_late_twin_does_not_pay_beside_a_rerun(scene: Scene, api: GitHubApi) -> None:
    """The first run fails before its claim; its rerun is authorised; only then does the twin start."""
    player = scene.player(0)
    (run,) = scene.dispatch(1)
    scene.double.faults.order("forbidden", "GET", "attempts")
    player.play()
    assert player.payments == []
    record = read_last_attempt(api, run.id)
    authorise(api, record, nonce_of(record))
    twin = scene.state.dispatch("paid-campaign.yml", "main", run.inputs, run.actor)
    player.rerun(run)
    player.play()
    assert paid(player, [run, twin]) == [HANDLES, set()]


def test_a_person_who_is_not_on_the_list_cannot_start_again(scene: Scene, api: GitHubApi) -> None:
    player = scene.player(0)
    (run,) = scene.dispatch(1)
    player.play()
    record = read_last_attempt(api, run.id)
    authorise(api, record, nonce_of(record))
    player.rerun(run, by=scene.state.add_user("mallory", 66))
    player.play()
    assert len(player.payments) == 2
    assert "mallory (id 66)" in player.why(run, "Gate")


def scheduled(scene: Scene) -> Run:
    (workflow,) = scene.state.workflows
    return scene.state.start(workflow, "schedule", "refs/heads/main", scene.state.users["alice"], {})


def test_scheduled_and_manual_runs_have_claims_of_their_own(scene: Scene, api: GitHubApi) -> None:
    player = scene.player(2)
    first, second = scheduled(scene), scheduled(scene)
    by_hand = scene.state.dispatch("paid-campaign.yml", "main", {}, scene.state.users["alice"])
    player.play()
    assert paid(player, [first, second, by_hand]) == [HANDLES] * 3
    assert player.paid_twice() == []
    assert {each.authorisation for each in player.payments} == {
        f"schedule-{first.id}", f"schedule-{second.id}", f"manual-{by_hand.id}"
    }  # fmt: skip
    player.rerun(first)
    player.play()
    assert len(player.payments) == 6
    record = read_last_attempt(api, first.id)
    authorise(api, record, nonce_of(record))
    player.rerun(first)
    player.play()
    assert len(player.payments) == 8


@pytest.mark.parametrize(
    "nonce",
    [lambda run: manual_nonce(run.id), lambda run: f"schedule-{run.id}", lambda run: f"{run.inputs['nonce']}-2"],
)
def test_a_nonce_that_is_made_up_to_meet_another_s(scene: Scene, nonce: Callable[[Run], str]) -> None:
    player = scene.player(0)
    (victim,) = scene.dispatch(1)
    made_up = scene.state.dispatch("paid-campaign.yml", "main", {"nonce": nonce(victim)}, victim.actor)
    player.play()
    assert paid(player, [victim, made_up]) == [HANDLES, set()]
    assert "no valid form" in player.why(made_up, "Claim")


def test_a_claim_that_somebody_took_away_is_taken_for_no_other_attempt(scene: Scene) -> None:
    """Who may write can delete a claim, but what the runs have in their hands stays what it was."""
    player = scene.player(0)
    (run,) = scene.dispatch(1)
    player.play()
    for name in [name for name in scene.state.refs if CLAIMS in name]:
        del scene.state.refs[name]
    player.rerun(run)
    player.play()
    assert len(player.payments) == 2


def test_a_run_whose_machines_are_lost_pays_no_more(scene: Scene) -> None:
    player = scene.player(5)
    (run,) = scene.dispatch(1)
    while not any(CLAIMS in name for name in scene.state.refs):
        assert player.turn()
    player.switch_off(run)
    player.play()
    assert player.payments == []
    twin = scene.state.dispatch("paid-campaign.yml", "main", run.inputs, run.actor)
    player.play()
    assert player.payments == []
    assert f"run {run.id}, attempt 1, has claimed" in player.why(twin, "Claim")


def test_a_cancelled_run_pays_no_more(scene: Scene) -> None:
    player = scene.player(5)
    (run,) = scene.dispatch(1)
    while not any(CLAIMS in name for name in scene.state.refs):
        assert player.turn()
    scene.state.cancel(run)
    player.play()
    assert player.payments == []


def test_runs_go_on_while_a_client_asks(scene: Scene, api: GitHubApi) -> None:
    player = scene.player(1)
    (run,) = scene.dispatch(1)
    scene.double.after = player.after_request
    for _ in range(60):
        if read_last_attempt(api, run.id).status == "completed":
            break
    assert len(player.payments) == 2
    (artifact,) = run.artifacts
    assert artifact.name == "results"
