"""The file of a ledger: where it is, and how it is opened so that damage, copies and newer versions are noticed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.ledger_errors import LedgerError, damaged, explained, is_busy
from runner_e2e.dispatch.ledger_lock import machine_digest
from runner_e2e.dispatch.ledger_schema import APPLICATION_ID, VERSION, migrate
from runner_e2e.errors import DefectError, Place, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LEDGER_VARIABLE", "PATIENCE", "Identity", "connect", "copy_for_reading", "default_path", "identity"]

LEDGER_VARIABLE: Final = "RUNNER_E2E_LEDGER"
PATIENCE: Final = 10.0
"""Seconds that a change waits for another process to finish its own."""

_OLDEST_SQLITE: Final = (3, 37, 0)
_PAUSE: Final = 0.02
_LARGE: Final = 64 * 1024 * 1024
_SMALL_TABLES: Final = ("ledger", "campaigns", "shards", "nonces", "events")
_MEMORY: Final = ("/dev/shm",)  # noqa: S108 - only a folder of our own is made there
_REMOTE: Final = ("nfs", "cifs", "smb", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.rclone", "fuse.s3fs")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Which ledger it is (a copy has the same ``uuid``) and the digest of the machine that acts with it."""

    uuid: str
    machine: str


def default_path(environ: Mapping[str, str]) -> Path:
    """Where the ledger is: ``RUNNER_E2E_LEDGER``, or below ``XDG_STATE_HOME`` (``~/.local/state`` without it).

    Raises :class:`~runner_e2e.errors.UsageError` where none of them is an absolute path: a ledger that depends on the
    working directory would be another one tomorrow.
    """
    if own := environ.get(LEDGER_VARIABLE, ""):
        path = Path(own).expanduser()
        if not path.is_absolute():
            raise UsageError(
                f"{LEDGER_VARIABLE} is no absolute path",
                why="from another folder it would name another ledger",
                fix=f"write it as {Path.cwd() / path}",
            )
        return path
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        # "All paths set in these environment variables must be absolute", says the XDG Base Directory Specification.
        home = environ.get("HOME", "")
        if not home.startswith("/"):
            raise UsageError(
                "there is no place for the ledger: HOME is not set", fix=f"name a file in {LEDGER_VARIABLE}"
            )
        state = f"{home}/.local/state"
    return Path(state) / "runner-e2e" / "ledger.sqlite"


def connect(path: Path, *, now: float, patience: float = PATIENCE) -> sqlite3.Connection:
    """Opens the ledger in *path*, makes it where there is none, and brings it to this version.

    Each change waits up to *patience* seconds for other processes. Raises
    :class:`~runner_e2e.dispatch.ledger_errors.LedgerError`.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        needed = ".".join(map(str, _OLDEST_SQLITE))
        raise LedgerError(
            f"this Python has SQLite {sqlite3.sqlite_version}; {needed} is needed", fix="use a newer Python"
        )
    _make_file(path)
    with explained(path):
        database = sqlite3.connect(path, timeout=patience, isolation_level=None)
        try:
            _check_owner(database, path)
            _prepare(database, path, patience)
            _bring_up_to_date(database, path, now)
        except BaseException:
            database.close()
            raise
    return database


def copy_for_reading(path: Path) -> tempfile.TemporaryDirectory[str] | None:
    """Copies the ledger with its log to a folder elsewhere, under its own name; None where there is no room for it.

    Meant for a file that cannot be opened for writing. A process that does write it would have all it needs open
    already, and then it could be opened here too.
    """
    for parent in (tempfile.gettempdir(), *_MEMORY):
        folder = None
        try:
            folder = tempfile.TemporaryDirectory(dir=parent, prefix="runner-e2e-ledger-")
            for name in (path.name, f"{path.name}-wal"):
                source = path.with_name(name)
                if name == path.name or source.exists():
                    shutil.copyfile(source, Path(folder.name) / name)
        except OSError:
            if folder is not None:
                folder.cleanup()
        else:
            return folder
    return None


def identity(database: sqlite3.Connection, path: Path) -> Identity:
    """Who the ledger is. Raises :class:`~runner_e2e.dispatch.ledger_errors.LedgerError` for one without a row of it."""
    row = database.execute("SELECT uuid, machine FROM ledger").fetchone()
    if row is None:
        raise damaged(path, "it does not say which ledger it is")
    return Identity(uuid=row[0], machine=row[1])


def _make_file(path: Path) -> None:
    """Makes an empty file that only its owner may read, before SQLite would make one that others can."""
    place = Place(path=str(path))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_file_system(path, path.parent.stat().st_dev)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            _check_kind(path.stat(), place)
            return
        os.close(descriptor)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise LedgerError(
            "the ledger cannot be made",
            why=str(error.strerror),
            fix=f"give yourself the right to write there, or name another file in {LEDGER_VARIABLE}",
            place=place,
        ) from error


def _check_file_system(path: Path, device: int) -> None:
    """Refuses what is shared by several machines: the write-ahead log and the locks hold on one kernel only."""
    kind = _file_system(device)
    if kind.startswith(_REMOTE):
        raise LedgerError(
            f"the ledger is on a file system of several machines ({kind})",
            why="its locks and its write-ahead log hold between the processes of one machine only",
            fix=f"name a file on a local disk in {LEDGER_VARIABLE}",
            place=Place(path=str(path)),
        )


def _file_system(device: int) -> str:
    """The type of the file system with this number (``proc_pid_mountinfo(5)``), empty where nothing tells it."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            mount, _, source = line.partition(" - ")
            if mount.split(" ")[2:3] == [wanted]:
                return source.split(" ", 1)[0]
    return ""


