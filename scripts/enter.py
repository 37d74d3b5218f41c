"""First program of every use of the action: checks the command, finds a fitting Python, becomes the command's script.

This file alone must also start on an old Python (3.8 and later), to say clearly what is missing; so it uses nothing
of the package. It replaces itself by ``exec``, so that no second process keeps the step's environment.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
NEWEST = (3, 14)  # the newest one that every locked package has a wheel for

# Command -> its script, or None while it is not in this version.
COMMANDS = {
    "setup": "setup.py",
    "gate": "gate.py",
    "plan": "plan.py",
    "claim": "claim.py",
    "run": "run.py",
    "settle": "settle.py",
    "dispatch": "dispatch.py",
    "lint": "lint.py",
    "report": None,
}
LINUX_ONLY = ("run",)
MAKES_ENVIRONMENT = ("setup", "lint")  # the others need the one that `setup` made before a secret was in scope


class RefusalError(Exception):
    """A message for the person who wrote the workflow: fact, cause, fix, a line each."""


def main() -> int:
    """Becomes the script of the asked command; returns (a status) only where that is not possible."""
    command = os.environ.get("RUNNER_E2E_INPUT_COMMAND", "").strip()
    try:
        script = script_of(command, sys.platform)
        python = fitting_python() if command in MAKES_ENVIRONMENT else environment_python()
        os.execv(python, [python, "-I", str(ROOT / "scripts" / script)])  # noqa: S606 - replaced, not started
    except RefusalError as refusal:
        text = str(refusal)
    except OSError as error:
        text = f"`command: {command}` could not start.\nwhy: {error}\nfix: check the runner's files"
    print("::error title=runner-e2e::" + text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    return 2


def script_of(command: str, platform: str) -> str:
    """Name of the script for a command on a platform."""
    ready = ", ".join(name for name, script in COMMANDS.items() if script)
    if not command:
        raise RefusalError(f"The input `command` is missing or empty.\nfix: give one of {ready}")
    if command not in COMMANDS:
        raise RefusalError(f"Unknown command {command[:40]!r}.\nfix: give one of {ready}")
    if platform == "win32":
        raise RefusalError("The action does not work on Windows runners.\nfix: use runs-on: ubuntu-latest")
    if command in LINUX_ONLY and platform != "linux":
        raise RefusalError(
            f"`command: {command}` needs Linux, and this runner is {platform}.\n"
            "why: the Linux kernel makes its sandbox\nfix: use runs-on: ubuntu-latest"
        )
    script = COMMANDS[command]
    if script is None:
        raise RefusalError(f"`command: {command}` is not in this version.\nfix: use one of {ready}")
    return script


def fitting_python() -> str:
    """The Python that runs this, where it fits, else the newest fitting one of the runner's tool cache."""
    if OLDEST <= sys.version_info[:2] <= NEWEST and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return sys.executable
    cached = Path(os.environ.get("RUNNER_TOOL_CACHE") or "/nonexistent") / "Python"
    found = cached_pythons(cached)
    if not found:
        wanted = "Python {}.{} to {}.{}".format(*OLDEST, *NEWEST)
        raise RefusalError(
            f"This runner has none of {wanted}.\n"
            f"why: python3 is {sys.version.split()[0]} ({sys.executable}), and {cached} holds none that fits\n"
            "fix: put actions/setup-python with python-version: '3.13' before this action"
        )
    return str(found[-1][1])


def cached_pythons(directory: Path) -> list[tuple[list[int], Path]]:
    """Complete builds of released, fitting versions, oldest first: ``<version>/<arch>`` beside ``<arch>.complete``.

    Free-threaded builds have an arch of their own (``x64-freethreaded``); the locked wheels are not for them.
    """
    arch = os.environ.get("RUNNER_ARCH", "").lower() or "x64"
    found = []
    for version in listed(directory):
        numbers = (
            [int(number) for number in version.name.split(".")] if re.match(r"\d+\.\d+\.\d+$", version.name) else []
        )
        program = version / arch / "bin" / "python3"
        if (
            OLDEST <= tuple(numbers[:2]) <= NEWEST
            and (version / f"{arch}.complete").exists()
            and os.access(program, os.X_OK)
        ):
            found.append((numbers, program))
    return sorted(found)


def environment_python() -> str:
    """The Python of the environment that ``command: setup`` made in this job for this version of the action."""
    import hashlib

    temporary = os.environ.get("RUNNER_TEMP", "")
    if not temporary:
        raise RefusalError("RUNNER_TEMP is not set.\nfix: run the action as a step of a job")
    lock = hashlib.sha256((ROOT / "requirements" / "runtime.txt").read_bytes()).hexdigest()[:16]
    for directory in listed(Path(temporary) / "runner-e2e"):
        if directory.name.startswith(f"environment-{lock}-") and (directory / ".complete").exists():
            return str(directory / "bin" / "python3")
    raise RefusalError(
        "This job has no environment for this version of the action.\n"
        "why: `command: setup` has not run in it, or was of another commit\n"
        "fix: put the same action, pinned to the same commit, with `command: setup` before this step"
    )


def listed(directory: Path) -> list[Path]:
    """What is in a directory, sorted; nothing where it is missing or unreadable."""
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main())
