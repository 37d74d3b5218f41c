"""A folder for an agent's home and workspace that does not lie in ``/tmp``, which Codex's sandbox hides."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.clearing import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

WORK = Path(__file__).resolve().parents[2] / ".work"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Where an agent works. ``workspace`` is a repository of its own, so that none above it is found."""

    home: Path
    workspace: Path


@pytest.fixture
def desk() -> Iterator[Desk]:
    WORK.mkdir(exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=WORK))
    made = Desk(home=root / "home", workspace=root / "workspace")
    made.home.mkdir()
    made.workspace.mkdir()
    subprocess.run(["git", "init", "--quiet", str(made.workspace)], check=True)
    yield made
    remove_tree(root)
