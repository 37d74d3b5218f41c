"""The environment that a step of the action works in: made once in a job, while no secret is in scope."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from runner_e2e import bootstrap, gha
from runner_e2e.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["make_environment", "refuse_secrets"]


def refuse_secrets(command: str) -> None:
    """Packages are installed next; a secret in this step's environment would be theirs to read.

    Raises :class:`~runner_e2e.errors.RefusedError` that names the variables.
    """
    found = bootstrap.secrets_in_scope(os.environ)
    if found:
        raise RefusedError(
            f"a provider's secret is in the environment of this step: {', '.join(found)}",
            why=f"{command} installs packages, and none of them may see it",
            fix="give it in the `env:` of the step with `command: run` only, not of the job or the workflow",
        )


def make_environment(command: str, root: Path) -> Path:
    """Installs the lock of the action at *root* outside the workspace, and says where; returns the ``bin``.

    Nothing is installed where an earlier step has done it.
    """
    began = time.monotonic()
    lock = root / "requirements" / "runtime.txt"
    environment = bootstrap.environment_directory(gha.temporary_directory(), lock)
    if not (environment / ".complete").exists():
        print(f"{command}: installing the locked packages, each checked against its hash")
    programs = bootstrap.install(environment=environment, lock=lock, source=root / "src")
    print(f"{command}: Python {sys.version.split()[0]}, ready in {time.monotonic() - began:.1f} s: {programs}")
    return programs
