"""What the lint and its peers find of leaks that were executed, and what they say of workflows that leak nothing.

    python benchmarks/lint_detection.py

The cases are those of `tests/acceptance/lint/cases`: for each of them, the arguments of every process were read while
it ran. A leak counts as found when a tool says anything at all about a line that starts a leaking process, whatever
the rule. Rules that found a leak in this way are then looked for in the cases that leak nothing. Each peer has its
strictest setting that needs no network: zizmor `--persona=auditor --offline`, actionlint with shellcheck.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.truth.case import WORKFLOW, Case, find_cases  # noqa: E402 - found only after the line above
from tests.truth.verdict import Truth, read_truth  # noqa: E402

Said = set[tuple[str, str, int]]
"""What a tool said of one case: rule, path in the case's repository, line."""


@dataclass(frozen=True)
class Tally:
    """Names of the cases that a tool was right or wrong about, and the rules that found something."""

    found: set[str] = field(default_factory=set)
    unfounded: set[str] = field(default_factory=set)
    rules: set[str] = field(default_factory=set)


def output_of(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    if not done.stdout:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def ours(folder: Path, workflows: list[str]) -> Iterable[tuple[str, str, int]]:
    command = [sys.executable, "-m", "runner_e2e", "lint", "--format", "json", "--no-actionlint", "--no-cache"]
    for each in json.loads(output_of([*command, "--select", "confidential-argv", *workflows], folder))["findings"]:
        if each["confidence"] != "low":
            yield each["rule"], each["path"], each["line"]


def zizmor(folder: Path, workflows: list[str]) -> Iterable[tuple[str, str, int]]:
    command = [program("zizmor"), "--offline", "--no-progress", "--persona=auditor", "--format", "json"]
    for each in json.loads(output_of([*command, *workflows], folder)):
        for location in each["locations"]:
            path = location["symbolic"]["key"]["Local"]["verbatim_path"]
            yield each["ident"], path, location["concrete"]["location"]["start_point"]["row"] + 1


def actionlint(folder: Path, workflows: list[str]) -> Iterable[tuple[str, str, int]]:
    command = [program("actionlint"), "-format", "{{json .}}", "-pyflakes="]
    for each in json.loads(output_of([*command, *workflows], folder)) or []:
        yield each["kind"], each["filepath"], each["line"]


def program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise SystemExit(f"{name} is not installed")
    return found


def said_of(
    tool: Callable[[Path, list[str]], Iterable[tuple[str, str, int]]], folder: Path, cases: list[Case]
) -> dict[str, Said]:
    """Runs a tool once over all cases, each in a repository of its own below *folder*."""
    said: dict[str, Said] = {case.name: set() for case in cases}
    for rule, path, line in tool(folder, [f"{number}/{WORKFLOW}" for number in range(len(cases))]):
        number, _, inner = os.path.relpath(folder / path, folder).partition("/")
        said[cases[int(number)].name].add((rule, inner, line))
    return said


def tally(said: dict[str, Said], truths: dict[str, Truth]) -> Tally:
    result = Tally()
    for name, truth in truths.items():
        for rule, path, line in said[name]:
            if any(each.file == path and each.line <= line <= each.end_line for each in truth.witnesses):
                result.found.add(name)
                result.rules.add(rule)
    for name, truth in truths.items():
        if truth.verdict == "clean" and any(rule in result.rules for rule, _, _ in said[name]):
            result.unfounded.add(name)
    return result


def main() -> None:
    cases = [case for case in find_cases(ROOT / "tests/acceptance/lint/cases") if case.truth_path.exists()]
    truths = {case.name: read_truth(case)[0] for case in cases}
    leaks = sum(1 for truth in truths.values() if truth.verdict == "leak")
    clean = len(truths) - leaks
    print(f"| tool | of {leaks} leaks found | of {clean} clean cases reported | by its rules |\n|---|---:|---:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, case in enumerate(cases):
            (folder / str(number) / ".git").mkdir(parents=True)
            case.lay_out(folder / str(number))
        for title, tool in (("runner-e2e lint", ours), ("zizmor", zizmor), ("actionlint, shellcheck", actionlint)):
            result = tally(said_of(tool, folder, cases), truths)
            rules = ", ".join(sorted(result.rules))
            print(f"| {title} | {len(result.found)} | {len(result.unfounded)} | {rules} |", flush=True)


if __name__ == "__main__":
    main()
