"""Sealed selections: which cells a run is for, as a text that may stand on public surfaces.

The inputs of a dispatch are public: the run's page and the event file show them. So the ids are encrypted with
AES-256-GCM under a key derived from the campaign key, and bound to the nonce of the dispatch and to the repository:
a text that is copied into another run, or changed in one character, does not open.

Form: ``sealed1.KEYID.DATA``. KEYID (8 hexadecimal digits) tells which key is needed; DATA is base64url of a random
96-bit IV and the ciphertext of the padded, compressed JSON list. Padding hides the length of an id, which would tell
some cells apart.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from runner_e2e.cells.handles import handle
from runner_e2e.cells.ids import parse_id
from runner_e2e.cells.matrix import MAXIMUM_JOBS
from runner_e2e.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = [
    "MAXIMUM_AGE",
    "MOST_CHARACTERS",
    "check_nonce",
    "is_nonce",
    "key_id",
    "new_nonce",
    "open_selection",
    "seal",
    "seal_runs",
]

MOST_CHARACTERS: Final = 60_000
"""GitHub takes 65,535 characters of inputs in all; the rest is for the other inputs."""

MAXIMUM_AGE: Final = timedelta(hours=24)
"""Between the making of a nonce and the creation of its run."""

_MAXIMUM_SKEW: Final = timedelta(minutes=10)
_VERSION: Final = "sealed1"
_BLOCK: Final = 512
_IV_BYTES: Final = 12
_LARGEST_PLAIN: Final = 8 * 1024 * 1024
_SEALED = re.compile(rf"{_VERSION}\.([0-9a-f]{{8}})\.([A-Za-z0-9_-]+)")
_NONCE = re.compile(r"([0-9]{8}t[0-9]{6}z)-[0-9a-f]{16}")


def new_nonce(now: datetime) -> str:
    """A fresh nonce: the time in UTC and 64 random bits, in letters that a ref and a run's name can hold."""
    return f"{now.astimezone(UTC):%Y%m%dt%H%M%Sz}-{secrets.token_hex(8)}"


def is_nonce(text: str) -> bool:
    """Whether *text* has the form of a nonce."""
    return _NONCE.fullmatch(text) is not None


def check_nonce(nonce: str, *, created_at: datetime) -> None:
    """Raises :class:`~runner_e2e.errors.RefusedError` where *nonce* is none, or too old for a run of *created_at*.

    A rerun has the creation time of its first attempt, so a nonce does not age between attempts.
    """
    fix = "make a new one; for a sealed selection `runner-e2e dispatch seal` does"
    found = _NONCE.fullmatch(nonce)
    try:
        made = datetime.strptime(found[1].upper(), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) if found else None
    except ValueError:
        made = None
    if made is None:
        raise RefusedError(
            "the nonce of this run has no valid form",
            why="who sends one makes it such as 20261130t120000z-0123456789abcdef: UTC and 16 random hex digits",
            fix=f"by hand leave it empty; else {fix}",
        )
    if created_at - made > MAXIMUM_AGE:
        raise RefusedError(
            f"the nonce of this run is stale: it was made on {made:%Y-%m-%d %H:%M} UTC",
            why="a run is created within a day of its dispatch, so this one was copied",
            fix=fix,
        )
    if made - created_at > _MAXIMUM_SKEW:
        raise RefusedError(
            f"the nonce of this run was made after the run itself, on {made:%Y-%m-%d %H:%M} UTC",
            why="the clock of the machine that sent the dispatch is wrong",
            fix="set that clock, then " + fix,
        )


def key_id(key: bytes) -> str:
    """Eight hexadecimal digits that tell campaign keys apart and say nothing of them."""
    return hmac.new(key, b"runner-e2e key id", hashlib.sha256).hexdigest()[:8]


def seal(ids: Sequence[str], *, key: bytes, nonce: str, repository: str) -> str:
    """Seals *ids* (at least one) for the run with *nonce* in *repository* (``OWNER/NAME``).

    Raises :class:`~runner_e2e.errors.UsageError` where the text would not fit into the inputs of a dispatch.
    """
    if not ids:
        raise UsageError("there is nothing to seal", fix="select at least one cell")
    packed = zlib.compress(json.dumps(list(ids), separators=(",", ":")).encode(), 9)
    # The length in front, then zeros to the next block.
    body = len(packed).to_bytes(4, "big") + packed
    body += bytes(-len(body) % _BLOCK)
    iv = secrets.token_bytes(_IV_BYTES)
    data = iv + _cipher(key).encrypt(iv, body, _bound_to(nonce, repository))
    text = f"{_VERSION}.{key_id(key)}.{base64.urlsafe_b64encode(data).rstrip(b'=').decode()}"
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"the sealed selection of {len(ids)} cells has {len(text):,} characters",
            why=f"GitHub takes about {MOST_CHARACTERS:,} in the inputs of one run",
            fix="use smaller shards",
        )
    return text


