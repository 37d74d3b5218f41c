"""Addresses of GitHub's API: what is sent there, and who writes with which method."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner_e2e.lint.values import Value

__all__ = ["is_api", "publishes"]

_HOSTS = ("api.github.com", "uploads.github.com")
_VARIABLES = ("GITHUB_API_URL", "GITHUB_GRAPHQL_URL", "$GITHUB_API_URL", "$GITHUB_GRAPHQL_URL")
"""Symbols of texts that are the address of the API."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def is_api(address: Value) -> bool:
    """Whether *address* is, or may be, one of GitHub's API."""
    return any(
        any(host in piece for host in _HOSTS) if isinstance(piece, str) else piece.symbol in _VARIABLES
        for piece in address.pieces()
    )


def publishes(address: Value, method: str | None) -> bool:
    """Whether a request with *method* (None: not known) makes something public: secrets are encrypted."""
    if method is not None and method.upper() in _READING:
        return False
    return is_api(address) and not any(isinstance(piece, str) and "/secrets/" in piece for piece in address.pieces())
