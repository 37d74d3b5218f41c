"""The schedules tell clients with one mistake from the client: tests of the tests.

Where the client has changed so that a mutant is not caught by its schedules any more, others catch it:
``python -m tests.dispatch.campaigns --seeds 0-300 --mutant NAME``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dispatch.campaigns.mutants import MUTANTS
from tests.dispatch.campaigns.schedule import draw
from tests.dispatch.campaigns.simulation import play

if TYPE_CHECKING:
    from tests.dispatch.campaigns.nursery import Nursery

# These are stopped by the ledger itself, which holds the call to be a defect.
STOPPED_BY_THE_LEDGER = {"reuse-a-nonce"}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(nursery: Nursery, name: str) -> None:
    for seed in MUTANTS[name].seeds:
        problems = play(draw(seed), nursery, mutant=name).problems
        by_defect = [each for each in problems if "ended with a defect" in each]
        if by_defect if name in STOPPED_BY_THE_LEDGER else len(by_defect) < len(problems):
            return
    pytest.fail(f"a client that {MUTANTS[name].mistake} passes the schedules {MUTANTS[name].seeds}")


@pytest.mark.parametrize("seed", sorted({seed for each in MUTANTS.values() for seed in each.seeds}))
def test_the_client_itself_passes_the_same_schedules(nursery: Nursery, seed: int) -> None:
    assert play(draw(seed), nursery).problems == []


def test_there_are_many() -> None:
    assert len(MUTANTS) >= 20
