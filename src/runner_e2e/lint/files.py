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
    # os.path and not pathlib, which raises where a folder above may not be looked into.
    folder = path if os.path.isdir(path) else path.parent  # noqa: PTH112
    for candidate in (folder, *folder.parents):
        if candidate.name == ".github":
            return candidate.parent
        if os.path.exists(candidate / ".git") or os.path.isdir(candidate / ".github" / "workflows"):  # noqa: PTH110, PTH112
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
    found = _yaml_files(root / ".github" / "workflows")
    found += _yaml_files(root / "workflows-templates")
    for folder, names, files in os.walk(root):
        names[:] = sorted(set(names) - _SKIPPED_FOLDERS)
        found += [Path(folder, name) for name in _ACTION_NAMES if name in files]
    return found


def _yaml_files(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
        paths = [folder / name for name in names if name.endswith(_SUFFIXES)]
        return [path for path in paths if path.suffix in _SUFFIXES and path.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {folder}", why=why, fix="make it readable, or name files to lint") from error


def expanded(paths: Sequence[Path], current: Path) -> Iterator[tuple[Path, bool]]:
    """Every file to lint, and whether it was named itself; no *paths*: the defaults of the folder *current*.

    Raises :class:`~runner_e2e.errors.UsageError` for a path that does not exist, and workflows that cannot be read.
    """
    for path in paths or (current,):
        mode = _mode(path)
        if stat.S_ISDIR(mode):
            repository = not paths or _has_workflows(path)
            inner = default_paths(path) if repository else _all_yaml(path)
            yield from ((each, False) for each in inner)
        elif mode:
            yield path, True
        else:
            raise UsageError(f"there is no file {path}", fix="check the path")


def _has_workflows(path: Path) -> bool:
    """Whether *path* is a repository with workflows; so is one whose workflows may not be looked at."""
    try:
        return stat.S_ISDIR(os.stat(path / ".github" / "workflows").st_mode)  # noqa: PTH116
    except PermissionError:
        return True
    except OSError:
        return False


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
