"""No cell is paid for twice, none is lost and no cap is passed, whatever breaks and wherever the client is killed.

``RUNNER_E2E_SCHEDULES=5000 pytest tests/dispatch/campaigns`` plays more, and
``python -m tests.dispatch.campaigns --seed N`` the one that went wrong, step by step.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.dispatch.campaigns.schedule import DISPATCHES, Hold, Kill, Order, Schedule, draw
from tests.dispatch.campaigns.simulation import play

if TYPE_CHECKING:
    from tests.dispatch.campaigns.nursery import Nursery

NUMBER = int(os.environ.get("RUNNER_E2E_SCHEDULES", "500"))
AT_ONCE = 20

# Each has other steps to die at.
SCENES = {
    "all is well": Schedule(seed=1, cells=(3,), per_shard=2),
    "no reply, and a run": Schedule(
        seed=2, cells=(1,), orders=(Order(fault="done-502", verb="POST", path=DISPATCHES, skip=0),), listing_delay=45.0
    ),
    "no reply, and no run": Schedule(
        seed=3, cells=(1,), orders=(Order(fault="lost-hang-up", verb="POST", path=DISPATCHES, skip=0),)
    ),
    "twins, the older one late": Schedule(
        seed=4, cells=(1,), orders=(Order(fault="duplicate", verb="POST", path=DISPATCHES, skip=0),),
        holds=(Hold(run=0, seconds=400.0),), decoys=1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("first", range(0, NUMBER, AT_ONCE))
def test_schedules(nursery: Nursery, first: int) -> None:
    wrong: dict[int, list[str]] = {}
    kills: Counter[str] = Counter()
    for seed in range(first, min(first + AT_ONCE, NUMBER)):
        outcome = play(draw(seed), nursery)
        kills += outcome.kills
        if outcome.problems:
            wrong[seed] = outcome.problems
    told = "\n".join(f"python -m tests.dispatch.campaigns --seed {seed}\n  {found}" for seed, found in wrong.items())
    assert not wrong, told
    assert kills.total() >= AT_ONCE / 4


@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_at_every_boundary(nursery: Nursery, scene: str) -> None:
    """Each step of a whole campaign is the last one of the first client once; the second client does the rest."""
    schedule = SCENES[scene]
    calm = play(schedule, nursery)
    assert calm.problems == []
    boundaries = [number for number, name in enumerate(calm.boundaries[0], start=1) if not _changes_nothing(name)]
    assert len(boundaries) >= 40
    reached = 0
    for number in boundaries:
        kill = Kill(operator=0, life=0, how="boundary", at=number)
        outcome = play(replace(schedule, kills=(kill,)), nursery)
        assert outcome.problems == [], (number, calm.boundaries[0][number - 1])
        reached += outcome.kills.total()
    assert reached == len(boundaries)


@pytest.mark.parametrize("seed", [5, 59, 157])
def test_a_number_plays_the_same_way_again(nursery: Nursery, seed: int) -> None:
    first, second = (play(draw(seed), nursery) for _ in range(2))
    assert first.trace == second.trace
    assert len(first.trace) > 40


def _changes_nothing(boundary: str) -> bool:
    """Whether a kill there finds what the one before it finds: a read that is over, and the count of calls."""
    return boundary.startswith("after GET ") or boundary.endswith("COMMIT rates")
