"""Which commit a tag of an action stands for, as far as somebody knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from runner_e2e.lint.records import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["LocalPins", "PinResolver"]

_PINNED = re.compile(
    r"""^\s*(?:-\s+)?uses:\s*["']?(?P<name>[\w.-]+/[\w.-]+)(?:/[^\s@"']+)?@(?P<commit>[0-9a-f]{40})["']?"""
    r"""[ \t]+\#[ \t]*(?:tag=)?(?P<ref>[\w.-]+)""",
    re.MULTILINE | re.VERBOSE,
)


class PinResolver(Protocol):
    """Who knows which commit a tag or a branch stands for."""

    @property
    def certain(self) -> bool:
        """Whether the answer is what the tag stands for now, and not what somebody wrote down."""

    def resolve(self, repository: str, ref: str) -> str | None:
        """The commit (40 hexadecimal digits) of *ref* in the repository ``owner/name``, None when it is not known."""


class LocalPins:
    """Commits that files of the same repository name with a version comment: ``uses: owner/name@COMMIT # v4``.

    *texts* gives the files, and is called when the first commit is wanted.
    """

    certain = False

    def __init__(self, texts: Callable[[], Iterable[str]]) -> None:
        self._texts = texts

    @cached_property
    def _known(self) -> dict[tuple[str, str], set[str]]:
        known: dict[tuple[str, str], set[str]] = {}
        for text in self._texts():
            for found in _PINNED.finditer(text):
                known.setdefault((found["name"].lower(), found["ref"]), set()).add(found["commit"])
        return known

    def resolve(self, repository: str, ref: str) -> str | None:
        """The only commit that is written down for *ref*: of two, one was moved or written wrong."""
        commits = self._known.get((repository.lower(), ref), set())
        return next(iter(commits)) if len(commits) == 1 else None
