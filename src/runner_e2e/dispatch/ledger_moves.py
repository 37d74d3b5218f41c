"""Moves of a shard, inside the caller's transaction: what is legal, what it needs, what it leaves behind."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from runner_e2e.cells.sealed import is_nonce
from runner_e2e.dispatch.ledger_queries import campaign_number, committed, shard
from runner_e2e.dispatch.money import BudgetError, usd
from runner_e2e.dispatch.shard_states import MOVES, may_move
from runner_e2e.errors import DefectError, RefusedError

if TYPE_CHECKING:
    import sqlite3

    from runner_e2e.dispatch.ledger_records import Outcome, ShardState
    from runner_e2e.dispatch.shard_states import State

__all__ = ["Move", "Settlement", "StaleError", "add_event", "apply", "settle"]

_MOST_OF_A_NOTE: Final = 2000


class StaleError(RefusedError):
    """A shard was changed since it was read: another process acts on it."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A change of *shard* to the state *to*. None leaves a field as it is.

    *nonce* is needed for ``reserved`` and allowed nowhere else. *note* says why the shard is in its state; without one
    the note of the state before is dropped.
    """

    shard: ShardState
    to: State
    nonce: str | None = None
    run: int | None = None
    attempt: int | None = None
    hinted_run: int | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Settlement:
    """What became of the cells of a shard, and its money in micro-dollars.

    *actual* may be more than the sum over the cells (some costs belong to no cell), *kept* too; None is that sum.
    """

    outcomes: tuple[Outcome, ...]
    actual: int | None = None
    kept: int | None = None


def apply(database: sqlite3.Connection, move: Move, *, now: float) -> ShardState:
    """Makes *move* and writes its event.

    Raises :class:`StaleError` where the shard is not as it was read, :class:`~runner_e2e.dispatch.money.BudgetError`
    where a reservation does not fit under the campaign's cap, and :class:`~runner_e2e.errors.DefectError` for a move
    that is not legal.
    """
    if move.to == "settled":
        raise DefectError("a shard is settled with its outcomes, not moved")
    return _write(database, move, {}, now=now)


def settle(database: sqlite3.Connection, move: Move, settlement: Settlement, *, now: float) -> ShardState:
    """Moves a shard to ``settled`` with what became of each of its cells.

    Raises what :func:`apply` raises, and :class:`~runner_e2e.errors.DefectError` where a cell is missing or foreign.
    """
    found = settlement.outcomes
    number = _number(database, move.shard)
    rows = database.execute("SELECT handle FROM cells WHERE campaign = ? AND position = ?", (number, move.shard.index))
    if sorted(row[0] for row in rows) != sorted(each.handle for each in found):
        raise DefectError(f"the outcomes of {move.shard.key} are not those of its cells, each once")
    paid, held = sum(each.actual or 0 for each in found), sum(each.kept for each in found)
    actual = paid if settlement.actual is None else settlement.actual
    kept = held if settlement.kept is None else settlement.kept
    if actual < paid or kept < held:
        raise DefectError(f"{move.shard.key} costs less than its cells do")
    written = _write(database, move, {"actual": actual, "kept": kept}, now=now)
    database.executemany(
        "UPDATE cells SET verdict = ?, actual = ?, kept = ?, attempts = ?, note = ? WHERE campaign = ? AND handle = ?",
        [
            (each.verdict, each.actual, each.kept, each.attempts, _text(each.note), number, each.handle)
            for each in found
        ],
    )
    return written


def add_event(database: sqlite3.Connection, number: int, after: str, *, now: float) -> None:
    """Adds an event of the whole campaign in row *number*."""
    _add_event(database, (now, number, None, 0, "", after, None, None, 0, os.getpid(), ""))


def _add_event(database: sqlite3.Connection, row: tuple[Any, ...]) -> None:
    database.execute(
        "INSERT INTO events (at, campaign, position, round, before, after, nonce, run, committed, process, note) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )


def _write(database: sqlite3.Connection, move: Move, further: dict[str, Any], *, now: float) -> ShardState:
    before = move.shard
    _check(move)
    number = _number(database, before)
    changes = {**_changes(move, now), **further}
    if move.to == "reserved" and before.state in ("planned", "unpaid"):
        _check_cap(database, number, before)
    assignments = ", ".join(f"{name} = ?" for name in changes)
    done = database.execute(
        f"UPDATE shards SET {assignments}, version = version + 1, changed_at = ? "
        "WHERE campaign = ? AND position = ? AND state = ? AND round = ? AND version = ?",
        (*changes.values(), now, number, before.index, before.state, before.round, before.version),
    )
    if done.rowcount != 1:
        raise StaleError(
            f"shard {before.index} of {before.campaign} was changed by another process meanwhile",
            why=f"it was read as {before.state!r} (change {before.version})",
            fix="run `runner-e2e dispatch status`, then `runner-e2e dispatch resume`",
        )
    if move.to == "reserved":
        database.execute("UPDATE campaigns SET started_at = coalesce(started_at, ?) WHERE number = ?", (now, number))
    after = shard(database, before.campaign, before.index)
    if move.nonce is not None:
        database.execute(
            "INSERT INTO nonces (nonce, campaign, position, round, made_at) VALUES (?, ?, ?, ?, ?)",
            (move.nonce, number, before.index, after.round, now),
        )
    row = (
        now,
        number,
        after.index,
        after.round,
        before.state,
        move.to,
        after.nonce,
        after.run,
        after.committed,
        os.getpid(),
        after.note,
    )
    _add_event(database, row)
    return after


def _check(move: Move) -> None:
    """What the tables alone cannot know."""
    before, to = move.shard, move.to
    what = f"{before.key}: {before.state} to {to}"
    if not may_move(before.state, to):
        allowed = ", ".join(sorted(MOVES[before.state])) or "nothing"
        raise DefectError(f"illegal move of {what}", why=f"after {before.state!r} may follow: {allowed}")
    # Back from sending, the nonce stays: nothing went out under it, and the shared ledger knows it.
    fresh = to == "reserved" and before.state != "sending"
    if fresh != (move.nonce is not None) or (move.nonce is not None and not is_nonce(move.nonce)):
        raise DefectError(f"{what} {'needs' if fresh else 'takes no'} fresh nonce")
    if move.run is not None and before.run not in (None, move.run) and before.state != "stuck":
        raise DefectError(f"{what} would leave run {before.run} for run {move.run}")


def _changes(move: Move, now: float) -> dict[str, Any]:
    """The columns that *move* sets."""
    before, to = move.shard, move.to
    changes: dict[str, Any] = {"state": to}
    if to != before.state or move.note is not None:
        changes["note"] = _text(move.note or "")
    given = {field.name: getattr(move, field.name) for field in fields(Move) if field.name in _KEPT}
    if to in ("planned", "reserved"):
        changes |= dict.fromkeys(("run", "attempt", "hinted_run", "intended_at", "sent_at"))
    changes |= {name: value for name, value in given.items() if value is not None}
    if to == "planned":
        changes["nonce"] = None
    elif to == "sending":
        changes["intended_at"] = now
    elif to == "sent" and before.sent_at is None:
        changes["sent_at"] = now
    if before.state == "unpaid" and to == "reserved":
        changes["round"] = before.round + 1
    return changes


def _text(note: str) -> str:
    """A note as the ledger can hold it: what a server said may have half of a surrogate pair in it."""
    return note[:_MOST_OF_A_NOTE].encode(errors="replace").decode()


_KEPT: Final = ("nonce", "run", "attempt", "hinted_run")


def _check_cap(database: sqlite3.Connection, number: int, shard: ShardState) -> None:
    cap = database.execute("SELECT max_cost FROM campaigns WHERE number = ?", (number,)).fetchone()[0]
    counted = committed(database, number)
    if cap is not None and counted + shard.reserved > cap:
        raise BudgetError(
            f"shard {shard.index} of {shard.campaign} does not fit under the campaign's cap of {usd(cap)}",
            why=f"{usd(counted)} are paid or reserved and {usd(shard.reserved)} are needed: "
            f"{usd(counted + shard.reserved - cap)} too much",
            fix="plan what is left as a campaign of its own, with a higher --max-cost",
        )


def _number(database: sqlite3.Connection, shard: ShardState) -> int:
    number = campaign_number(database, shard.campaign)
    if number is None:
        raise DefectError(f"there is no campaign {shard.campaign}")
    return number
