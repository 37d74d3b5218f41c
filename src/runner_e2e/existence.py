"""What stands at a path. Never raises: what this process may not look at is not there for it.

Before Python 3.14 the questions of :mod:`pathlib` raise :class:`PermissionError` beneath a directory that may not be
searched, and harnesses, runners and other users leave such directories.
"""
# ruff: noqa: PTH110, PTH112, PTH113, PTH114

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["exists", "is_directory", "is_file", "is_link"]


def exists(path: Path) -> bool:
    """Whether *path* leads to anything."""
    return os.path.exists(path)


def is_file(path: Path) -> bool:
    """Whether *path* leads to a regular file."""
    return os.path.isfile(path)


def is_directory(path: Path) -> bool:
    """Whether *path* leads to a directory."""
    return os.path.isdir(path)


def is_link(path: Path) -> bool:
    """Whether *path* is a symbolic link, wherever it leads."""
    return os.path.islink(path)
