"""How much slower a command gets under audit: bare, under ``runner-e2e audit``, under plain ``strace -f``.

A build-like tree: a shell that starts compiler drivers, each of which starts two small programs. One run measures
all three, several rounds in turn, and reports the best of each, so that a busy machine does not decide.

    .venv/dev/bin/python3 benchmarks/audit.py --processes 2000 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# A unit is four processes: the driver and three programs that it starts.
TREE = """\
i=0
while [ "$i" -lt "$1" ]; do
    /bin/sh -c '/bin/true cc1 -O2 "$0.c"; /bin/true as "$0.s"; /bin/true ld "$0.o"; :' "unit-$i"
    i=$((i + 1))
done
"""
CASE = "smoke.codex.linux.benchmark-0001"
SOURCE = Path(__file__).resolve().parent.parent / "src"


def processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(command: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of wall time and of processor time, all children included."""
    began, used = time.perf_counter(), processor_time()
    subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began, processor_time() - used


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    # A runner's environment has about this many variables, and every exec passes them all.
    environ = {
        **{f"VARIABLE_{number}": f"/opt/hostedtoolcache/some/path/{number}" for number in range(60)},
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SOURCE),
        "CASE": CASE,
    }
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "tree.sh"
        script.write_text(TREE)
        tree = ["/bin/sh", str(script), str(arguments.processes // 4)]
        report = Path(directory) / "report.json"
        audit = [sys.executable, "-m", "runner_e2e", "audit", "--selected-id-env", "CASE"]
        ways = {
            "bare": tree,
            "audit": [*audit, "--", *tree],
            "audit with a JSON report": [*audit, "--report", str(report), "--", *tree],
            "strace -f": ["strace", "-f", "-o", str(Path(directory) / "trace"), *tree],
        }
        walls: dict[str, list[float]] = {name: [] for name in ways}
        used: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(arguments.rounds):
            for name, command in ways.items():
                wall, processor = measured(command, environ)
                walls[name].append(wall)
                used[name].append(processor)
        execs = json.loads(report.read_text())["counts"]["execs"]
    best = {name: min(each) for name, each in walls.items()}
    least = {name: min(each) for name, each in used.items()}
    if arguments.json:
        result = {
            name: {
                "seconds": round(best[name], 3),
                "times_bare": round(best[name] / best["bare"], 2),
                "processor_seconds": round(least[name], 3),
                "processor_times_bare": round(least[name] / least["bare"], 2),
            }
            for name in ways
        }
        print(json.dumps({"execs": execs, "rounds": arguments.rounds, "ways": result}, indent=2))
        return 0
    print(f"{execs:,} execs, best of {arguments.rounds} rounds")
    for name in ways:
        wall, processor = best[name], least[name]
        print(
            f"  {name:<26}{wall:7.2f} s  {wall / best['bare']:5.2f} x bare"
            f"   processor {processor:7.2f} s  {processor / least['bare']:5.2f} x bare"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
