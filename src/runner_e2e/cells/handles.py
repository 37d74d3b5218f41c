"""Handles: what public surfaces call a cell, so that its id stays out of them.

A handle is a keyed digest. Without the key it can be neither computed from an id nor traced back to one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import TYPE_CHECKING

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DEFAULT_KEY_VARIABLE",
    "KEY_BYTES",
    "PREVIOUS_KEY_SUFFIX",
    "PUBLIC_KEY",
    "campaign_keys",
    "handle",
    "is_handle",
    "parse_key",
    "random_key",
]

DEFAULT_KEY_VARIABLE = "RUNNER_E2E_CAMPAIGN_KEY"
PREVIOUS_KEY_SUFFIX = "_PREVIOUS"
"""Added to the name of the key's variable: the key before it, which stays valid while keys are changed."""
KEY_BYTES = 32
_HANDLE = re.compile(r"cell-[0-9a-f]{16}")

# Not a secret: where a catalog says `plain-ids: true` the ids stand beside the handles anyway.
PUBLIC_KEY = b"runner-e2e: the ids of this catalog are public"

# 32 random bytes hold 30 different values on average; fewer than 16 is a placeholder, not a key.
_MINIMUM_DIFFERENT = 16


def handle(key: bytes, cell_id: str) -> str:
    """Returns ``cell-`` and the first 16 hexadecimal digits of HMAC-SHA-256 of *cell_id* under *key*."""
    return f"cell-{hmac.new(key, cell_id.encode(), hashlib.sha256).hexdigest()[:16]}"


def is_handle(text: str) -> bool:
    """Whether *text* has the form of a handle."""
    return _HANDLE.fullmatch(text) is not None


def random_key() -> bytes:
    """Returns a new key of 32 bytes from the operating system's generator."""
    return secrets.token_bytes(KEY_BYTES)


def campaign_keys(environ: Mapping[str, str], *, variable: str = DEFAULT_KEY_VARIABLE) -> tuple[bytes, ...]:
    """The campaign key in *environ*, and the previous one while keys are changed; empty where there is none.

    Raises :class:`UsageError` for one that is no key, and for a previous one alone.
    """
    names = (variable, f"{variable}{PREVIOUS_KEY_SUFFIX}")
    found = {name: parse_key(text, variable=name) for name in names if (text := environ.get(name, "")).strip()}
    if variable not in found and found:
        raise UsageError(f"{names[1]} is set and {variable} is not", fix=f"give the new key as {variable}")
    return tuple(found.values())


def parse_key(text: str, *, variable: str = DEFAULT_KEY_VARIABLE) -> bytes:
    """Reads a key of 32 bytes or more, written in hexadecimal or base64 (both alphabets).

    Raises :class:`UsageError` that names *variable* and shows nothing of the key.
    """
    key = _decoded(text.strip())
    fix = f"make one with `runner-e2e dispatch keygen` and store it as the secret {variable}"
    if key is None:
        raise UsageError(f"the key in {variable} is neither hexadecimal nor base64", fix=fix)
    if len(key) < KEY_BYTES:
        raise UsageError(f"the key in {variable} is too short", why=f"it has {len(key)} of {KEY_BYTES} bytes", fix=fix)
    if len(set(key)) < _MINIMUM_DIFFERENT:
        raise UsageError(
            f"the key in {variable} is a placeholder",
            why=f"its {len(key)} bytes repeat {len(set(key))} values; whoever guesses it can name every cell",
            fix=fix,
        )
    return key


def _decoded(text: str) -> bytes | None:
    """The bytes of *text*; hexadecimal first, because its digits are base64 too."""
    try:
        return bytes.fromhex(text) if text.isalnum() else _base64(text)
    except ValueError:
        return _base64(text)


def _base64(text: str) -> bytes | None:
    standard = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
