"""A copy of the action whose lock holds one package made on the spot."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.local_wheel import make_lock, make_wheel

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, kw_only=True)
class Action:
    """Where the copy lies, and the variables that a runner sets for its steps."""

    root: Path
    environ: dict[str, str]

    @property
    def temporary(self) -> Path:
        return Path(self.environ["RUNNER_TEMP"])

    def start(
        self, script: str, environ: Mapping[str, str] | None = None, *, prefix: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Starts one script as a step does; variables given as empty are left out."""
        variables = {name: value for name, value in {**self.environ, **(environ or {})}.items() if value}
        command = [*prefix, sys.executable, "-I", str(self.root / "scripts" / script)]
        return subprocess.run(command, env=variables, cwd=self.root.parent, capture_output=True, text=True, check=False)


@pytest.fixture
def action(tmp_path: Path) -> Action:
    """A fresh copy, with an event that has no inputs."""
    directory = tmp_path
    root = directory / "action"
    root.mkdir(parents=True)
    shutil.copytree(REPOSITORY / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPOSITORY / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    make_lock(root / "requirements" / "runtime.txt", make_wheel(directory / "wheels"))
    temporary = directory / "temp"
    temporary.mkdir()
    (directory / "event.json").write_text("{}")
    return Action(
        root=root,
        environ={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_PATH": str(directory / "event.json"),
            "GITHUB_OUTPUT": str(directory / "output"),
            "RUNNER_TEMP": str(temporary),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(directory / "wheels"),
            "RUNNER_E2E_INPUT_COMMAND": "setup",
            "RUNNER_E2E_INPUT_CONFIDENTIAL_INPUTS": "selected-id, selected_id, id",
        },
    )
