"""Removes what tests have made, and never what somebody has mounted in it: that is the machine's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from runner_e2e.sandbox.facts import read_mounts, same_or_beneath

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["remove_tree"]


def remove_tree(place: Path) -> None:
    """Removes *place* with all that is in it, also what an agent of another user made.

    Raises :class:`RuntimeError`, before anything is removed, where a mount lies at or below it.
    """
    real = os.path.realpath(place)
    mounted = [mount.point for mount in read_mounts() if same_or_beneath(mount.point, real)]
    if mounted:
        raise RuntimeError(
            f"{place} is not removed: {mounted[0]} is mounted in it; a test has to unmount what it mounts"
        )
    if os.geteuid() == 0:
        shutil.rmtree(place)
        return
    subprocess.run(["sudo", "-n", "rm", "-rf", str(place)], check=False, capture_output=True)
    shutil.rmtree(place, ignore_errors=True)
