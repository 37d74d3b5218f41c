"""Which files are linted, which repository they belong to, and what may be read of it."""

from __future__ import annotations

import os
import posixpath
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["default_paths", "exists_at", "expanded", "find_root", "locate", "names_in", "shown_path"]

_SUFFIXES = (".yml", ".yaml")
_ACTION_NAMES = ("action.yml", "action.yaml")
_SKIPPED_FOLDERS = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"))


def find_root(path: Path) -> Path:
    """The repository that *path* belongs to: the nearest folder above it with ``.git``, or with ``.github``.

    A file that belongs to none stands in a repository of its own folder.
    """
    folder = path if path.is_dir() else path.parent
    for candidate in (folder, *folder.parents):
        if candidate.name == ".github":
            return candidate.parent
        if (candidate / ".git").exists() or (candidate / ".github" / "workflows").is_dir():
            return candidate
    return folder


def locate(root: str, relative: str) -> str | None:
    """The file at the normal path *relative* below *root* (resolved).

    None when it is absent, no file, or outside (``..``, symbolic links).
    """
    path = f"{root}/{relative}"
    try:
        # os.path and not pathlib: scripts name thousands of files that do not exist.
        if not os.path.isfile(path) or not os.path.realpath(path).startswith(f"{root.rstrip('/')}/"):  # noqa: PTH113
            return None
    except (OSError, ValueError):  # a name that is too long, or holds a null character
        return None
    return path


def names_in(root: str, folder: str) -> tuple[str, ...] | None:
    """The names in the *folder* below *root*, in order; None when there is no such folder."""
    try:
        return tuple(sorted(os.listdir(f"{root}/{folder}")))  # noqa: PTH208
    except (OSError, ValueError):
        return None


def exists_at(root: str, path: str) -> bool:
    """Whether anything is at *path* below *root*."""
    try:
        return os.path.exists(f"{root}/{path}")  # noqa: PTH110
    except ValueError:
        return False


def shown_path(path: Path, current: Path) -> str:
    """The path as messages show it: from the folder *current* where it is below, else whole."""
    relative = os.path.relpath(path, current)
    return str(path) if relative.startswith("..") else posixpath.normpath(relative)


def default_paths(root: Path) -> list[Path]:
    """What is linted in the repository at *root*: workflows, templates of workflows, and every ``action.yml``."""
    found = list(_yaml_files(root / ".github" / "workflows"))
    found += _yaml_files(root / "workflows-templates")
    for folder, names, files in os.walk(root):
        names[:] = sorted(set(names) - _SKIPPED_FOLDERS)
        found += [Path(folder, name) for name in _ACTION_NAMES if name in files]
    return found


def _yaml_files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES and path.is_file())


def expanded(paths: Sequence[Path], current: Path) -> Iterator[tuple[Path, bool]]:
    """Every file to lint, and whether it was named itself; no *paths*: the defaults of the folder *current*.

    Raises :class:`~runner_e2e.errors.UsageError` for a path that does not exist.
    """
    for path in paths or (current,):
        mode = _mode(path)
        if stat.S_ISDIR(mode):
            repository = (path / ".github" / "workflows").is_dir() or not paths
            inner = default_paths(path) if repository else _all_yaml(path)
            yield from ((each, False) for each in inner)
        elif mode:
            yield path, True
        else:
            raise UsageError(f"there is no file {path}", fix="check the path")


def _mode(path: Path) -> int:
    """What kind of thing is there; 0 for nothing."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - there may be thousands of files
    except (OSError, ValueError):
        return 0


def _all_yaml(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(set(names) - _SKIPPED_FOLDERS)
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(_SUFFIXES))
