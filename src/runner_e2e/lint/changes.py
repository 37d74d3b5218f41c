"""Which files changed since a revision of git, and which findings have to do with them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import UsageError
from runner_e2e.lint.records import cached_property, dataclass
from runner_e2e.lint.settings import CATALOG

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.lint.finding import FlowPlace
    from runner_e2e.lint.request import Entry
    from runner_e2e.lint.result import FileResult

__all__ = ["Changes", "changes_since"]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Resolved paths of files that were added, changed, renamed or removed; findings show paths from *current*.

    A folder among them is a submodule: git tells that it changed, not what in it.
    """

    paths: frozenset[str]
    current: Path

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that the changed files are in."""
        return frozenset(map(os.path.dirname, self.paths))

    def touch(self, entry: Entry, result: FileResult) -> bool:
        """Whether a file that the analysis of *entry* read, or asked for, changed; or the file itself."""
        return self._holds(os.path.realpath(entry.path)) or any(
            path in self.folders if relative.endswith("/") else self._holds(path)
            for relative in result.reads
            for path in [os.path.realpath(f"{entry.root}/{relative}")]
        )

    def concern_catalog(self, entry: Entry) -> bool:
        """Whether the catalog changed, which says what is confidential in every file."""
        return self._holds(os.path.realpath(entry.root / CATALOG))

    def has(self, path: str, flow: Sequence[FlowPlace]) -> bool:
        """Whether a finding stands in a changed file, or the way of its value leads through one."""
        return any(self._changed(each) for each in (path, *(place.span.path for place in flow)))

    def _changed(self, shown: str) -> bool:
        return self._holds(os.path.realpath(self.current / shown))

    def _holds(self, path: str) -> bool:
        return path in self.paths or path.startswith(self.submodules)

    @cached_property
    def submodules(self) -> tuple[str, ...]:
        """What the paths of all files in changed submodules begin with."""
        return tuple(f"{path}/" for path in self.paths if os.path.isdir(path))  # noqa: PTH112 - text, as the others


def changes_since(revision: str, *, current: Path) -> Changes:
    """What differs between the working tree and the point where *revision* and ``HEAD`` parted; new files too.

    Raises :class:`~runner_e2e.errors.UsageError` where git cannot tell.
    """
    if not revision or revision.startswith("-"):
        raise UsageError(f"`--since {revision}` names no revision", fix="write a branch, a tag or a commit")
    root = _git(current, "rev-parse", "--show-toplevel", failing=lambda said: _no_repository(current, said)).strip()
    commit = _git(
        current,
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}",
        failing=lambda _: _unknown(current, revision),
    ).strip()  # fmt: skip
    base = _git(current, "merge-base", commit, "HEAD", failing=lambda said: _no_base(current, revision, said)).strip()
    changed = _git(current, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", base, "--")
    new = _git(Path(root), "ls-files", "-z", "--others", "--exclude-standard")
    names = {name for name in (*changed.split("\0"), *new.split("\0")) if name}
    return Changes(paths=frozenset(os.path.realpath(f"{root}/{name}") for name in names), current=current)


def _git(folder: Path, *arguments: str, failing: Callable[[str], UsageError] | None = None) -> str:
    command = ["git", "-C", str(folder), "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise UsageError(
            "`--since` needs git, and there is none", why="no `git` is on PATH", fix="install git, or lint without it"
        ) from None
    if done.returncode == 0:
        return os.fsdecode(done.stdout)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    reason = said[-1].removeprefix("fatal: ") if said else ""
    if failing is not None:
        raise failing(reason)
    raise UsageError(f"`git {arguments[0]}` failed", why=reason, fix="run it yourself to see what is wrong")


def _no_repository(current: Path, said: str) -> UsageError:
    if "dubious ownership" in said:
        fix = f"run `git config --global --add safe.directory {current}`"
    else:
        fix = "run it inside of a checkout, or lint without `--since`"
    return UsageError(f"`--since` needs a git repository, and {current} is in none", why=said, fix=fix)


def _unknown(current: Path, revision: str) -> UsageError:
    fix = "fetch it first" if not _is_shallow(current) else _FETCH
    return UsageError(f"git knows no revision {revision!r}", why="it may not have been fetched", fix=fix)


def _no_base(current: Path, revision: str, said: str) -> UsageError:
    if _is_shallow(current):
        return UsageError(
            f"where {revision!r} and HEAD parted is not known",
            why="this clone is shallow: it has only the newest commits",
            fix=_FETCH,
        )
    return UsageError(
        f"{revision!r} and HEAD have no commit in common", why=said, fix="name a revision of the same history"
    )


_FETCH = "check out with `fetch-depth: 0`, or run `git fetch --unshallow`"


def _is_shallow(current: Path) -> bool:
    return _git(current, "rev-parse", "--is-shallow-repository").strip() == "true"
