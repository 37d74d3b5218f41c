"""``command: setup``: masks the confidential inputs, then makes the environment, before any secret is in scope."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from runner_e2e import gha  # noqa: E402 - the package is found only after the line above
from runner_e2e.cli.step import run_step  # noqa: E402
from runner_e2e.cli.step_environment import make_environment, refuse_secrets  # noqa: E402


def set_up() -> int:
    """Does the three parts in the order in which they protect each other."""
    mask_confidential_inputs()
    refuse_secrets("setup")
    programs = make_environment("setup", ROOT)
    gha.write_outputs({"programs": str(programs)})
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


if __name__ == "__main__":
    sys.exit(run_step("setup", set_up))