@dataclass(frozen=True, kw_only=True)
class OpenedSelection:
    """The ids, and the key that they were sealed with: the sender names the cells by handles under it."""

    ids: tuple[str, ...]
    key: bytes


@dataclass(frozen=True, kw_only=True)
class SealedRun:
    """What one run is started with."""

    nonce: str
    selection: str


def seal_runs(ids: Sequence[str], *, key: bytes, repository: str, now: datetime) -> tuple[SealedRun, ...]:
    """Seals *ids* for as few runs of nearly equal size as 256 jobs a matrix allow, each with a nonce of its own.

    The ids are spread in the order of their handles, so that the parts say nothing of the catalog's order.
    Raises what :func:`seal` raises.
    """
    ordered = sorted(ids, key=lambda each: handle(key, each))
    number = -(-len(ordered) // MAXIMUM_JOBS)
    nonces = [new_nonce(now) for _ in range(number)]
    return tuple(
        SealedRun(nonce=nonce, selection=seal(ordered[start::number], key=key, nonce=nonce, repository=repository))
        for start, nonce in enumerate(nonces)
    )


def open_selection(text: str, *, keys: Sequence[bytes], nonce: str, repository: str) -> OpenedSelection:
    """Opens a sealed selection with the one of *keys* that it was sealed with (two are valid while a key is changed).

    Raises :class:`~runner_e2e.errors.RefusedError`; no message shows anything of what is sealed, or of a key.
    """
    found = _SEALED.fullmatch(text.strip())
    if found is None:
        raise RefusedError(
            "the sealed selection is damaged or of another version",
            why=f"it does not have the form {_VERSION}.KEYID.DATA",
            fix="seal the selection anew with `runner-e2e dispatch seal`, and do not edit what it prints",
        )
    key = next((each for each in keys if key_id(each) == found[1]), None)
    if key is None:
        here = ", ".join(key_id(each) for each in keys) or "none"
        raise RefusedError(
            f"the selection was sealed with the campaign key {found[1]}, which is not here (here: {here})",
            why="the key was changed since, or the run's environment has another one",
            fix="give the older key as RUNNER_E2E_CAMPAIGN_KEY_PREVIOUS, or start the campaign anew",
        )
    return OpenedSelection(ids=_parsed(_decrypted(found[2], key, _bound_to(nonce, repository))), key=key)


def _decrypted(data: str, key: bytes, bound: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        raw = base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
        return _cipher(key).decrypt(raw[:_IV_BYTES], raw[_IV_BYTES:], bound)
    except (InvalidTag, ValueError, binascii.Error):
        raise RefusedError(
            "the sealed selection does not open",
            why="it was changed, or copied from a run with another nonce or from another repository",
            fix="seal the selection anew with `runner-e2e dispatch seal`, and do not edit what it prints",
        ) from None


def _parsed(body: bytes) -> tuple[str, ...]:
    """The ids in what was sealed. It is authentic, so a mistake here is that of another version."""
    try:
        length = int.from_bytes(body[:4], "big")
        packed = zlib.decompressobj()
        ids = json.loads(packed.decompress(body[4 : 4 + length], _LARGEST_PLAIN))
        if not isinstance(ids, list) or not ids or not all(isinstance(each, str) for each in ids):
            raise TypeError
        for each in ids:
            parse_id(each)
        # A cell that stands there twice is one cell: it is paid for once.
        return tuple(dict.fromkeys(ids))
    except (ValueError, TypeError, RecursionError, zlib.error, UsageError):
        raise RefusedError(
            "the sealed selection holds no list of cells",
            why="another version of runner-e2e sealed it",
            fix="use the same version on both sides",
        ) from None


def _bound_to(nonce: str, repository: str) -> bytes:
    return json.dumps([_VERSION, repository.lower(), nonce]).encode()


def _cipher(key: bytes) -> AESGCM:
    """The cipher under a key of its own: handles are made with the campaign key itself."""
    # Imported here: most commands seal nothing, and the package takes 20 ms to load.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(hmac.new(key, b"runner-e2e sealed selection", hashlib.sha256).digest())
