"""What a format needs to know beside the report: where the paths start, what the reader's screen can, how to link."""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path

from runner_e2e.lint.files import find_root
from runner_e2e.lint.records import cached_property, dataclass
from runner_e2e.lint.render.sources import Sources

__all__ = ["View"]


@dataclass(frozen=True, kw_only=True)
class View:
    """*folder* is the one that the report's paths start from, after *label*; *colour* tells whether a terminal shows
    it; *blob* is the web address of the repository's files at one commit (``https://…/blob/<commit>``), empty where
    there is none.
    """

    folder: Path = field(default_factory=Path.cwd)
    label: str = ""
    colour: bool = False
    blob: str = ""

    @cached_property
    def root(self) -> Path:
        """The repository that the folder belongs to."""
        return find_root(self.folder.resolve())

    @cached_property
    def sources(self) -> Sources:
        """The lines of the files."""
        return Sources(self.folder, self.label)

    def in_repository(self, path: str) -> str | None:
        """A path of the report from the root of the repository, with ``/``; None for one outside of it."""
        relative = os.path.relpath(os.path.join(self.folder.resolve(), path.removeprefix(self.label)), self.root)  # noqa: PTH118 - joins text
        return None if relative.split(os.sep, 1)[0] == ".." else relative.replace(os.sep, "/")

    def link(self, path: str, line: int) -> str:
        """Web address of a line, empty where there is none."""
        from urllib.parse import quote  # most reports have no links

        relative = self.in_repository(path) if self.blob else None
        return f"{self.blob}/{quote(os.fsencode(relative))}#L{line}" if relative else ""
