"""Two copies of one ledger, which do not know of one another: what the second one may not do."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tests.dispatch.client_scene import ClientScene
from tests.github_double.crash import CrashError

from runner_e2e.dispatch.shared_ledger import SharedLedger
from runner_e2e.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.github_double.server import Server


@pytest.fixture
def scene(double: Server, tmp_path: Path) -> ClientScene:
    return ClientScene(double, tmp_path / "scene")


def _copy(scene: ClientScene, name: str = "copy.sqlite") -> None:
    """What a backup holds, or a second name of the file: the same ledger, with locks of its own."""
    shutil.copyfile(scene.directory / "ledger.sqlite", scene.directory / name)


@pytest.mark.parametrize("until", ["started", "watched"])
def test_a_copy_made_before_the_start_sends_nothing(scene: ClientScene, until: str) -> None:
    campaign = scene.plan()
    with scene.ledger() as ledger:
        ledger.add(campaign)
    _copy(scene)
    scene.playing = until == "watched"
    with scene.client() as client:
        client.start(campaign)
        if until == "watched":
            client.watch(campaign.id)
    with scene.client(ledger="copy.sqlite") as client, pytest.raises(RefusedError) as caught:
        client.start(campaign)
    assert "another copy of this ledger" in caught.value.problem.why
    scene.playing = True
    scene.player.play()
    assert len(scene.player.payments) == 3
    assert len(scene.dispatches()) == 1


def test_a_copy_made_before_it_was_sent_again(scene: ClientScene) -> None:
    """The copy knows the first nonce alone, which was given up since, and would send the cells once more."""
    campaign = scene.plan()
    scene.double.faults.order("lost-502", "POST", "/dispatches$")
    with scene.client() as client:
        client.start(campaign)
    _copy(scene)
    with scene.client() as client:
        client.resolve(campaign.id)
        client.resolve(campaign.id, send_again=[0])
    with scene.client(ledger="copy.sqlite") as client:
        client.resolve(campaign.id)
        with pytest.raises(RefusedError, match="under a nonce that this ledger never made"):
            client.resolve(campaign.id, send_again=[0])
    scene.player.play()
    assert len(scene.player.payments) == 3


def test_to_cancel_a_copy_gives_nothing_back_that_the_other_has_reserved(scene: ClientScene) -> None:
    campaign = scene.plan()
    with scene.ledger() as ledger:
        ledger.add(campaign)
    _copy(scene)
    scene.playing = False
    with scene.client() as client:
        client.start(campaign)
    with scene.client(ledger="copy.sqlite") as client:
        with pytest.raises(RefusedError):
            client.start(campaign)
        client.cancel(campaign.id)
    (entry,) = SharedLedger(scene.api()).entries(campaign.id)
    assert (entry.state, entry.counts) == ("reserved", 3_000_000)


def test_a_nonce_that_the_ledger_made_earlier_is_its_own(scene: ClientScene) -> None:
    campaign = scene.plan()
    scene.playing = False
    with pytest.raises(CrashError), scene.client(crash_at=9, sent=True) as client:
        client.start(campaign)
    before = {entry.nonce for entry in SharedLedger(scene.api()).entries(campaign.id)}
    scene.state.clock.sleep(86_400)
    scene.playing = True
    scene.run(campaign)
    scene.check(campaign)
    assert before.isdisjoint(scene.dispatches())
