"""What this process has open, so that a test can say that nothing was left."""

from __future__ import annotations

import contextlib
import os

__all__ = ["open_descriptors"]


def open_descriptors() -> set[tuple[str, str]]:
    """Number and target of each descriptor. What other threads close meanwhile is in the earlier set alone."""
    found = set()
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):  # the one of the listing itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))  # noqa: PTH115
    return found
