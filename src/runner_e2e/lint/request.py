"""What is to be linted, and how: the words that the linter shares with its cache and with what changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["TIME_LIMIT", "Entry", "Request"]

TIME_LIMIT = 10.0
"""Seconds for one file, with everything it reaches."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file to lint, named by a user itself (*explicit*) or found in a folder; *root* is that of its repository.

    *absolute* is *path* from the root of the file system, symbolic links and all.
    """

    path: Path
    absolute: str
    explicit: bool
    root: Path
    shown: str


@dataclass(frozen=True, kw_only=True)
class Request:
    """How to lint. Everything in it takes part in what is found in a file.

    Paths are shown from the folder *current* (resolved), with *label* before them. *texts* stand for the files at
    these resolved paths.
    """

    current: Path
    time_limit: float = TIME_LIMIT
    trace: bool = False
    label: str = ""
    texts: Mapping[Path, str] | None = None

    def below(self, root: Path, shown: str) -> str:
        """The path from *root* of the file that findings show as *shown*."""
        return os.path.relpath(self.current / shown.removeprefix(self.label), root)
