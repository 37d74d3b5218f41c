"""``command: setup``: masks the confidential inputs, then makes the environment, before any secret is in scope."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from runner_e2e import bootstrap, gha  # noqa: E402 - the package is found only after the line above
from runner_e2e.cli.step import run_step  # noqa: E402
from runner_e2e.errors import RefusedError  # noqa: E402


def set_up() -> int:
    """Does the three parts in the order in which they protect each other."""
    mask_confidential_inputs()
    refuse_secrets()
    make_environment()
    return 0


def mask_confidential_inputs() -> None:
    """Registers a mask for each confidential input of a manual dispatch, read from the event file."""
    names = gha.read_list_input("confidential-inputs")
    values = gha.event_inputs()
    present = [name for name in names if values.get(name, "").strip()]
    for name in present:
        commands = gha.masks(values[name])
        for command in commands:
            print(command)
        if not commands:
            text = f"The confidential input `{name}` is too short to be masked.\nfix: use longer values"
            print(gha.annotation("warning", text, title="runner-e2e setup"))
    print(f"setup: confidential inputs of this run: {', '.join(present) or 'none'} (looked for {', '.join(names)})")


def refuse_secrets() -> None:
    """Packages are installed next; a secret in this step's environment would be theirs to read."""
    found = bootstrap.secrets_in_scope(os.environ)
    if found:
        raise RefusedError(
            f"a provider's secret is in the environment of this step: {', '.join(found)}",
            why="setup installs packages, and none of them may see it",
            fix="give it in the `env:` of the step with `command: run` only, not of the job or the workflow",
        )


def make_environment() -> None:
    """Installs the lock outside the workspace and says where."""
    began = time.monotonic()
    lock = ROOT / "requirements" / "runtime.txt"
    environment = bootstrap.environment_directory(gha.temporary_directory(), lock)
    print("setup: installing the locked packages, each checked against its hash")
    programs = bootstrap.install(environment=environment, lock=lock, source=ROOT / "src")
    gha.write_outputs({"programs": str(programs)})
    print(f"setup: Python {sys.version.split()[0]}, ready in {time.monotonic() - began:.1f} s: {programs}")


if __name__ == "__main__":
    sys.exit(run_step("setup", set_up))
