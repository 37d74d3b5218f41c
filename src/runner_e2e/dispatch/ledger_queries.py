"""Reads the ledger's tables into records. Nothing here changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runner_e2e.dispatch.ledger_records import CampaignState, CellState, Event, ShardState, Totals
from runner_e2e.dispatch.shard_states import HOLDING, STATES

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

__all__ = ["campaign_number", "campaigns", "cells", "committed", "events", "shard", "shards"]

_CAMPAIGN_FIELDS: Final = (
    "id", "digest", "created_at", "repository", "workflow", "target", "key_id", "max_cost", "retries", "assumed_cost",
    "assumed_cells", "added_at", "started_at", "cancel_asked_at", "repository_id",
)  # fmt: skip
_CAMPAIGNS: Final = f"SELECT number, {', '.join(_CAMPAIGN_FIELDS)} FROM campaigns"
_SHARD_FIELDS: Final = (
    "index", "round", "state", "version", "nonce", "sealed", "cells", "expected", "reserved", "actual", "kept", "run",
    "attempt", "hinted_run", "intended_at", "sent_at", "changed_at", "note",
)  # fmt: skip
_SHARDS: Final = (
    f"SELECT c.id, {', '.join('s.position' if name == 'index' else f's.{name}' for name in _SHARD_FIELDS)} "
    "FROM shards s JOIN campaigns c ON c.number = s.campaign WHERE c.id = ?"
)
_HOLDING: Final = ", ".join(f"'{state}'" for state in sorted(HOLDING))
_COMMITTED: Final = (
    f"CASE WHEN state IN ({_HOLDING}) THEN reserved WHEN state = 'settled' THEN actual + kept ELSE 0 END"
)


def campaign_number(database: sqlite3.Connection, campaign: str) -> int | None:
    """The row of the campaign with the id *campaign*."""
    row = database.execute("SELECT number FROM campaigns WHERE id = ?", (campaign,)).fetchone()
    return int(row[0]) if row else None


def campaigns(database: sqlite3.Connection, campaign: str | None = None) -> tuple[CampaignState, ...]:
    """All campaigns, the newest first, or the one with the id *campaign*."""
    if campaign is None:
        rows = database.execute(f"{_CAMPAIGNS} ORDER BY number DESC").fetchall()
    else:
        rows = database.execute(f"{_CAMPAIGNS} WHERE id = ?", (campaign,)).fetchall()
    totals = _totals(database, None if campaign is None else [row[0] for row in rows])
    return tuple(
        CampaignState(**dict(zip(_CAMPAIGN_FIELDS, row[1:], strict=True)), totals=totals[row[0]]) for row in rows
    )


def _totals(database: sqlite3.Connection, numbers: list[int] | None) -> dict[int, Totals]:
    where = "" if numbers is None else f"WHERE campaign IN ({', '.join('?' * len(numbers))})"
    rows = database.execute(
        "SELECT campaign, state, count(*), sum(cells), sum(expected), sum(reserved), sum(actual), sum(kept), "
        f"sum({_COMMITTED}) FROM shards {where} GROUP BY campaign, state",
        numbers or (),
    )
    parts: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        parts.setdefault(row[0], []).append(row[1:])
    return {number: _total(found) for number, found in parts.items()}


def _total(parts: list[tuple[Any, ...]]) -> Totals:
    shards_, cells_, expected, reserved, actual, kept, held = (
        sum(part[column] or 0 for part in parts) for column in range(1, 8)
    )
    states = tuple(sorted(((part[0], part[1]) for part in parts), key=lambda each: STATES.index(each[0])))
    return Totals(
        shards=shards_,
        cells=cells_,
        expected=expected,
        reserved=reserved,
        committed=held,
        actual=actual,
        kept=kept,
        states=states,
    )


def committed(database: sqlite3.Connection, number: int) -> int:
    """What of the campaign in row *number* counts against its cap now, in micro-dollars."""
    row = database.execute(f"SELECT sum({_COMMITTED}) FROM shards WHERE campaign = ?", (number,)).fetchone()
    return int(row[0] or 0)


def shards(database: sqlite3.Connection, campaign: str) -> tuple[ShardState, ...]:
    """The shards of a campaign in their order."""
    return _shards(database.execute(f"{_SHARDS} ORDER BY s.position", (campaign,)))


def shard(database: sqlite3.Connection, campaign: str, index: int) -> ShardState:
    """One shard, which exists."""
    return _shards(database.execute(f"{_SHARDS} AND s.position = ?", (campaign, index)))[0]


def _shards(rows: Iterable[tuple[Any, ...]]) -> tuple[ShardState, ...]:
    return tuple(ShardState(campaign=row[0], **dict(zip(_SHARD_FIELDS, row[1:], strict=True))) for row in rows)


def cells(database: sqlite3.Connection, number: int, index: int | None) -> Iterator[CellState]:
    """The cells of a campaign by shard and handle, or those of one shard."""
    where, values = ("", [number]) if index is None else ("AND position = ?", [number, index])
    rows = database.execute(
        "SELECT handle, position, expected, reserved, verdict, actual, kept, attempts, note FROM cells "
        f"WHERE campaign = ? {where} ORDER BY position, handle",
        values,
    )
    for name, position, expected, reserved, verdict, actual, kept, attempts, note in rows:
        yield CellState(
            handle=name,
            shard=position,
            expected=expected,
            reserved=reserved,
            verdict=verdict,
            actual=actual,
            kept=kept,
            attempts=attempts,
            note=note,
        )


def events(database: sqlite3.Connection, campaign: str) -> Iterator[Event]:
    """What happened in a campaign, in its order."""
    rows = database.execute(
        "SELECT e.number, e.at, e.position, e.round, e.before, e.after, e.nonce, e.run, e.committed, e.process, e.note "
        "FROM events e JOIN campaigns c ON c.number = e.campaign WHERE c.id = ? ORDER BY e.number",
        (campaign,),
    )
    for number, at, position, round_, before, after, nonce, run, held, process, note in rows:
        yield Event(
            number=number,
            at=at,
            campaign=campaign,
            shard=position,
            round=round_,
            before=before,
            after=after,
            nonce=nonce,
            run=run,
            committed=held,
            process=process,
            note=note,
        )
