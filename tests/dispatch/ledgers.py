"""Campaigns and outcomes that the tests of the ledger share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner_e2e.dispatch.campaign import Campaign, PlannedCell, PlannedShard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import ShardState
    from runner_e2e.dispatch.shard_states import State

# Where nothing is cut off, nothing need wait for a disk.
MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None

CAMPAIGN = "c-20260101t000000z-00000000"


class Clock:
    """A second passes with each look."""

    def __init__(self, start: float = 1_767_225_600.0) -> None:
        self.time = start

    def __call__(self) -> float:
        self.time += 1
        return self.time


def planned(*sizes: int, cost: int = 100, retries: int = 1, **changes: Any) -> Campaign:
    """A campaign with a shard for each of *sizes*; a cell costs *cost* micro-dollars an attempt."""
    handles = count()
    shards = tuple(
        PlannedShard(
            index=index,
            cells=tuple(
                PlannedCell(handle=f"cell-{next(handles):016x}", expected=cost, reserved=cost * (1 + retries))
                for _ in range(size)
            ),
            sealed=f"sealed1.00000000.shard{index}",
        )
        for index, size in enumerate(sizes)
    )
    fixed: dict[str, Any] = {
        "id": CAMPAIGN,
        "created_at": "2026-01-01T00:00:00Z",
        "repository": "octo/evals",
        "target": "main",
        "key_id": "00000000",
        "max_cost": None,
        "retries": retries,
    }
    return Campaign(**{**fixed, **changes}, shards=shards)


def nonce(number: int) -> str:
    return f"20260101t000000z-{number:016x}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    handle: str
    verdict: str = "passed"
    actual: int | None = 70
    kept: int = 0
    attempts: int = 1
    note: str = ""


def outcomes(ledger: Ledger, shard: ShardState, **changes: Any) -> list[Outcome]:
    """One outcome for each cell of *shard*."""
    return [Outcome(handle=cell.handle, **changes) for cell in ledger.cells(shard.campaign, shard.index)]


_numbers = count(1)

PATHS: dict[State, tuple[State, ...]] = {
    "planned": (),
    "reserved": ("reserved",),
    "sending": ("reserved", "sending"),
    "sent": ("reserved", "sending", "sent"),
    "unknown": ("reserved", "sending", "unknown"),
    "running": ("reserved", "sending", "sent", "running"),
    "ended": ("reserved", "sending", "sent", "running", "ended"),
    "settled": ("reserved", "sending", "sent", "running", "ended", "settled"),
    "unpaid": ("reserved", "sending", "unpaid"),
    "stuck": ("reserved", "sending", "unknown", "stuck"),
    "cancelled": ("cancelled",),
}
"""One way from ``planned`` to each state."""


def bring(ledger: Ledger, shard: ShardState, states: Iterable[State]) -> ShardState:
    """Moves *shard* through *states*, with what each needs."""
    for state in states:
        if state == "settled":
            shard = ledger.settle(shard, outcomes(ledger, shard))
        else:
            fresh = nonce(next(_numbers)) if state == "reserved" and shard.state != "sending" else None
            run = 7 if state in {"running", "ended"} and shard.run is None else None
            shard = ledger.move(shard, state, nonce=fresh, run=run)
    return shard
