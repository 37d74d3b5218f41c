"""What a host refuses, and what it only has no room for now."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from runner_e2e.sandbox import mounts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("most", "refused"),
    [("0\n", True), ("1\n", False), ("2147483647\n", False), ("", False), (None, False)],
)
def test_namespaces_that_are_all_in_use_are_no_refusal(
    most: str | None, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel answers alike where nobody may have one, and where an agent took them all."""
    file = tmp_path / "max_user_namespaces"
    if most is not None:
        file.write_text(most)
    monkeypatch.setattr(mounts, "_MOST_NAMESPACES", str(file))
    assert mounts.is_refusal(OSError(errno.ENOSPC, "none left")) == refused
    assert bool(mounts.remedy(OSError(errno.ENOSPC, "none left"))) != refused
    assert mounts.is_refusal(OSError(errno.EPERM, "not here"))
