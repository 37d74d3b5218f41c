"""The client's ledger: what was planned, reserved, intended, sent, seen and paid. One SQLite file for all campaigns.

Every change of a shard is one transaction that is on the disk before the call returns: the reservation and the intent
stand there before anything is sent, so a client that is killed at any point finds what may be out. A move compares
the shard's version, so of two clients that read the same state only one acts on it.

The ledger holds handles, never ids, and no token or key.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner_e2e.cells.wording import quote, suggestion
from runner_e2e.dispatch import ledger_moves, ledger_queries
from runner_e2e.dispatch.ledger_books import check_books
from runner_e2e.dispatch.ledger_errors import LedgerError, UnwritableError, explained
from runner_e2e.dispatch.ledger_file import LEDGER_VARIABLE, PATIENCE, connect, copy_for_reading, default_path, identity
from runner_e2e.dispatch.ledger_lock import locked, machine_digest
from runner_e2e.dispatch.ledger_moves import Move, Settlement, StaleError
from runner_e2e.dispatch.ledger_records import CampaignState, CellState, Event, Remembered, ShardState, Totals
from runner_e2e.errors import DefectError, Place, RefusedError, UsageError
from runner_e2e.existence import is_file

if TYPE_CHECKING:
    import tempfile
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from runner_e2e.dispatch.campaign import Campaign
    from runner_e2e.dispatch.ledger_lock import Lock
    from runner_e2e.dispatch.ledger_records import Outcome
    from runner_e2e.dispatch.shard_states import State

__all__ = ["LEDGER_VARIABLE", "Ledger", "LedgerError", "Move", "StaleError", "default_path", "open_ledger"]

EXPORT_SCHEMA: Final = "runner-e2e.ledger-export/v1"
_DAY: Final = 86_400.0
_ANSWERS_STAY: Final = 30 * _DAY
_MOST_ANSWERS: Final = 2_000


def open_ledger(path: Path, *, now: Callable[[], float], patience: float = PATIENCE) -> Ledger:
    """Opens the ledger in *path* and makes it where there is none; use it as a context manager.

    *now* tells the time (seconds since the epoch). A change waits up to *patience* seconds for another process. Where
    the disk is full or read-only the ledger can be read still, and every change raises what is the matter. Raises
    :class:`~runner_e2e.dispatch.ledger_errors.LedgerError` for a file that is damaged, locked, of a newer version, of
    another program or another user, or that cannot be made.
    """
    # Its log and its locks stand beside the file itself, whatever links lead there.
    real = Path(os.path.realpath(path))
    try:
        return Ledger(connect(real, now=now(), patience=patience), real, now)
    except UnwritableError as error:
        folder = copy_for_reading(real) if is_file(real) and real.stat().st_size else None
        if folder is None:
            raise
        try:
            return Ledger(
                connect(Path(folder.name) / real.name, now=now(), patience=patience), real, now, copy=(folder, error)
            )
        except BaseException:
            folder.cleanup()
            raise


class Ledger:
    """An open ledger; every method may raise :class:`~runner_e2e.dispatch.ledger_errors.LedgerError`."""

    def __init__(
        self,
        database: sqlite3.Connection,
        path: Path,
        now: Callable[[], float],
        *,
        copy: tuple[tempfile.TemporaryDirectory[str], LedgerError] | None = None,
    ) -> None:
        self._database = database
        self._copy = copy
        self._now = now
        self._file = _file_number(path)
        self._locks: dict[str, Lock] = {}
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. What was committed stands without it."""
        with explained(self.path):
            self._database.close()
        if self._copy is not None:
            self._copy[0].cleanup()

    @property
    def unwritable(self) -> LedgerError | None:
        """Why nothing can be written; None where all is well."""
        return self._copy[1] if self._copy is not None else None

    @property
    def uuid(self) -> str:
        """Tells this ledger from others: 32 hexadecimal digits. A copy of it has the same."""
        with explained(self.path):
            return identity(self._database, self.path).uuid

    # Who acts.

    @contextmanager
    def acting(self, campaign: str) -> Iterator[None]:
        """Holds the lock of *campaign*; only inside may its shards be moved.

        What a client left as ``sending`` when it ended becomes ``unknown``: nobody can tell whether it went out.
        Raises :class:`~runner_e2e.errors.RefusedError` where another process holds the lock, and where the ledger was
        copied from another machine.
        """
        number = self._number(campaign)
        self._check_machine()
        if self.unwritable is not None:
            raise self.unwritable
        with locked(self.path, campaign, now=self._now()) as lock:
            # Nobody else moves these shards now, so reading needs no transaction.
            with explained(self.path):
                self._check_mark(campaign, number, lock)
                check_books(self._database, self.path, campaign)
            left = [shard for shard in self.shards(campaign) if shard.state == "sending"]
            self._locks[campaign] = lock
            try:
                note = "the client ended while it sent this"
                self.move_all(Move(shard=shard, to="unknown", note=note) for shard in left)
                yield
            finally:
                del self._locks[campaign]

    def _advance(self, campaigns: Iterable[str]) -> None:
        """Marks beside the ledger how far it came. It must not hide that the change itself was made."""
        for campaign in set(campaigns):
            with suppress(LedgerError):
                self._locks[campaign].advance(self._last_event(self._number(campaign)))

    def _last_event(self, number: int) -> int:
        with explained(self.path):
            row = self._database.execute("SELECT max(number) FROM events WHERE campaign = ?", (number,)).fetchone()
        return int(row[0] or 0)

    def _check_mark(self, campaign: str, number: int, lock: Lock) -> None:
        if (last := self._last_event(number)) < lock.mark:
            raise LedgerError(
                f"the ledger is older than what was done with it: {campaign} came to change {lock.mark}, and here it "
                f"ends with {last}",
                why="an older copy was put in its place, it was removed, or its -wal file was",
                fix="put the newer file back together with its -wal; where it is lost, plan what is missing as a new "
                "campaign, for this one no longer knows what it sent",
                place=Place(path=str(self.path)),
            )

    def adopt(self) -> None:
        """Makes this machine the one that acts with the ledger. The other copy must never be used again."""
        with self._changing() as database:
            before, here = identity(database, self.path).machine, machine_digest()
            if before != here:
                database.execute("UPDATE ledger SET machine = ?", (here,))
                row = (self._now(), before, here)
                database.execute("INSERT INTO adoptions (at, before, after) VALUES (?, ?, ?)", row)

    @property
    def is_copy(self) -> bool:
        """Whether the ledger comes from another machine and was not adopted."""
        with explained(self.path):
            return identity(self._database, self.path).machine != machine_digest()

    # Campaigns.

    def add(self, campaign: Campaign) -> CampaignState:
        """Writes down *campaign* with all its shards as ``planned``; again, it changes nothing.

        Raises :class:`~runner_e2e.errors.RefusedError` where another campaign has its id.
        """
        self._check_machine()
        with self._changing() as database:
            row = database.execute("SELECT digest FROM campaigns WHERE id = ?", (campaign.id,)).fetchone()
            if row is None:
                self._insert(database, campaign)
            elif row[0] != campaign.digest:
                raise RefusedError(
                    f"the ledger has another campaign {campaign.id}",
                    why="its file was made anew with other cells or another budget",
                    fix="plan a new campaign; an id is used once",
                    place=Place(path=str(self.path)),
                )
        return self.campaign(campaign.id)

    def _insert(self, database: sqlite3.Connection, campaign: Campaign) -> None:
        now = self._now()
        values: dict[str, Any] = {
            name: getattr(campaign, name)
            for name in (
                "id", "digest", "created_at", "repository", "workflow", "target", "key_id", "max_cost", "retries",
                "assumed_cost", "assumed_cells",
            )
        }  # fmt: skip
        values["added_at"] = now
        number = database.execute(
            f"INSERT INTO campaigns ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
            tuple(values.values()),
        ).lastrowid
        database.executemany(
            "INSERT INTO shards (campaign, position, sealed, cells, expected, reserved, changed_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (number, shard.index, shard.sealed, len(shard.cells), shard.expected, shard.reserved, now)
                for shard in campaign.shards
            ],
        )
        database.executemany(
            "INSERT INTO cells (campaign, position, handle, expected, reserved) VALUES (?, ?, ?, ?, ?)",
            [
                (number, shard.index, cell.handle, cell.expected, cell.reserved)
                for shard in campaign.shards
                for cell in shard.cells
            ],
        )
        if number is None:
            raise DefectError("SQLite gave the new campaign no row")
        ledger_moves.add_event(database, number, "planned", now=now)

    def campaigns(self) -> tuple[CampaignState, ...]:
        """All campaigns, the newest first."""
        with explained(self.path):
            return ledger_queries.campaigns(self._database)

    def campaign(self, campaign: str) -> CampaignState:
        """The campaign with this id. Raises :class:`~runner_e2e.errors.UsageError` where there is none."""
        with explained(self.path):
            found = ledger_queries.campaigns(self._database, campaign)
        if not found:
            raise self._unknown(campaign)
        return found[0]

    def find(self, text: str) -> CampaignState:
        """The one campaign whose id is, begins with or ends in *text*.

        Raises :class:`~runner_e2e.errors.UsageError` where there is none or more than one.
        """
        with explained(self.path):
            ids = [row[0] for row in self._database.execute("SELECT id FROM campaigns ORDER BY number DESC")]
        found = [each for each in ids if each == text] or [
            each for each in ids if text and (each.startswith(text) or each.endswith(text))
        ]
        if len(found) > 1:
            raise UsageError(
                f"{quote(text)} fits {len(found)} campaigns", fix=f"write one out, such as {found[0]} or {found[1]}"
            )
        if not found:
            raise self._unknown(text)
        return self.campaign(found[0])

    def totals(self, campaign: str) -> Totals:
        """The money of a campaign, and how many of its shards are in each state."""
        return self.campaign(campaign).totals

    def bind(self, campaign: str, *, repository_id: int) -> CampaignState:
        """Notes which repository a campaign is for, by GitHub's number, which outlives a change of name.

        Raises :class:`~runner_e2e.errors.RefusedError` where it was another before.
        """
        number = self._number(campaign)
        with self._changing() as database:
            row = database.execute(
                "SELECT repository_id, repository FROM campaigns WHERE number = ?", (number,)
            ).fetchone()
            if row[0] not in (None, repository_id):
                raise RefusedError(
                    f"{row[1]} is another repository than the one that {campaign} was started in",
                    why=f"GitHub's number for it is {repository_id} and was {row[0]}: it was renamed or made anew",
                    fix="plan a new campaign for it; `runner-e2e dispatch watch` still follows runs that were sent",
                )
            database.execute("UPDATE campaigns SET repository_id = ? WHERE number = ?", (repository_id, number))
        return self.campaign(campaign)

    def ask_to_cancel(self, campaign: str) -> CampaignState:
        """Asks the client that runs *campaign* to stop, without taking its lock: it sees ``cancel_asked_at``."""
        number = self._number(campaign)
        with self._changing() as database:
            now = self._now()
            done = database.execute(
                "UPDATE campaigns SET cancel_asked_at = ? WHERE number = ? AND cancel_asked_at IS NULL", (now, number)
            )
            if done.rowcount:
                ledger_moves.add_event(database, number, "cancel asked", now=now)
        return self.campaign(campaign)

    # Shards and cells.

    def shards(self, campaign: str) -> tuple[ShardState, ...]:
        """The shards of a campaign, in their order."""
        self._number(campaign)
        with explained(self.path):
            return ledger_queries.shards(self._database, campaign)

    def nonces(self, campaign: str) -> frozenset[str]:
        """Every nonce that was ever made for a shard of a campaign."""
        number = self._number(campaign)
        with explained(self.path):
            rows = self._database.execute("SELECT nonce FROM nonces WHERE campaign = ?", (number,))
            return frozenset(row[0] for row in rows)

    def cells(self, campaign: str, index: int | None = None) -> Iterator[CellState]:
        """The cells of a campaign by shard and handle, or those of the shard *index*."""
        number = self._number(campaign)
        with explained(self.path):
            yield from ledger_queries.cells(self._database, number, index)

    def events(self, campaign: str) -> Iterator[Event]:
        """Everything that happened in a campaign, the oldest first."""
        self._number(campaign)
        with explained(self.path):
            yield from ledger_queries.events(self._database, campaign)

    def move(  # noqa: PLR0913 - the fields of a move, by name
        self,
        shard: ShardState,
        to: State,
        *,
        nonce: str | None = None,
        run: int | None = None,
        attempt: int | None = None,
        hinted_run: int | None = None,
        note: str | None = None,
    ) -> ShardState:
        """Moves *shard*, durably; :class:`Move` says what the arguments mean and :meth:`move_all` what is raised."""
        move = Move(shard=shard, to=to, nonce=nonce, run=run, attempt=attempt, hinted_run=hinted_run, note=note)
        return self.move_all([move])[0]

    def move_all(self, moves: Iterable[Move]) -> tuple[ShardState, ...]:
        """Makes all *moves* (of different shards) or none, durably, and gives the shards as they are then.

        Raises :class:`StaleError` where one was changed since it was read,
        :class:`~runner_e2e.dispatch.money.BudgetError` where a reservation passes the campaign's cap, and
        :class:`~runner_e2e.errors.DefectError` for an illegal move and outside of :meth:`acting`.
        """
        given = tuple(moves)
        self._check_acting(move.shard.campaign for move in given)
        if not given:
            return ()
        with self._changing() as database:
            moved = tuple(ledger_moves.apply(database, move, now=self._now()) for move in given)
        self._advance(move.shard.campaign for move in given)
        return moved

    def intend(self, shard: ShardState) -> ShardState:
        """Writes that *shard* is about to be sent. When this returns it is on the disk, and one request may go out."""
        return self.move(shard, "sending")

    def settle(
        self,
        shard: ShardState,
        outcomes: Iterable[Outcome],
        *,
        actual: int | None = None,
        kept: int | None = None,
        note: str | None = None,
    ) -> ShardState:
        """Ends *shard* with what became of each of its cells; the reservation becomes what it cost and still keeps.

        *actual* and *kept* (micro-dollars) are the sums over the cells where they are not given. Raises what
        :meth:`move_all` raises.
        """
        self._check_acting([shard.campaign])
        with self._changing() as database:
            move = Move(shard=shard, to="settled", note=note)
            settlement = Settlement(outcomes=tuple(outcomes), actual=actual, kept=kept)
            settled = ledger_moves.settle(database, move, settlement, now=self._now())
        self._advance([shard.campaign])
        return settled

    # What is known of limits and answers: shared by all clients, and of no campaign.

    def change_rate(self, token: str, change: Callable[[str], str]) -> None:
        """Replaces what is known of the limits of *token* (a digest, never the token) by what *change* makes of it.

        *change* gets the empty text the first time. No other process changes it meanwhile. It survives a kill, and is
        not worth a wait for the disk.
        """
        with self._changing(durably=False) as database:
            row = database.execute("SELECT body FROM rates WHERE token = ?", (token,)).fetchone()
            before = row[0] if row else ""
            after = change(before)
            if after != before:
                database.execute(
                    "INSERT INTO rates (token, body, changed_at) VALUES (?, ?, ?) "
                    "ON CONFLICT DO UPDATE SET body = excluded.body, changed_at = excluded.changed_at",
                    (token, after, self._now()),
                )

    def remembered(self, key: str) -> Remembered | None:
        """The answer that was remembered under *key*."""
        with explained(self.path):
            row = self._database.execute("SELECT etag, body, used_at FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        if self._now() - row[2] > _DAY:
            with suppress(LedgerError), self._changing(durably=False) as database:
                database.execute("UPDATE answers SET used_at = ? WHERE key = ?", (self._now(), key))
        try:
            body = zlib.decompress(row[1]).decode(errors="surrogatepass")
        except (zlib.error, UnicodeDecodeError):
            # Damaged on the disk: it is asked for again, in full.
            return None
        return Remembered(etag=row[0], body=body)

    def remember(self, key: str, etag: str, body: str) -> None:
        """Remembers an answer; those that nobody used for 30 days, and the oldest of too many, are forgotten."""
        packed = zlib.compress(body.encode(errors="surrogatepass"), 1)
        with self._changing(durably=False) as database:
            database.execute(
                "INSERT INTO answers (key, etag, body, used_at) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET etag = excluded.etag, body = excluded.body, used_at = excluded.used_at",
                (key, etag, packed, self._now()),
            )
            database.execute("DELETE FROM answers WHERE used_at < ?", (self._now() - _ANSWERS_STAY,))
            database.execute(
                "DELETE FROM answers WHERE key IN "
                "(SELECT key FROM answers ORDER BY used_at DESC, rowid DESC LIMIT -1 OFFSET ?)",
                (_MOST_ANSWERS,),
            )

    # The whole.

    def export(self) -> Iterator[dict[str, object]]:
        """The ledger as documents, one a line of JSON: itself, each campaign with its shards, cells and events, and
        which machine took it over from which.
        """
        yield {"kind": "ledger", "schema": EXPORT_SCHEMA, "uuid": self.uuid, "exported_at": self._now()}
        for campaign in reversed(self.campaigns()):
            yield {"kind": "campaign", **asdict(campaign)}
            for shard in self.shards(campaign.id):
                yield {"kind": "shard", **asdict(shard)}
            for cell in self.cells(campaign.id):
                yield {"kind": "cell", "campaign": campaign.id, **asdict(cell)}
            for event in self.events(campaign.id):
                yield {"kind": "event", **asdict(event)}
        with explained(self.path):
            adoptions = self._database.execute("SELECT at, before, after FROM adoptions ORDER BY number").fetchall()
        for at, before, after in adoptions:
            yield {"kind": "adoption", "at": at, "before": before, "after": after}

    @contextmanager
    def _changing(self, *, durably: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on the disk when this ends without an error, and nothing otherwise."""
        database = self._database
        if self.unwritable is not None:
            raise self.unwritable
        if _file_number(self.path) != self._file:
            raise LedgerError(
                "the ledger was removed or replaced while it was in use",
                why="what is written now would stand in no file",
                fix="put the file back under its name, or end this command and run `runner-e2e dispatch resume`",
                place=Place(path=str(self.path)),
            )
        with explained(self.path):
            # Between transactions only, so that the next one is not affected.
            database.execute(f"PRAGMA synchronous = {'FULL' if durably else 'NORMAL'}")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    # Where even this fails, closing the file undoes it; the first error is the one to tell.
                    with suppress(sqlite3.Error):
                        database.execute("ROLLBACK")
                raise

    def _number(self, campaign: str) -> int:
        with explained(self.path):
            number = ledger_queries.campaign_number(self._database, campaign)
        if number is None:
            raise self._unknown(campaign)
        return number

    def _unknown(self, campaign: str) -> UsageError:
        with explained(self.path):
            ids = [row[0] for row in self._database.execute("SELECT id FROM campaigns ORDER BY number DESC")]
        return UsageError(
            f"the ledger has no campaign {quote(campaign)}",
            why=suggestion(campaign, ids) if ids else "it has none at all",
            fix="`runner-e2e dispatch status` lists those it has"
            if ids
            else "make one with `runner-e2e dispatch plan`",
            place=Place(path=str(self.path)),
        )

    def _check_acting(self, campaigns: Iterable[str]) -> None:
        if not self._locks.keys() >= set(campaigns):
            raise DefectError("a shard is moved only while its campaign is locked (Ledger.acting)")

    def _check_machine(self) -> None:
        if self.is_copy:
            raise RefusedError(
                "the ledger belongs to another machine",
                why="it was copied, or this machine's id changed; two machines that act with copies of one ledger "
                "would pay twice",
                fix="run `runner-e2e dispatch adopt` when the other copy will not be used again",
                place=Place(path=str(self.path)),
            )


def _file_number(path: Path) -> tuple[int, int] | None:
    """What tells the file under this name from others; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
