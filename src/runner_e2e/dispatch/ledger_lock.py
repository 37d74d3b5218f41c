"""Who may act: one process a campaign, on the machine that the ledger belongs to.

The lock is ``flock`` on a file beside the ledger: the kernel gives it back when its holder ends, in whatever way. The
file stays; removing it would let two processes lock two files of one name.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner_e2e.dispatch.ledger_errors import LedgerError
from runner_e2e.errors import Place, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HeldError", "Lock", "locked", "machine_digest"]

_MACHINE_FILES: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_MOST_BYTES: Final = 4096
_LINE: Final = 120


def machine_digest(files: tuple[Path, ...] = _MACHINE_FILES) -> str:
    """A text that tells this machine from others and says nothing of it (``machine-id(5)`` asks for a keyed digest)."""
    found = ""
    for file in files:
        with suppress(OSError, UnicodeDecodeError):
            found = found or file.read_text()[:_MOST_BYTES].strip()
    # Containers may have no machine-id; their name is all there is.
    name = f"id:{found}" if found else f"name:{platform.node()}"
    return hashlib.sha256(f"runner-e2e ledger {name}".encode()).hexdigest()[:32]


class HeldError(RefusedError):
    """Another process holds the lock of the campaign."""


class Lock:
    """A lock that is held. Its file also tells how far its holders came, so that an older ledger is noticed."""

    def __init__(self, descriptor: int, now: float) -> None:
        self._descriptor = descriptor
        self._now = now
        self.mark = 0
        with suppress(OSError, ValueError, KeyError, TypeError):
            self.mark = int(_word(descriptor)["mark"])
        self._sign()

    def advance(self, mark: int) -> None:
        """Notes that the change with the number *mark* was committed. Call it after the commit, never before."""
        if mark > self.mark:
            self.mark = mark
            self._sign()

    def _sign(self) -> None:
        # A line of one length is written over, which works on a full disk too; it may fail and costs no wait for it.
        word = json.dumps({"process": os.getpid(), "since": self._now, "mark": self.mark})
        with suppress(OSError):
            os.pwrite(self._descriptor, word.ljust(_LINE).encode(), 0)


@contextmanager
def locked(ledger: Path, campaign: str, *, now: float) -> Iterator[Lock]:
    """Holds the lock of *campaign* (an id, which is fit for a file's name) in the folder ``LEDGER.locks``.

    Raises :class:`HeldError` that names the holder, and
    :class:`~runner_e2e.dispatch.ledger_errors.LedgerError` where there can be no lock.
    """
    folder = ledger.with_name(f"{ledger.name}.locks")
    path = folder / f"{campaign}.lock"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _no_lock(path, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _held(descriptor, campaign, path) from None
        except OSError as error:
            raise _no_lock(path, error) from error
        yield Lock(descriptor, now)
    finally:
        # Closing gives the lock back, but not while a forked child has the descriptor too.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _word(descriptor: int) -> dict[str, Any]:
    """What the last holder wrote. Raises OSError, ValueError or TypeError for anything else."""
    return dict(json.loads(os.pread(descriptor, _MOST_BYTES, 0)))


def _held(descriptor: int, campaign: str, path: Path) -> HeldError:
    holder = "another process"
    with suppress(OSError, ValueError, KeyError, TypeError):
        word = _word(descriptor)
        since = datetime.fromtimestamp(float(word["since"]), UTC)
        holder = f"process {int(word['process'])}, since {since:%Y-%m-%d %H:%M:%S} UTC"
    return HeldError(
        f"the campaign {campaign} is being run already: {holder}",
        why="two clients of one campaign would pay twice",
        fix="watch that one, or end it and run `runner-e2e dispatch resume`; `dispatch status` reads meanwhile",
        place=Place(path=str(path)),
    )


def _no_lock(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        "the campaign cannot be locked",
        why=str(error.strerror),
        fix="give yourself the right to write the folder, on a file system that has locks, or name another ledger in "
        "RUNNER_E2E_LEDGER",
        place=Place(path=str(path)),
    )
