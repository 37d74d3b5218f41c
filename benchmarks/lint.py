"""How fast the lint is beside its peers, on the same files, in the same run.

    python benchmarks/lint.py [--files 400] [--repeat 3] [PATH…]

Without PATH the files are made here: workflows of several styles from a fixed list of parts, so that anyone has the
same set. Peers are run when they are installed: zizmor `--offline`, actionlint without shellcheck and pyflakes, and
jactionlint. The tools take turns, and the best of the repetitions counts: on a busy machine only ratios mean something.

"cold" remembers nothing; "warm" has linted the same files before, more than once. Memory is the largest
sum over the processes of a tool, with what they share counted once (Linux).
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent

PARTS = Path(__file__).parent / "lint_parts"
HEADERS = [path.read_text() for path in sorted(PARTS.glob("header-*.yml"))]
STEPS = [path.read_text() for path in sorted(PARTS.glob("step-*.yml"))]
ZIZMOR, ACTIONLINT = "zizmor --offline", "actionlint, no shellcheck"
MATRIX = "    strategy:\n      matrix:\n        python: ['3.11', '3.12']\n"
JOB = "  job{number}:\n    runs-on: ubuntu-latest\n{needs}" + MATRIX + "    steps:\n"


def make_files(folder: Path, count: int) -> list[Path]:
    """Writes *count* workflows of 2 to 4 jobs with 4 to 8 steps each."""
    target = folder / ".github" / "workflows"
    target.mkdir(parents=True)
    (folder / ".git").mkdir()
    paths = []
    for number in range(count):
        text = f"name: Workflow {number}\n{HEADERS[number % len(HEADERS)]}permissions:\n  contents: read\njobs:\n"
        for job in range(2 + number % 3):
            text += JOB.format(number=job, needs=f"    needs: job{job - 1}\n" if job else "")
            text += "".join(STEPS[(number * 5 + job * 3 + step) % len(STEPS)] for step in range(4 + number % 5))
        paths.append(target / f"w{number:04}.yml")
        paths[-1].write_text(text)
    return paths


def yaml_below(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_file():
            found.append(path)
        for folder, _, names in os.walk(path):
            found += [Path(folder, name) for name in sorted(names) if name.endswith((".yml", ".yaml"))]
    return found


def processor_seconds() -> float:
    """What this process and its children have used."""
    return sum(os.times()[:4])


def best(repeat: int, action: Callable[[], object]) -> tuple[float, float]:
    """Least wall time and least processor time of *repeat* runs."""
    walls, processors = [], []
    for _ in range(repeat):
        wall, processor = time.perf_counter(), processor_seconds()
        action()
        walls.append(time.perf_counter() - wall)
        processors.append(processor_seconds() - processor)
    return min(walls), min(processors)


def peers(files: list[Path], cache: Path) -> dict[str, list[str]]:
    """Command lines of the tools that are here; ours without what it would start of them."""
    beside = Path(sys.executable).parent
    names = [str(path) for path in files]
    ours = [sys.executable, "-m", "runner_e2e", "lint", "--no-actionlint"]
    commands = {
        "runner-e2e lint, cold": [*ours, "--no-cache", *names],
        "runner-e2e lint, warm": [*ours, "--cache-dir", str(cache), *names],
    }
    for title, program, options in (
        (ZIZMOR, "zizmor", ["--offline", "--no-progress", "--format", "json"]),
        (ACTIONLINT, "actionlint", ["-shellcheck=", "-pyflakes=", "-no-color"]),
        ("jactionlint", "jactionlint", []),
    ):
        found = shutil.which(program, path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
        if found:
            commands[title] = [found, *options, *names]
    return commands


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, env=environment(), check=False)
    if done.returncode not in {0, 1, 2, 11, 12, 13, 14}:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")


def environment() -> dict[str, str]:
    """As where it is installed: with modules compiled once, whatever this shell says about that."""
    without = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**without, "PYTHONPATH": str(ROOT / "src")}


def memory(command: list[str]) -> float:
    """The most megabytes that the processes of *command* have together; 0 where the system does not tell."""
    most = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as process:
        while process.poll() is None:
            most = max(most, sum(map(own_bytes, (process.pid, *children(process.pid)))))
            time.sleep(0.005)
    return most / 1e6


def children(process: int) -> list[int]:
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [int(each) for each in listed]


def own_bytes(process: int) -> int:
    """The memory of a process; of pages that several have, its share."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)


def in_turns(repeat: int, commands: dict[str, list[str]]) -> dict[str, tuple[float, float]]:
    """Best wall and processor time of each of *commands*: a machine that is busy for a while is so for all of them."""
    found: dict[str, tuple[float, float]] = {}
    for command in commands.values():
        run(command)
    for _ in range(repeat):
        for title, command in commands.items():
            wall, processor = best(1, partial(run, command))
            known = found.get(title, (wall, processor))
            found[title] = (min(wall, known[0]), min(processor, known[1]))
    return found


def in_one_process(files: list[Path], repeat: int) -> dict[str, tuple[float, float]]:
    """Seconds of the parts, without the start of Python: reading, then everything."""
    sys.path.insert(0, str(ROOT / "src"))
    from runner_e2e.errors import ConfigurationError
    from runner_e2e.lint.linter import lint
    from runner_e2e.yaml_positions import compose_file

    def read() -> None:
        for path in files:
            try:
                compose_file(path)
            except ConfigurationError:
                continue

    gc.disable()
    return {
        "reading and composing YAML": best(repeat, read),
        "everything": best(repeat, lambda: lint(files, current=files[0].parent, processes=1)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        files = yaml_below(arguments.paths) if arguments.paths else make_files(Path(folder), arguments.files)
        size = sum(path.stat().st_size for path in files)
        print(f"{len(files)} files, {size / 1e6:.2f} MB, {os.cpu_count()} processors, best of {arguments.repeat}\n")
        print("| tool | seconds | of zizmor | of actionlint | files/s | processor seconds | MB |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        commands = peers(files, Path(cache))
        times = in_turns(arguments.repeat, commands)
        for title, (seconds, processor) in times.items():
            shares = [f"{seconds / times[peer][0]:.2f}" if peer in times else "" for peer in (ZIZMOR, ACTIONLINT)]
            print(
                f"| {title} | {seconds:.2f} | {' | '.join(shares)} | {len(files) / seconds:.0f} | {processor:.2f} "
                f"| {memory(commands[title]):.0f} |"
            )
        print("\nIn one process, without the start:\n")
        print("| part | seconds | files/s | processor seconds |\n|---|---:|---:|---:|")
        for part, (seconds, processor) in in_one_process(files, arguments.repeat).items():
            print(f"| {part} | {seconds:.2f} | {len(files) / seconds:.0f} | {processor:.2f} |")
    if importlib.util.find_spec("_ruamel_yaml") is None:
        print("\nlibyaml is not installed: YAML was read by the Python parser.")


if __name__ == "__main__":
    main()