def _check_kind(status: os.stat_result, place: Place) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise LedgerError("the ledger is no regular file", fix=f"name another in {LEDGER_VARIABLE}", place=place)
    if status.st_nlink > 1:
        raise LedgerError(
            "the ledger has a second name (a hard link)",
            why="SQLite keeps its write-ahead log beside each name, and the two would damage the file",
            fix="remove the other name; `find -samefile` finds it",
            place=place,
        )
    if status.st_uid != os.geteuid():
        raise LedgerError(
            "the ledger belongs to another user",
            why="who may change it could make money be spent twice",
            fix=f"run this as its owner, or name another file in {LEDGER_VARIABLE}",
            place=place,
        )
    # The file itself is left to SQLite: closing it here would take the locks of this process's other connections away.


def _check_owner(database: sqlite3.Connection, path: Path) -> None:
    """Refuses a newer ledger and the database of another program, before anything is changed in it."""
    version = database.execute("PRAGMA user_version").fetchone()[0]
    application = database.execute("PRAGMA application_id").fetchone()[0]
    tables = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION_ID and (application or version or tables):
        raise LedgerError(
            "the file is the database of another program",
            fix=f"name another file in {LEDGER_VARIABLE}",
            place=Place(path=str(path)),
        )
    if version > VERSION:
        raise LedgerError(
            f"the ledger was written by a newer runner-e2e (tables of version {version}; this one knows {VERSION})",
            fix=f"use that version, or name another file in {LEDGER_VARIABLE} for new campaigns",
            place=Place(path=str(path)),
        )


def _prepare(database: sqlite3.Connection, path: Path, patience: float) -> None:
    for setting in ("foreign_keys = ON", "trusted_schema = OFF", "cell_size_check = ON", "temp_store = MEMORY"):
        database.execute(f"PRAGMA {setting}")
    if (mode := _write_ahead(database, patience)) != "wal":
        raise LedgerError(
            "the ledger cannot have a write-ahead log",
            why=f"SQLite stays in the mode {mode!r}: the file system is remote or has no shared memory",
            fix=f"name a file on a local disk in {LEDGER_VARIABLE}",
            place=Place(path=str(path)),
        )
    # A commit returns when it is on the disk: what was not written must not be sent.
    database.execute("PRAGMA synchronous = FULL")
    if finding := _finding(database, path):
        raise damaged(path, f"SQLite says: {finding}")


def _finding(database: sqlite3.Connection, path: Path) -> str:
    """The first damage that SQLite finds, empty where there is none.

    Of a ledger of hundreds of large campaigns, which would take seconds, the cells are left out: those of a campaign
    are compared with its digest before anybody acts on it.
    """
    checks = ("1",) if path.stat().st_size <= _LARGE else _SMALL_TABLES
    for check in checks:
        for (found,) in database.execute(f"PRAGMA quick_check({check})"):
            if found != "ok":
                return str(found)
    return ""


def _write_ahead(database: sqlite3.Connection, patience: float) -> str:
    """Switches to the write-ahead log. SQLite does not wait where two processes do so at once."""
    until = time.monotonic() + patience
    while True:
        try:
            return str(database.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
        time.sleep(_PAUSE)


def _bring_up_to_date(database: sqlite3.Connection, path: Path, now: float) -> None:
    if database.execute("PRAGMA user_version").fetchone()[0] == VERSION:
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited.
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise DefectError(
                "the ledger became newer while it was opened", fix="try again", place=Place(path=str(path))
            )
        migrate(database, version)
        if not version:
            row = (1, uuid.uuid4().hex, machine_digest(), now)
            database.execute("INSERT INTO ledger (only, uuid, machine, made_at) VALUES (?, ?, ?, ?)", row)
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
