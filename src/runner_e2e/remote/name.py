"""Names of repositories: ``OWNER/NAME``, or ``OWNER/NAME@REF`` for a branch, a tag or a commit of one."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["RemoteName", "parse_name"]

# A login has at most 39 letters, digits and single hyphens; a ref is what `git check-ref-format` allows.
_NAME = re.compile(
    r"(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?)/(?P<name>[A-Za-z0-9_.-]{1,100})"
    r"(?:@(?P<ref>(?![-/.])(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]{1,250}(?<![/.])))?"
)


@dataclass(frozen=True, kw_only=True)
class RemoteName:
    """A repository; *ref* is empty for its default branch."""

    owner: str
    name: str
    ref: str = ""

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}@{self.ref}" if self.ref else f"{self.owner}/{self.name}"


def parse_name(text: str) -> RemoteName | None:
    """The name that *text* is, None for any other text."""
    found = _NAME.fullmatch(text)
    if found is None or found["name"] in {".", ".."}:
        return None
    return RemoteName(owner=found["owner"], name=found["name"], ref=found["ref"] or "")
