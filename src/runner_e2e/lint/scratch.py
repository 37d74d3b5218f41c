"""Files without a name, for what processes hand to one another."""

from __future__ import annotations

import os
from typing import BinaryIO

__all__ = ["scratch_file"]


def scratch_file() -> BinaryIO:
    """A new file that is gone when it is closed.

    On Linux it is in memory: a machine whose disks are full, or cannot be written, lints as any other.
    """
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("runner-e2e-lint"), "w+b")
    import tempfile  # takes longer to load than a file to lint

    return tempfile.TemporaryFile()
