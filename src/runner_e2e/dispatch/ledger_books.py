"""Whether the ledger's books agree, before anybody acts on them.

SQLite notices a page that is no page, not a digit that changed on the disk or was edited by hand. But everything stands
twice: the plan under its digest, every state as the sum of its events. Where the two differ, nothing may be sent.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from runner_e2e.dispatch.campaign import Campaign, PlannedCell, PlannedShard
from runner_e2e.dispatch.ledger_errors import damaged
from runner_e2e.dispatch.ledger_queries import campaigns, events, shards
from runner_e2e.dispatch.shard_states import STATES, may_move

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from runner_e2e.dispatch.ledger_records import CampaignState, Event, ShardState

__all__ = ["check_books"]


def check_books(database: sqlite3.Connection, path: Path, campaign: str) -> None:
    """Compares what stands twice in *campaign*, which exists.

    Raises :class:`~runner_e2e.dispatch.ledger_errors.LedgerError` with the first thing that does not agree.
    """
    (planned,) = campaigns(database, campaign)
    found = next(_differences(database, planned), None)
    if found:
        raise damaged(path, f"its books do not agree: {found}")


def _differences(database: sqlite3.Connection, planned: CampaignState) -> Iterator[str]:
    held = shards(database, planned.id)
    if _replanned(database, planned, held).digest != planned.digest:
        yield f"the plan of {planned.id} is not the one whose digest it has"
    happened: dict[int | None, list[Event]] = {}
    for event in events(database, planned.id):
        happened.setdefault(event.shard, []).append(event)
    for shard in held:
        yield from _of_shard(shard, happened.get(shard.index, ()))
    if set(happened) - {None, *(shard.index for shard in held)}:
        yield f"{planned.id} has events of a shard that is not there"
    yield from _of_nonces(database, planned.id, held)
    yield from _of_cells(database, planned.id, {shard.index: shard for shard in held})


def _replanned(database: sqlite3.Connection, planned: CampaignState, held: Iterable[ShardState]) -> Campaign:
    """The campaign as it was planned, put together from the tables."""
    rows = database.execute(
        "SELECT position, handle, expected, reserved FROM cells "
        "WHERE campaign = (SELECT number FROM campaigns WHERE id = ?) ORDER BY position",
        (planned.id,),
    )
    cells = {
        position: tuple(PlannedCell(handle=row[1], expected=row[2], reserved=row[3]) for row in group)
        for position, group in groupby(rows, key=lambda row: row[0])
    }
    return Campaign(
        id=planned.id,
        created_at=planned.created_at,
        repository=planned.repository,
        workflow=planned.workflow,
        target=planned.target,
        key_id=planned.key_id,
        max_cost=planned.max_cost,
        retries=planned.retries,
        assumed_cost=planned.assumed_cost,
        assumed_cells=planned.assumed_cells,
        shards=tuple(
            PlannedShard(index=shard.index, cells=cells.get(shard.index, ()), sealed=shard.sealed) for shard in held
        ),
    )


def _of_shard(shard: ShardState, happened: Iterable[Event]) -> Iterator[str]:
    """Follows the events of a shard to the state that it should be in."""
    state, last, number = STATES[0], None, 0
    for number, event in enumerate(happened, start=1):  # noqa: B007 - their number is the version
        after = next((each for each in STATES if each == event.after), None)
        if after is None or event.before != state or not may_move(state, after):
            yield f"event {event.number} moves {shard.key} from {event.before!r} to {event.after!r}; it was {state!r}"
            return
        state, last = after, event
    if (state, number + 1) != (shard.state, shard.version):
        yield f"{shard.key} is {shard.state!r} (change {shard.version}); its events say {state!r} (change {number + 1})"
    elif last and (last.round, last.nonce, last.run, last.committed) != (
        shard.round,
        shard.nonce,
        shard.run,
        shard.committed,
    ):
        yield f"{shard.key} has another round, nonce, run or cost than its last event says"


def _of_nonces(database: sqlite3.Connection, campaign: str, held: Iterable[ShardState]) -> Iterator[str]:
    rows = database.execute(
        "SELECT nonce, position, round FROM nonces WHERE campaign = (SELECT number FROM campaigns WHERE id = ?)",
        (campaign,),
    )
    made = set(rows)
    for shard in held:
        if shard.nonce is not None and (shard.nonce, shard.index, shard.round) not in made:
            yield f"the nonce of {shard.key} was never made"


def _of_cells(database: sqlite3.Connection, campaign: str, held: dict[int, ShardState]) -> Iterator[str]:
    rows = database.execute(
        "SELECT position, count(*), sum(expected), sum(reserved), count(verdict), sum(coalesce(actual, 0)), sum(kept) "
        "FROM cells WHERE campaign = (SELECT number FROM campaigns WHERE id = ?) GROUP BY position",
        (campaign,),
    )
    for position, number, expected, reserved, judged, actual, kept in rows:
        shard = held[position]
        settled = shard.state == "settled"
        if (number, expected, reserved) != (shard.cells, shard.expected, shard.reserved):
            yield f"the cells of {shard.key} are planned at another sum than the shard"
        elif judged != (number if settled else 0) or actual > (shard.actual or 0) or kept > shard.kept:
            yield f"the cells of {shard.key} cost another sum than the shard"
