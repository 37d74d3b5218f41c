"""What the table of moves must be like, whatever is changed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dispatch.ledgers import PATHS

from runner_e2e.dispatch.shard_states import (
    FINAL,
    HOLDING,
    IN_DOUBT,
    MEANINGS,
    MOVES,
    STATES,
    State,
    is_final,
    may_move,
)

if TYPE_CHECKING:
    from collections.abc import Collection


def reachable(start: State, *, without: Collection[State] = ()) -> set[State]:
    """The states that moves lead to from *start*, where no way goes on from those in *without*."""
    found: set[State] = set()
    left: list[State] = [start]
    while left:
        state = left.pop()
        for after in MOVES[state] - found:
            found.add(after)
            if after not in without:
                left.append(after)
    return found


def test_every_state_is_described_and_has_its_moves() -> None:
    assert set(MOVES) == set(MEANINGS) == set(STATES) == set(PATHS)
    assert all(after in STATES for moves in MOVES.values() for after in moves)
    assert reachable("planned") | {"planned"} == set(STATES)


def test_every_state_counts_its_money_in_one_way() -> None:
    assert set(STATES) == HOLDING | FINAL | {"planned"}
    assert not HOLDING & FINAL
    assert IN_DOUBT < HOLDING


@pytest.mark.parametrize("state", ["sending", "sent", "unknown", "running", "ended", "stuck"])
def test_what_may_be_paid_is_sent_again_only_over_unpaid(state: State) -> None:
    """The one way back to another request is the proof that nothing can be paid, or that nothing left the client."""
    assert "reserved" not in MOVES[state] or state == "sending"
    without_proof = reachable(state, without={"unpaid", "reserved"})
    assert not {"planned", "sending", "cancelled"} & without_proof


@pytest.mark.parametrize("state", ["running", "ended"])
def test_a_run_that_may_have_paid_is_never_called_unpaid_but_by_a_person(state: State) -> None:
    assert "unpaid" not in reachable(state, without={"stuck"})


def test_nothing_is_sent_without_a_reservation() -> None:
    before_sending = {state for state in STATES if may_move(state, "sending")}
    assert before_sending == {"reserved"}
    assert {state for state in STATES if may_move(state, "settled")} == {"ended", "stuck"}


def test_a_person_can_always_end_it() -> None:
    for state in STATES:
        assert is_final(state) or reachable(state) & FINAL, state
    for state in HOLDING:
        assert "stuck" in MOVES[state], state


def test_what_is_settled_or_cancelled_stays() -> None:
    assert not MOVES["settled"]
    assert not MOVES["cancelled"]
    assert MOVES["unpaid"] == {"reserved", "cancelled"}
