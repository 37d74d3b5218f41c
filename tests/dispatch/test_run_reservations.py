"""Runs reserve before they claim and settle what they cost: whole runs, played, held against what was really paid."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from tests.github_double.player import Player
from tests.github_double.state import Job

from runner_e2e.cells.catalog import read_catalog
from runner_e2e.cells.handles import handle, random_key
from runner_e2e.cells.sealed import new_nonce, seal
from runner_e2e.dispatch.claim import Claim, burn, nonce_of, take_claim
from runner_e2e.dispatch.downloads import CellRecord, records_in
from runner_e2e.dispatch.outcomes import MOST_OF_A_CELL
from runner_e2e.dispatch.records import read_last_attempt
from runner_e2e.dispatch.run_reservations import Bill, RunPlan, authorise_within_caps, claim_within_caps, settle_run
from runner_e2e.dispatch.shared_ledger import BRANCH, Entry, SharedLedger
from runner_e2e.errors import RefusedError, RunnerE2EError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.github_double.server import Server
    from tests.github_double.state import Run

    from runner_e2e.dispatch.github_api import GitHubApi

KEY = random_key()
IDS = ("chat.codex.local.one", "chat.codex.local.two")
HANDLES = tuple(sorted(handle(KEY, each) for each in IDS))
CATALOG = """
harness: {{ command: [python3, harness.py] }}
credentials: {{ OPENAI_API_KEY: }}
profiles: {{ codex: {{ credential: OPENAI_API_KEY }} }}
environments: {{ local: }}
retries: 1
suites: {{ chat: {{ profiles: [codex], environments: [local], cases: [one, two]{cost} }} }}
"""
DOLLAR = 1_000_000
PLAN = RunPlan(handles=HANDLES, largest=2 * DOLLAR)
OVERCOME = ("lost-502", "lost-hang-up", "done-502", "done-hang-up", "limit-429", "late-list")


class Scene:
    """A double that knows the workflow; runs of two cells that are expected to cost $1.00 an attempt, with a retry."""

    def __init__(self, double: Server, directory: Path, api: GitHubApi) -> None:
        double.validating = False
        self.double, self.state, self.api = double, double.state, api
        self.directory = directory
        self.ledger = SharedLedger(api)
        workflow = self.state.add_workflow(
            ".github/workflows/paid-campaign.yml",
            triggers=("schedule", "workflow_dispatch"),
            inputs={"nonce": False, "selection": False, "target": False},
        )
        workflow.run_name = "Paid campaign ${{ inputs.nonce }}"
        self.workflow = workflow

    def player(self, *, cost: str = ", expected-cost: 1", paid: float = 0.25, **settings: Any) -> Player:
        path = self.directory / "catalog.yml"
        path.write_text(CATALOG.format(cost=cost))
        return Player(self.double, read_catalog(path), keys=(KEY,), cost=lambda _: paid, **settings)

    def scheduled(self) -> Run:
        return self.state.start(self.workflow, "schedule", "refs/heads/main", self.state.users["alice"], {})

    def sent(self, times: int = 1) -> list[Run]:
        """One dispatch that arrives *times* times."""
        nonce = new_nonce(datetime.fromtimestamp(self.state.clock.now(), UTC))
        inputs = {"nonce": nonce, "selection": seal(IDS, key=KEY, nonce=nonce, repository="octo/evals")}
        alice = self.state.users["alice"]
        return [self.state.dispatch("paid-campaign.yml", "main", inputs, alice) for _ in range(times)]

    def kept(self) -> list[Entry]:
        """What lies in the ledger, read past the code under test."""
        files = self.state.files(BRANCH)
        content = (
            self.state.objects[files["2026-11.json"]]["content"] if "2026-11.json" in files else b'{"entries": []}'
        )
        return [Entry(**each) for each in json.loads(content)["entries"]]


@pytest.fixture
def scene(double: Server, tmp_path: Path, api: GitHubApi) -> Scene:
    return Scene(double, tmp_path, api)


def test_a_repository_without_a_ledger_gets_none(scene: Scene) -> None:
    player, run = scene.player(), scene.scheduled()
    player.play()
    assert run.last.conclusion == "success"
    assert len(player.payments) == 2
    assert f"refs/heads/{BRANCH}" not in scene.state.refs


def test_a_scheduled_run_reserves_and_settles(scene: Scene) -> None:
    scene.ledger.set_caps(day=4 * DOLLAR)
    player, run = scene.player(), scene.scheduled()
    while not scene.kept():
        assert player.turn()
    assert scene.kept() == [
        Entry(key=f"run-{run.id}", campaign=f"run-{run.id}", owner=f"run-{run.id}", nonce=f"schedule-{run.id}", cells=2,
              reserved=4 * DOLLAR, day="2026-11-30"),
    ]  # fmt: skip
    # It is reserved before anything is claimed, and so before anything is paid.
    assert not any("claims" in ref for ref in scene.state.refs)
    player.play()
    assert run.last.conclusion == "success"
    (entry,) = scene.kept()
    assert (entry.state, entry.charged, entry.run) == ("settled", 500_000, run.id)


def test_what_would_pass_the_cap_is_not_claimed_and_not_paid(scene: Scene) -> None:
    scene.ledger.set_caps(day=4 * DOLLAR - 1)
    player, run = scene.player(), scene.scheduled()
    player.play()
    assert "$4.00 more would pass the cap of 2026-11-30, $3.999999" in player.why(run, "Claim")
    assert player.payments == []
    assert scene.kept() == []
    assert not any("claims" in ref for ref in scene.state.refs)


def test_unknown_cost_passes_where_there_is_no_cap_and_is_settled(scene: Scene) -> None:
    scene.ledger.set_caps()
    scene.ledger.set_caps(day=9)
    scene.ledger.set_caps(day=None)
    player, run = scene.player(cost=""), scene.scheduled()
    player.play()
    (entry,) = scene.kept()
    assert (entry.reserved, entry.state, entry.charged) == (None, "settled", 500_000)
    scene.ledger.set_caps(month=100 * DOLLAR)
    run = scene.scheduled()
    player.play()
    assert "what this costs is not known, and the cap of 2026-11 is $100.00" in player.why(run, "Claim")
    assert len(player.payments) == 2


def reservation(run: Run, **changes: Any) -> Entry:
    """As a client makes it before it sends."""
    given: dict[str, Any] = {
        "key": "c-1/0/1", "campaign": "c-1", "owner": "alice/1f2e", "nonce": run.inputs["nonce"], "cells": 2,
        "reserved": 4 * DOLLAR, **changes,
    }  # fmt: skip
    return Entry(**given)


def test_a_run_finds_what_its_client_has_reserved(scene: Scene) -> None:
    scene.ledger.set_caps(day=4 * DOLLAR)
    player, (run,) = scene.player(), scene.sent()
    scene.ledger.reserve([reservation(run)])
    player.play()
    (entry,) = scene.kept()
    assert (entry.key, entry.state, entry.charged, entry.run) == ("c-1/0/1", "settled", 500_000, run.id)


def test_a_run_that_costs_more_than_its_client_has_reserved_is_refused(scene: Scene) -> None:
    player, (run,) = scene.player(), scene.sent()
    scene.ledger.reserve([reservation(run, reserved=3 * DOLLAR)])
    player.play()
    assert "this run may cost $4.00, and $3.00 are reserved for it (c-1/0/1)" in player.why(run, "Claim")
    assert player.payments == []


def test_a_reservation_that_the_client_gave_back_is_made_anew(scene: Scene) -> None:
    """Somebody starts the run by hand with the same inputs; the client has not burned its claim."""
    player, (run,) = scene.player(), scene.sent()
    scene.ledger.reserve([reservation(run)])
    scene.ledger.release(["c-1/0/1"])
    player.play()
    assert [(each.key, each.state) for each in scene.kept()] == [
        ("c-1/0/1", "released"), (f"run-{run.id}", "settled"),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_twins_reserve_once_and_one_settles(scene: Scene, seed: int) -> None:
    scene.ledger.set_caps(day=4 * DOLLAR)
    player, runs = scene.player(seed=seed), scene.sent(3)
    player.play()
    assert len(player.payments) == 2
    assert player.paid_twice() == []
    (entry,) = scene.kept()
    assert (entry.state, entry.charged) == ("settled", 500_000)
    assert entry.run == player.payments[0].run
    assert entry.key in {f"run-{run.id}" for run in runs}


@pytest.mark.parametrize("seed", range(4))
def test_scheduled_runs_and_a_client_share_the_caps(scene: Scene, seed: int) -> None:
    """Five want $4.00 each of $9.00: what is paid stays within what is taken, and that within the cap."""
    scene.ledger.set_caps(day=9 * DOLLAR)
    scene.double.faults.at_random(seed, 0.1, OVERCOME)
    player = scene.player(seed=seed, paid=2.0)
    for _ in range(5):
        scene.scheduled()
    player.play()
    assert scene.double.faults.fired
    assert player.paid_twice() == []
    taken = sum(each.counts or 0 for each in scene.kept())
    really = len(player.payments) * 2 * DOLLAR
    assert really <= taken <= 9 * DOLLAR


def test_a_rerun_is_reserved_when_it_is_authorised(scene: Scene) -> None:
    scene.ledger.set_caps(day=5 * DOLLAR)
    player, (run,) = scene.player(), scene.sent()
    player.play()
    player.rerun(run)
    player.play()
    assert "attempt 2 of this run may not pay" in player.why(run, "Claim")
    assert len(scene.kept()) == 1  # what nobody authorised reserves nothing
    record = read_last_attempt(scene.api, run.id)
    authorise_within_caps(scene.api, record, nonce_of(record))
    assert [(each.key, each.reserved, each.campaign) for each in scene.kept()[1:]] == [
        (f"run-{run.id}-3", 4 * DOLLAR, f"run-{run.id}")
    ]
    player.rerun(run)
    player.play()
    assert run.last.conclusion == "success"
    assert [(each.state, each.charged, each.nonce) for each in scene.kept()] == [
        ("settled", 500_000, run.inputs["nonce"]), ("settled", 500_000, f"{run.inputs['nonce']}-3"),
    ]  # fmt: skip


def test_a_rerun_over_the_cap_is_not_authorised(scene: Scene) -> None:
    player, (run,) = scene.player(), scene.sent()
    scene.ledger.set_caps(campaign=4_400_000)
    player.play()
    record = read_last_attempt(scene.api, run.id)
    with pytest.raises(RefusedError, match=rf"\$4\.00 more would pass the cap of the campaign run-{run.id}, \$4\.40"):
        authorise_within_caps(scene.api, record, nonce_of(record))
    assert not any("reruns" in ref for ref in scene.state.refs)


def lost(scene: Scene, player: Player, run: Run, until: Callable[[], bool]) -> None:
    """Plays until a moment, then the machines of *run* are gone; GitHub goes on with what always runs."""
    while not until():
        assert player.turn()
    player.switch_off(run)
    player.play()
    assert run.last.status == "completed"


def test_a_cell_that_began_and_left_no_record_keeps_its_share(scene: Scene) -> None:
    scene.ledger.set_caps(day=4 * DOLLAR)
    player, run = scene.player(paid=0.5), scene.scheduled()
    lost(scene, player, run, lambda: len(player.payments) == 1)
    # One has paid and one began: what it paid is not known, and half of what was reserved is kept for it.
    assert len(player.payments) == 1
    (entry,) = scene.kept()
    assert entry.state == "settled"
    assert entry.charged is not None
    assert entry.charged >= 500_000


def going(scene: Scene, run: Run, *names: str, **changes: Any) -> None:
    """Adds jobs of *run* that have not ended."""
    for name in names:
        given = {"status": "in_progress", "conclusion": None, "runner": 1, **changes}
        run.last.jobs.append(Job(id=scene.state.number(), name=name, attempt=run.last.number, **given))


def test_cells_that_never_began_cost_nothing(scene: Scene, api: GitHubApi) -> None:
    scene.ledger.set_caps(day=4 * DOLLAR)
    run = scene.scheduled()
    claim = Claim(nonce=f"schedule-{run.id}", run=run.id, attempt=1)
    claim_within_caps(api, claim, Bill(cells=2, reserved=4 * DOLLAR), commit=run.sha)
    going(scene, run, "Results")
    settled = settle_run(api, claim, PLAN, [])
    assert settled is not None
    assert (settled.charged, scene.kept()[0].state) == (0, "settled")


@pytest.mark.parametrize(
    "seen", [("Results", "Paid cell"), ("Paid cell",), ()], ids=["it waits", "alone", "not there yet"]
)
def test_a_single_cell_that_a_replica_behind_shows_as_not_begun_is_not_free(
    scene: Scene, api: GitHubApi, seen: tuple[str, ...]
) -> None:
    """Its job has no handle in its name; it has paid and ended, or the job that settles would not run."""
    scene.ledger.set_caps(day=4 * DOLLAR)
    run = scene.scheduled()
    claim = Claim(nonce=f"schedule-{run.id}", run=run.id, attempt=1)
    claim_within_caps(api, claim, Bill(cells=1, reserved=2 * DOLLAR), commit=run.sha)
    going(scene, run, "Gate", "Plan", "Claim", status="completed", conclusion="success")
    going(scene, run, *seen, status="queued", runner=None)
    settled = settle_run(api, claim, RunPlan(), [])
    assert settled is not None
    assert settled.charged is None
    assert (scene.kept()[0].state, scene.kept()[0].counts) == ("reserved", 2 * DOLLAR)


def test_cells_that_end_before_the_paid_step_cost_nothing(scene: Scene) -> None:
    """The gate of each does not get its answer; the job that settles sees it, while it runs itself."""
    scene.ledger.set_caps(day=4 * DOLLAR)
    player, run = scene.player(), scene.scheduled()
    for _ in IDS:
        scene.double.faults.order("forbidden", "GET", r"attempts/1$", skip=4)
    player.play()
    assert [bool(player.why(run, each)) for each in HANDLES] == [True, True]
    assert player.payments == []
    (entry,) = scene.kept()
    assert (entry.state, entry.charged) == ("settled", 0)


def test_a_claim_that_somebody_removed_is_not_paid_for_again(scene: Scene) -> None:
    scene.ledger.set_caps(day=9 * DOLLAR)
    player, (run,) = scene.player(), scene.sent()
    player.play()
    scene.state.refs = {name: sha for name, sha in scene.state.refs.items() if "claims" not in name}
    again = scene.state.dispatch("paid-campaign.yml", "main", run.inputs, run.actor)
    player.play()
    assert len(player.payments) == 2
    assert f"{run.inputs['nonce']} is settled in the shared ledger" in player.why(again, "Claim")


def test_nothing_is_known_and_all_is_kept(scene: Scene, api: GitHubApi) -> None:
    scene.ledger.set_caps(day=4 * DOLLAR)
    player, run = scene.player(), scene.scheduled()
    while run.last.status != "completed":
        player.turn()
        if len(player.payments) == 2:
            break
    claim = Claim(nonce=f"schedule-{run.id}", run=run.id, attempt=1)
    settled = settle_run(api, claim, PLAN, [])
    assert settled is not None
    assert settled.charged is None
    (entry,) = scene.kept()
    assert (entry.state, entry.reserved, entry.run) == ("reserved", 4 * DOLLAR, run.id)


def test_the_job_that_settles_can_be_run_again(scene: Scene) -> None:
    """It failed since GitHub did not answer; a rerun of it alone settles what the first attempt has paid."""
    scene.ledger.set_caps(day=4 * DOLLAR)
    player, run = scene.player(), scene.scheduled()
    scene.double.faults.order("forbidden", "PUT", "contents", skip=1)
    player.play()
    assert "does not take a change" in player.why(run, "Results")
    assert scene.kept()[0].state == "reserved"
    player.rerun(run, failed_only=True)
    player.play()
    assert (scene.kept()[0].state, scene.kept()[0].charged) == ("settled", 500_000)
    assert len(player.payments) == 2


def test_records_of_an_earlier_attempt_are_not_those_of_a_later_one(scene: Scene) -> None:
    """Both attempts pay; in the second one a cell leaves no record, and the artifacts still have its first."""
    scene.ledger.set_caps(day=9 * DOLLAR)
    player, (run,) = scene.player(), scene.sent()
    player.play()
    record = read_last_attempt(scene.api, run.id)
    authorise_within_caps(scene.api, record, nonce_of(record))
    scene.state.clock.sleep(60)
    player.rerun(run)
    kept: list[Any] = []
    while run.last.status != "completed":
        player.turn()
        kept = run.artifacts
    assert len(kept) == 2
    first, second = (records_in(BytesIO(each.content))[0] for each in kept)
    claim = Claim(nonce=run.inputs["nonce"], run=run.id, attempt=2)
    mixed = [*[each for each in first if each.handle == HANDLES[0]], *[e for e in second if e.handle == HANDLES[1]]]
    settled = settle_run(scene.api, claim, PLAN, mixed)
    assert settled is not None
    # $0.25 are known; the other cell began, and its half of the $4.00 is kept. The run itself knew more.
    assert (settled.joined.actual, settled.joined.kept) == (250_000, 2_000_000)
    assert (settled.charged, scene.kept()[1].charged) == (None, 500_000)


def test_forged_records_do_not_make_the_ledger_unreadable(scene: Scene, api: GitHubApi) -> None:
    """One cell leaves a dozen records of a billion dollars; afterwards everybody can still read what is left."""
    scene.ledger.set_caps(day=100 * DOLLAR)
    run = scene.scheduled()
    claim = Claim(nonce=f"schedule-{run.id}", run=run.id, attempt=1)
    claim_within_caps(api, claim, Bill(cells=2, reserved=4 * DOLLAR), commit=run.sha)
    forged = [
        CellRecord(
            handle=HANDLES[0], campaign=f"c{number}", attempt=1, verdict="passed", cost=10**15, failure=None,
            started="2026-11-30T00:00:00Z", digest=str(number), source="result.json",
        )
        for number in range(12)
    ]  # fmt: skip
    going(scene, run, "Results")
    settled = settle_run(api, claim, PLAN, forged)
    assert settled is not None
    assert settled.charged == MOST_OF_A_CELL
    assert SharedLedger(api).rooms()[0].settled == MOST_OF_A_CELL


def test_a_claim_that_is_burned_just_after_its_cost_was_reserved(scene: Scene) -> None:
    """The reservation would stand for ever: nothing is paid under the nonce, so nobody settles it."""
    scene.ledger.set_caps(day=8 * DOLLAR)
    player, (run,) = scene.player(), scene.sent()
    while not scene.kept():
        assert player.turn()
    assert burn(scene.api, run.inputs["nonce"], commit=run.sha).burned
    player.play()
    assert "was given up" in player.why(run, "Claim")
    assert [each.state for each in scene.kept()] == ["released"]
    assert player.payments == []


def test_the_reservation_of_a_twin_stays_where_the_other_has_the_claim(scene: Scene) -> None:
    scene.ledger.set_caps(day=8 * DOLLAR)
    player, (first, second) = scene.player(), scene.sent(2)
    while not scene.kept():
        assert player.turn()
    (entry,) = scene.kept()
    other = second if entry.key == f"run-{first.id}" else first
    take_claim(scene.api, Claim(nonce=entry.nonce, run=other.id, attempt=1), commit=other.sha)
    player.play()
    assert len(player.payments) == 2
    assert [(each.key, each.state, each.charged) for each in scene.kept()] == [(entry.key, "settled", 500_000)]


def authorised(scene: Scene, run: Run, cost: int | None = None) -> Claim:
    record = read_last_attempt(scene.api, run.id)
    return authorise_within_caps(scene.api, record, nonce_of(record), cost=cost)


def states(scene: Scene) -> list[tuple[str, str]]:
    return [(each.key, each.state) for each in scene.kept()]


def test_what_a_cancelled_run_reserved_and_never_claimed_is_given_back(scene: Scene) -> None:
    """The cap has room for one attempt, and the run was cancelled between its reservation and its claim."""
    scene.ledger.set_caps(day=4 * DOLLAR)
    player, run = scene.player(), scene.scheduled()
    lost(scene, player, run, lambda: bool(scene.kept()))
    assert states(scene) == [(f"run-{run.id}", "reserved")]
    authorised(scene, run)
    assert states(scene) == [(f"run-{run.id}", "released"), (f"run-{run.id}-2", "reserved")]
    player.rerun(run)
    player.play()
    assert len(player.payments) == 2
    assert states(scene)[1:] == [(f"run-{run.id}-2", "settled")]
    assert scene.ledger.spent("day") == 500_000


def test_what_an_authorised_rerun_of_some_jobs_did_not_pay_is_given_back(scene: Scene) -> None:
    """Jobs that were taken over, which have paid, are listed in such an attempt as they were."""
    scene.ledger.set_caps(day=8 * DOLLAR)
    player, run = scene.player(), scene.scheduled()
    scene.double.faults.order("forbidden", "PUT", "contents", skip=1)
    player.play()  # the job that settles has failed
    for attempt in (2, 3):
        authorised(scene, run)
        scene.state.clock.sleep(60)
        player.rerun(run, job="Results")
        player.play()
        assert len(player.payments) == 2, attempt
        assert dict(states(scene))[f"run-{run.id}-{attempt}"] == "reserved"
    authorised(scene, run)
    assert states(scene) == [
        (f"run-{run.id}", "settled"), (f"run-{run.id}-2", "released"), (f"run-{run.id}-3", "released"),
        (f"run-{run.id}-4", "reserved"),
    ]  # fmt: skip


def test_what_may_have_been_paid_is_not_given_back(scene: Scene) -> None:
    """A machine was lost while it paid, nothing was settled, and somebody has removed the claims."""
    scene.ledger.set_caps(day=8 * DOLLAR)
    player, run = scene.player(), scene.scheduled()
    scene.double.faults.order("forbidden", "PUT", "contents", skip=1)
    player.play()
    assert player.payments
    scene.state.refs = {name: sha for name, sha in scene.state.refs.items() if "claims" not in name}
    authorised(scene, run)
    assert states(scene) == [(f"run-{run.id}", "reserved"), (f"run-{run.id}-2", "reserved")]


def test_what_goes_on_is_not_given_back(scene: Scene) -> None:
    player, run = scene.player(), scene.scheduled()
    scene.ledger.set_caps(day=8 * DOLLAR)
    while not scene.kept():
        assert player.turn()
    authorised(scene, run)
    assert states(scene) == [(f"run-{run.id}", "reserved"), (f"run-{run.id}-2", "reserved")]


def test_the_reservation_of_twins_is_given_back_only_where_no_twin_can_pay_from_it(scene: Scene) -> None:
    scene.ledger.set_caps(day=12 * DOLLAR)
    player, runs = scene.player(), scene.sent(2)
    while not scene.kept():
        assert player.turn()
    (entry,) = scene.kept()
    run = next(each for each in runs if entry.key == f"run-{each.id}")
    player.switch_off(run)
    while run.last.status != "completed":
        assert player.turn()
    assert not any("claims" in ref for ref in scene.state.refs)
    authorised(scene, run)  # which takes the claim for it
    assert states(scene) == [(entry.key, "reserved"), (f"{entry.key}-2", "reserved")]
    authorised(scene, run)
    assert states(scene) == [(entry.key, "released"), (f"{entry.key}-2", "reserved")]


def test_another_amount_for_an_authorised_attempt_is_refused(scene: Scene) -> None:
    scene.ledger.set_caps(day=9 * DOLLAR)
    player, run = scene.player(), scene.scheduled()
    player.play()
    authorised(scene, run, DOLLAR)
    assert authorised(scene, run).attempt == 2
    with pytest.raises(RefusedError, match=r"authorised already, with \$1\.00 reserved for it"):
        authorised(scene, run, 4 * DOLLAR)
    player.rerun(run)
    player.play()
    why = player.why(run, "Claim")
    assert "this run may cost $4.00, and $1.00 are reserved" in why
    assert f"authorise-rerun {run.id} --cost 4.00" in why
    # It paid nothing, so it takes nothing of the cap.
    assert authorised(scene, run, 4 * DOLLAR).attempt == 3
    assert states(scene)[1:] == [(f"run-{run.id}-2", "released"), (f"run-{run.id}-3", "reserved")]


def test_a_run_that_paid_while_the_ledger_was_made_counts_in_it(scene: Scene) -> None:
    player, run = scene.player(), scene.scheduled()
    while not player.payments:
        assert player.turn()
    scene.ledger.set_caps(day=4 * DOLLAR)
    player.play()
    (entry,) = scene.kept()
    assert (entry.key, entry.nonce, entry.reserved) == (f"run-{run.id}", f"schedule-{run.id}", None)
    assert (entry.state, entry.charged, entry.cells, entry.run) == ("settled", 500_000, 2, run.id)


def test_who_knows_less_does_not_write_over_what_is_settled(scene: Scene) -> None:
    """The job that settles is run again when the artifacts are gone."""
    scene.ledger.set_caps(day=20 * DOLLAR)
    player, run = scene.player(paid=3.0), scene.scheduled()
    player.play()
    claim = Claim(nonce=f"schedule-{run.id}", run=run.id, attempt=1)
    records = records_in(BytesIO(run.artifacts[0].content))[0]
    for left, charged in ((records, 6 * DOLLAR), (records[:1], None), ([], None)):
        settled = settle_run(scene.api, claim, PLAN, left, inside=False)
        assert settled is not None
        assert settled.charged == charged
        assert scene.kept()[0].charged == 6 * DOLLAR


def test_a_second_claim_of_a_run_does_not_write_over_its_reservation(scene: Scene, api: GitHubApi) -> None:
    scene.ledger.set_caps(day=8 * DOLLAR)
    run = scene.scheduled()
    bill = Bill(cells=1, reserved=DOLLAR)
    claim_within_caps(api, Claim(nonce=f"manual-{run.id}", run=run.id, attempt=1), bill, commit=run.sha)
    before = scene.kept()
    with pytest.raises(RefusedError, match=rf"run-{run.id} stands in the shared ledger for another nonce already"):
        claim_within_caps(api, Claim(nonce="other", run=run.id, attempt=1), bill, commit=run.sha)
    assert scene.kept() == before
    assert "refs/runner-e2e/claims/other" not in scene.state.refs


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_started_again_or_lost_no_payment_is_free_and_none_is_made_twice(scene: Scene, seed: int) -> None:
    """Runs are lost, started again in every way, and authorised at any moment; the API fails now and then."""
    chance = random.Random(seed)
    scene.ledger.set_caps(day=24 * DOLLAR)
    player = scene.player(seed=seed)
    runs = [scene.scheduled(), *scene.sent(2), scene.scheduled()]
    scene.double.faults.at_random(seed, 0.03, OVERCOME)
    for _ in range(120):
        for _ in range(chance.randrange(1, 30)):
            player.turn()
        run = chance.choice(runs)
        action = chance.randrange(4)
        over = run.last.status == "completed"
        scene.state.clock.sleep(1)
        if action == 0 and not over:
            player.switch_off(run)
        elif action == 1:
            with suppress(RunnerE2EError):
                authorised(scene, run)
        elif action == 2 and over:
            player.rerun(run, failed_only=chance.random() < 0.5)
        elif action == 3 and over and run.last.jobs:
            player.rerun(run, job=chance.choice(run.last.jobs).name)
    scene.double.faults.at_random(seed, 0.0, OVERCOME)
    player.play()
    assert player.paid_twice() == []
    assert player.payments
    taken = Counter[str]()
    for entry in scene.kept():
        taken[entry.nonce] += entry.counts or 0
    for nonce, cells in Counter(each.authorisation for each in player.payments).items():
        assert taken[nonce] >= cells * DOLLAR // 4, (nonce, scene.kept())
    assert sum(taken.values()) <= 24 * DOLLAR


@pytest.mark.parametrize(
    ("largest", "paid", "charged"),
    [
        # One of them was dear; nobody but the plan knows which, and it may be the one that left no record.
        (9 * DOLLAR, [DOLLAR // 4], 9 * DOLLAR + DOLLAR // 4),
        (2 * DOLLAR, [DOLLAR // 4], 2 * DOLLAR + DOLLAR // 4),
        (9 * DOLLAR, [3 * DOLLAR, DOLLAR // 4], 3 * DOLLAR + DOLLAR // 4),
        # Of an older workflow.
        (None, [DOLLAR // 4], 10 * DOLLAR + DOLLAR // 4),
    ],
    ids=["the dear one is lost", "all alike", "all known", "not told"],
)
def test_a_cell_of_unknown_cost_keeps_what_the_dearest_may_cost(
    scene: Scene, api: GitHubApi, largest: int | None, paid: list[int], charged: int
) -> None:
    scene.ledger.set_caps(day=20 * DOLLAR)
    run = scene.scheduled()
    claim = Claim(nonce=f"schedule-{run.id}", run=run.id, attempt=1)
    claim_within_caps(api, claim, Bill(cells=2, reserved=10 * DOLLAR, largest=largest), commit=run.sha)
    going(scene, run, *HANDLES, status="completed", conclusion="success")
    going(scene, run, "Results")
    records = [
        CellRecord(
            handle=name, campaign="c", attempt=1, verdict="passed", cost=cost, failure=None,
            started="2026-11-30T00:00:00Z", digest=name, source="result.json",
        )
        for name, cost in zip(HANDLES, paid, strict=False)
    ]  # fmt: skip
    settled = settle_run(api, claim, RunPlan(handles=HANDLES, largest=largest), records)
    assert settled is not None
    assert (settled.charged, scene.ledger.spent("day")) == (charged, charged)
