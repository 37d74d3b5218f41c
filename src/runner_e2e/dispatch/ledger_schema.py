"""The tables of the ledger, how they are made and how an older ledger becomes a newer one.

A migration is a tuple of statements; all of them and the new version are one transaction. What was released is never
edited: a change is another migration. The rules that money depends on stand in the tables themselves: a nonce is used
once, what was planned never changes, events are only added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

__all__ = ["APPLICATION_ID", "VERSION", "migrate"]

APPLICATION_ID: Final = 0x52453245
"""``RE2E``: tells the ledger from the databases of other programs."""

_FIRST: Final = (
    """CREATE TABLE ledger (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        uuid TEXT NOT NULL,
        machine TEXT NOT NULL,
        made_at REAL NOT NULL
    ) STRICT""",
    """CREATE TABLE adoptions (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        before TEXT NOT NULL,
        after TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE campaigns (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        digest TEXT NOT NULL,
        created_at TEXT NOT NULL,
        repository TEXT NOT NULL,
        workflow TEXT NOT NULL,
        target TEXT NOT NULL,
        key_id TEXT NOT NULL,
        max_cost INTEGER CHECK (max_cost >= 0),
        retries INTEGER NOT NULL,
        assumed_cost INTEGER,
        assumed_cells INTEGER NOT NULL,
        added_at REAL NOT NULL,
        started_at REAL,
        cancel_asked_at REAL,
        repository_id INTEGER
    ) STRICT""",
    """CREATE TABLE shards (
        campaign INTEGER NOT NULL REFERENCES campaigns,
        position INTEGER NOT NULL CHECK (position >= 0),
        round INTEGER NOT NULL DEFAULT 1 CHECK (round >= 1),
        state TEXT NOT NULL DEFAULT 'planned' CHECK (state IN (
            'planned', 'reserved', 'sending', 'sent', 'unknown', 'running', 'ended', 'settled', 'unpaid', 'stuck',
            'cancelled'
        )),
        version INTEGER NOT NULL DEFAULT 1,
        nonce TEXT UNIQUE,
        sealed TEXT NOT NULL,
        cells INTEGER NOT NULL CHECK (cells > 0),
        expected INTEGER NOT NULL CHECK (expected >= 0),
        reserved INTEGER NOT NULL CHECK (reserved >= expected),
        actual INTEGER CHECK (actual >= 0),
        kept INTEGER NOT NULL DEFAULT 0 CHECK (kept >= 0),
        run INTEGER,
        attempt INTEGER,
        hinted_run INTEGER,
        intended_at REAL,
        sent_at REAL,
        changed_at REAL NOT NULL,
        note TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (campaign, position),
        CHECK (nonce IS NOT NULL OR state IN ('planned', 'cancelled')),
        CHECK (run IS NOT NULL OR state NOT IN ('running', 'ended')),
        CHECK ((actual IS NOT NULL) = (state = 'settled'))
    ) STRICT""",
    """CREATE TABLE cells (
        campaign INTEGER NOT NULL,
        position INTEGER NOT NULL,
        handle TEXT NOT NULL,
        expected INTEGER NOT NULL CHECK (expected >= 0),
        reserved INTEGER NOT NULL CHECK (reserved >= expected),
        verdict TEXT,
        actual INTEGER CHECK (actual >= 0),
        kept INTEGER NOT NULL DEFAULT 0 CHECK (kept >= 0),
        attempts INTEGER NOT NULL DEFAULT 0,
        note TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (campaign, handle),
        FOREIGN KEY (campaign, position) REFERENCES shards
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX cells_of_shards ON cells (campaign, position)",
    """CREATE TABLE nonces (
        nonce TEXT PRIMARY KEY,
        campaign INTEGER NOT NULL,
        position INTEGER NOT NULL,
        round INTEGER NOT NULL,
        made_at REAL NOT NULL,
        FOREIGN KEY (campaign, position) REFERENCES shards
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE events (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        campaign INTEGER NOT NULL REFERENCES campaigns,
        position INTEGER,
        round INTEGER NOT NULL,
        before TEXT NOT NULL,
        after TEXT NOT NULL,
        nonce TEXT,
        run INTEGER,
        committed INTEGER NOT NULL,
        process INTEGER NOT NULL,
        note TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX events_of_campaigns ON events (campaign)",
    """CREATE TABLE rates (
        token TEXT PRIMARY KEY,
        body TEXT NOT NULL,
        changed_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE answers (
        key TEXT PRIMARY KEY,
        etag TEXT NOT NULL,
        body BLOB NOT NULL,
        used_at REAL NOT NULL
    ) STRICT""",
    "CREATE INDEX answers_by_use ON answers (used_at)",
    *(
        f"CREATE TRIGGER {table}_stand_{kind} BEFORE {kind} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'what stands in {table} is never changed'); END"
        for table in ("events", "nonces")
        for kind in ("UPDATE", "DELETE")
    ),
    *(
        f"CREATE TRIGGER {table}_stay BEFORE DELETE ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'nothing is removed from {table}'); END"
        for table in ("campaigns", "shards", "cells")
    ),
    *(
        f"CREATE TRIGGER {table}_plan BEFORE UPDATE OF {columns} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'what was planned is never changed'); END"
        for table, columns in (
            ("campaigns", "number, id, digest, created_at, repository, workflow, target, key_id, max_cost, retries"),
            ("shards", "campaign, position, sealed, cells, expected, reserved"),
            ("cells", "campaign, position, handle, expected, reserved"),
        )
    ),
)

_MIGRATIONS: Final = (_FIRST,)

VERSION: Final = len(_MIGRATIONS)
"""The version of the tables that this code reads and writes (``PRAGMA user_version``)."""


def migrate(database: sqlite3.Connection, version: int) -> None:
    """Brings tables of *version* (0: none) to :data:`VERSION`, inside the caller's transaction."""
    for migration in _MIGRATIONS[version:]:
        for statement in migration:
            database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {VERSION}")
