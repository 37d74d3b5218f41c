"""How long our programs take to start, beside a bare Python: ``python3 benchmarks/startup.py``.

Rounds are interleaved, so that a busy machine slows all programs alike; each is judged by its least processor time.
``--assert`` fails when one of them is slower than the aim.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AIM_MS = 60.0


def programs(python: str, temporary: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Name -> command and environment. The step scripts end at their first check: what is left is their start."""
    event = temporary / "event.json"
    event.write_text("{}")
    step = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(event),
        "RUNNER_TEMP": str(temporary),
        "RUNNER_E2E_INPUT_CONFIDENTIAL_INPUTS": "selected-id",
        "OPENAI_API_KEY": "refused",  # setup refuses a secret in scope right after it masked the inputs
    }
    enter = [python, "-I", str(ROOT / "scripts" / "enter.py")]
    return {
        "python3 -c pass": ([python, "-I", "-c", "pass"], {}),
        "runner-e2e --version": ([str(Path(python).parent / "runner-e2e"), "--version"], {}),
        "scripts/enter.py": (enter, {**step, "RUNNER_E2E_INPUT_COMMAND": "unknown"}),
        "scripts/setup.py": ([python, "-I", str(ROOT / "scripts" / "setup.py")], step),
    }


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """One start: milliseconds on the clock, and milliseconds of processor time."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, env={"PATH": os.defpath, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return (time.perf_counter() - began) * 1000, (used.ru_utime + used.ru_stime) * 1000


def main() -> int:
    """Measures and prints a table; 1 when something is beyond the aim and that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30, help="starts of each program (default: 30)")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "dev" / "bin" / "python3"))
    parser.add_argument("--assert", dest="strict", action="store_true", help="fail beyond the aim")
    options = parser.parse_args()
    if not Path(options.python).is_file():
        print(f"startup: {options.python} does not exist\n  fix: make environment", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory:
        candidates = programs(options.python, Path(directory))
        samples: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
        for number in range(options.rounds + 1):
            for name, (command, environment) in candidates.items():
                taken = measure(command, environment)
                if number:  # the first round fills caches
                    samples[name].append(taken)
    return show(samples, strict=options.strict)


def show(samples: dict[str, list[tuple[float, float]]], *, strict: bool) -> int:
    """Prints the table; the status."""
    rounds = len(next(iter(samples.values())))
    version = f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    print(f"Start-up over {rounds} interleaved starts of each ({version})\n")
    print(f"{'':24}{'median':>12}{'fastest':>12}{'processor':>12}{'ratio':>9}{'more than bare':>19}")
    slow = []
    bare = min(used for _, used in next(iter(samples.values())))
    for number, (name, values) in enumerate(samples.items()):
        clock, used = [value for value, _ in values], min(value for _, value in values)
        more = used - bare
        slow += [name] if more > AIM_MS else []
        verdict = f"{more:+.1f} ms {'slow' if more > AIM_MS else 'ok':>5}" if number else ""
        times = f"{statistics.median(clock):9.1f} ms{min(clock):9.1f} ms{used:9.1f} ms"
        print(f"{name:24}{times}{used / bare:8.2f}x{verdict:>19}")
    missed = f"; missed by {', '.join(slow)}" if slow else ""
    print(f"\nThe aim is within {AIM_MS:.0f} ms of a bare Python{missed}. Judged is the least processor time, which is")
    print("the program's own; what the clock shows above it is the machine's load.")
    return 1 if slow and strict else 0


if __name__ == "__main__":
    sys.exit(main())
