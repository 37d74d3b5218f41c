"""What can be wrong with a ledger's file, as messages: the fact, the cause, the remedy, and the place."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import DefectError, Place, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["LedgerError", "UnwritableError", "damaged", "explained", "is_busy"]

_ELSEWHERE: Final = "or name another file in RUNNER_E2E_LEDGER"


class LedgerError(RefusedError):
    """The ledger cannot be read or written, so nothing may be sent."""


class UnwritableError(LedgerError):
    """The ledger may be sound, but nothing can be written: its disk is full, or it is read-only."""


def damaged(path: Path, finding: str) -> LedgerError:
    """The error for a file that is no sound database; *finding* is SQLite's word on it."""
    return LedgerError(
        "the ledger is damaged",
        why=finding,
        fix="keep the file. A copy that was made after the last change may take its place; without one, plan what is "
        "missing as a new campaign: what was sent stands in the repository's claims and its branch runner-e2e-ledger",
        place=Place(path=str(path)),
    )


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection was in the way for longer than the time-out."""
    return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what SQLite raises about the ledger in *path* into :class:`LedgerError`, and our mistakes into defects."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explanation(path, error) from error
    except OverflowError as error:
        raise DefectError(f"a number does not fit into the ledger: {error}", place=Place(path=str(path))) from error


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or ""


def _explanation(path: Path, error: sqlite3.Error) -> LedgerError | DefectError:
    name = _name(error)
    place = Place(path=str(path))
    if is_busy(error):
        return LedgerError(
            "the ledger is locked by another process",
            why="it was not free within the time that this command waits",
            fix="wait until the other `runner-e2e dispatch` is done and try again; `fuser FILE` tells which it is",
            place=place,
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")) or _is_short(name):
        return damaged(path, f"SQLite says: {error}")
    if name.startswith("SQLITE_FULL") or name in _WRITING:
        return UnwritableError(
            "the ledger cannot be written: the disk is full or fails",
            why=f"SQLite says: {error} ({name})",
            fix=f"free some space and run the command again, {_ELSEWHERE} for new campaigns; nothing that was not "
            "written was sent",
            place=place,
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return UnwritableError(
            "the ledger cannot be opened for writing",
            why=f"SQLite says: {error} ({name})",
            fix=f"give yourself the right to write the file and its folder, {_ELSEWHERE}",
            place=place,
        )
    if name.startswith(("SQLITE_IOERR", "SQLITE_NOMEM", "SQLITE_PROTOCOL", "SQLITE_NOLFS", "SQLITE_INTERRUPT")):
        return LedgerError(
            "the ledger cannot be used",
            why=f"SQLite says: {error} ({name})",
            fix=f"check the disk and the memory of this machine, {_ELSEWHERE} for new campaigns",
            place=place,
        )
    return DefectError(f"the ledger refused a change: {error}", why=name or "unknown", place=place)


def _is_short(name: str) -> bool:
    """A page that the file should have is not there: it was cut off."""
    return name == "SQLITE_IOERR_SHORT_READ"


_WRITING: Final = frozenset(
    {
        "SQLITE_IOERR_WRITE",
        "SQLITE_IOERR_FSYNC",
        "SQLITE_IOERR_DIR_FSYNC",
        "SQLITE_IOERR_TRUNCATE",
        "SQLITE_IOERR_SHMSIZE",
        "SQLITE_IOERR_SHMOPEN",
        "SQLITE_IOERR_COMMIT_ATOMIC",
        "SQLITE_IOERR_IN_PAGE",
    }
)
