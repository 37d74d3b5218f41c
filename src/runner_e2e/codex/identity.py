"""The identity of a launch: what must be the same for a saved session to be resumed.

Executable, model, provider and every other setting belong to it. The rules of the permission profiles do not: they
change from host to host and from release to release, and are stated anew by each launch and each request.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from runner_e2e.codex.profile import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["launch_identity", "stable_arguments"]

_PROFILE_RULE: Final = re.compile(
    r"\s*permissions\s*\.\s*(?P<quote>[\"']?)(?:" + "|".join(map(re.escape, PROFILES)) + r")(?P=quote)\s*\.\s*"
    r"(?:filesystem|network)\s*(?:[.=]|$)"
)


def launch_identity(arguments: Sequence[str]) -> str:
    """The identity of a launch with these arguments (the executable first, if it is to count), as 64 hex digits.

    Arguments are hashed with their lengths, so that no two different lists are the same text.
    """
    digest = hashlib.sha256(b"runner-e2e codex launch 1\n")
    for argument in stable_arguments(arguments):
        encoded = argument.encode(errors="surrogateescape")
        digest.update(b"%d:" % len(encoded) + encoded)
    return digest.hexdigest()


def stable_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """*arguments* without the file-system and network rules of this product's profiles."""
    return tuple(_stable(arguments))


def _stable(arguments: Sequence[str]) -> Iterator[str]:
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        following = arguments[position + 1] if position + 1 < len(arguments) else None
        position += 1
        if argument == "--":
            yield argument
            yield from arguments[position:]
            return
        if argument in ("-c", "--config"):
            if following is not None:
                position += 1
                if not _PROFILE_RULE.match(following):
                    yield argument
                    yield following
                continue
        elif _PROFILE_RULE.match(_joined_value(argument)):
            continue
        yield argument


def _joined_value(argument: str) -> str:
    """The setting in ``--config=SETTING`` or ``-cSETTING``; empty for any other argument."""
    if argument.startswith("--config="):
        return argument.removeprefix("--config=")
    return argument[2:].removeprefix("=") if argument.startswith("-c") else ""
