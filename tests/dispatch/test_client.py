"""The client against a double whose runs claim, pay and leave results: each cell is paid for once, and said to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dispatch.client_scene import ClientScene

if TYPE_CHECKING:
    from pathlib import Path

    from tests.github_double.server import Server


@pytest.fixture
def scene(double: Server, tmp_path: Path) -> ClientScene:
    return ClientScene(double, tmp_path)


def test_a_campaign_without_trouble(scene: ClientScene) -> None:
    scene.shards = 3
    campaign = scene.plan()
    scene.run(campaign)
    scene.check(campaign)
    assert scene.states(campaign) == ["settled"] * 3
    assert len(scene.player.payments) == 3
    assert [shard.actual for shard in scene.found(campaign)] == [500_000] * 3
    assert len(scene.double.requests("POST", "/dispatches")) == 3
    assert [each.kind for each in scene.events if each.kind not in {"round", "waiting"}].count("settled") == 3
