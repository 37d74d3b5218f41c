"""The states of a shard and the moves between them: a table without any deed.

A shard is one dispatch and the run that comes of it. The table holds what may follow what; the ledger refuses every
other move, so a mistake of the client cannot send twice or forget a reservation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FINAL", "HOLDING", "IN_DOUBT", "MEANINGS", "MOVES", "STATES", "State", "is_final", "may_move"]

State = Literal[
    "planned",
    "reserved",
    "sending",
    "sent",
    "unknown",
    "running",
    "ended",
    "settled",
    "unpaid",
    "stuck",
    "cancelled",
]
STATES: Final[tuple[State, ...]] = get_args(State)

MEANINGS: Final[Mapping[State, str]] = {
    "planned": "nothing is reserved and nothing was sent",
    "reserved": "its cost is reserved and its nonce made; nothing was sent",
    "sending": "the intent is written; the one request may be on its way",
    "sent": "GitHub took the request; no run is known yet to hold the claim",
    "unknown": "the request may or may not have arrived; its run is being looked for",
    "running": "the run that holds the claim is known and not over",
    "ended": "that run is over; its results are not joined yet",
    "settled": "the reservation became the actual cost, and what is unknown kept its part",
    "unpaid": "nothing was paid under its nonce, and nothing ever can be",
    "stuck": "a person must decide; the reservation stands",
    "cancelled": "given up before anything was sent, or after it was proven that nothing was paid",
}

MOVES: Final[Mapping[State, frozenset[State]]] = {
    "planned": frozenset({"reserved", "cancelled"}),
    # Back to planned and cancelled release the reservation; reserved again is a fresh nonce in place of an old one.
    "reserved": frozenset({"reserved", "planned", "sending", "cancelled", "stuck"}),
    # Back to reserved only where it is certain that GitHub did nothing: no connection was made, or it said no.
    "sending": frozenset({"reserved", "sent", "unknown", "running", "unpaid", "stuck"}),
    # Never back from here: the request may be out, so only what proves that nothing can be paid leads to a second one.
    "sent": frozenset({"sent", "unknown", "running", "unpaid", "stuck"}),
    "unknown": frozenset({"unknown", "sent", "running", "unpaid", "stuck"}),
    # A run that holds the claim may have paid: it is settled, never called unpaid.
    "running": frozenset({"running", "ended", "stuck"}),
    # Back to running: an authorised rerun makes a new attempt of the same run.
    "ended": frozenset({"ended", "running", "settled", "stuck"}),
    "unpaid": frozenset({"reserved", "cancelled"}),
    "stuck": frozenset({"stuck", "unknown", "running", "ended", "settled", "unpaid"}),
    "settled": frozenset(),
    "cancelled": frozenset(),
}
"""What may follow each state. A state that follows itself changes a field of it (a note, a run's id)."""

FINAL: Final[frozenset[State]] = frozenset({"settled", "unpaid", "cancelled"})
"""Nothing happens any more by itself; ``unpaid`` is sent again only when a person asks."""

HOLDING: Final[frozenset[State]] = frozenset({"reserved", "sending", "sent", "unknown", "running", "ended", "stuck"})
"""The whole reservation counts against the budget."""

IN_DOUBT: Final[frozenset[State]] = frozenset({"sending", "sent", "unknown"})
"""Sent or perhaps sent, and no run is known to hold the claim."""


def is_final(state: State) -> bool:
    """Whether a watching client is done with a shard in *state*."""
    return state in FINAL


def may_move(before: State, after: State) -> bool:
    """Whether *after* may follow *before*."""
    return after in MOVES[before]
