"""Random scripts, executed: what a predictor believes of them against what the kernel saw."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.truth.canary import Canary, random_canary
from tests.truth.case import WORKFLOW, CaseError, Verdict
from tests.truth.execution import SYSTEM_PATH, Instruments
from tests.truth.grammar import FILES, TAINTED, scripts
from tests.truth.trace import Trace, run_traced

from runner_e2e.lint.linter import lint
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Predictor = Callable[[str], Verdict]

TIMEOUT = 60.0
BATCHES = 50
BATCH = 10

HEAD = """\
on:
  workflow_dispatch:
    inputs:
      selected-id:
        required: true
        type: string

permissions: {}

jobs:
  case:
    runs-on: ubuntu-latest
    env:
      ID: ${{ inputs.selected-id }}
    steps:
      - run: |
"""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What one script did: its status as a shell gives it, and the command lines that carried the id."""

    status: int
    leaks: tuple[tuple[str, ...], ...]

    @property
    def verdict(self) -> Verdict:
        return "leak" if self.leaks else "clean"


@dataclass(frozen=True, kw_only=True)
class Surprise:
    """A script, as small as it could be made, of which the predictor believed the wrong thing."""

    script: str
    believed: Verdict
    execution: Execution

    @property
    def name(self) -> str:
        """The same for the same script, so that a surprise is kept once."""
        return f"fuzzed-{hashlib.sha256(self.script.encode()).hexdigest()[:10]}"


def execute_scripts(scripts: Sequence[str], tools: Instruments) -> list[Execution]:
    """Runs each script with ``bash -e``, as a step of a workflow, with a canary of its own in its environment.

    All of them run one after the other under one audit, which is what a run costs most.
    """
    canaries = [random_canary() for _ in scripts]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        root = Path(directory)
        lines = []
        for number, (script, canary) in enumerate(zip(scripts, canaries, strict=True)):
            folder = root / str(number)
            folder.mkdir()
            for name in FILES:
                (folder / f"{name}.txt").write_text("text\n")
            (folder / "step.sh").write_text(f"{script}\n")
            lines.append(
                f"(cd {number}; {TAINTED}={canary.id} exec timeout 9 bash -e step.sh); echo $? > {number}/status"
            )
        (root / "all.sh").write_text("\n".join([*lines, "exit 0", ""]))
        environ = {"PATH": f"{tools.programs}:{SYSTEM_PATH}", "HOME": directory}
        secrets = [canary.case for canary in canaries]
        trace = run_traced(["bash", "all.sh"], directory=root, environ=environ, secrets=secrets, timeout=TIMEOUT)
        statuses = [int((root / str(number) / "status").read_text()) for number in range(len(scripts))]
    return [
        Execution(status=status, leaks=leaks_of(canary, trace))
        for status, canary in zip(statuses, canaries, strict=True)
    ]


def leaks_of(canary: Canary, trace: Trace) -> tuple[tuple[str, ...], ...]:
    """The command lines that carried ``canary``, each once, with the id masked."""
    leaks = [tuple(map(canary.masked, one.argv)) for one in trace.execs if any(map(canary.is_in, one.argv))]
    return tuple(dict.fromkeys(leaks))


def executed_verdict(script: str, tools: Instruments) -> Verdict:
    """``leak`` when any process that ``script`` starts has the id, or a piece of it, on its command line."""
    return execute_scripts([script], tools)[0].verdict


def workflow(script: str) -> str:
    """A workflow whose one step is ``script`` with the id in its environment."""
    return HEAD + "".join(f"          {line}\n" if line else "\n" for line in script.split("\n"))


def linted_verdict(script: str) -> Verdict:
    """What the lint says of ``script``: ``leak`` from medium confidence on."""
    with tempfile.TemporaryDirectory(prefix="lint-") as directory:
        path = Path(directory) / WORKFLOW
        path.parent.mkdir(parents=True)
        path.write_text(workflow(script))
        report = lint([path], current=Path(directory))
    found = [one for one in report.findings if one.rule == "confidential-argv" and one.confidence >= Confidence.MEDIUM]
    return "leak" if found else "clean"


@dataclass(kw_only=True)
class Search:
    """What a search did: scripts executed by what they showed, and the surprises among them by name."""

    leaks: int = 0
    clean: int = 0
    failed: int = 0
    surprises: dict[str, Surprise] = field(default_factory=dict)

    def count(self, execution: Execution) -> None:
        if execution.status != 0:
            self.failed += 1
        elif execution.leaks:
            self.leaks += 1
        else:
            self.clean += 1


def random_scripts(number: int, batches: int = BATCHES) -> list[list[str]]:
    """One round of random scripts, in at most so many batches, from seed ``number``."""
    made: list[list[str]] = []

    @seed(number)
    @settings(
        max_examples=batches,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(batch=st.lists(scripts(), min_size=1, max_size=BATCH, unique=True))
    def collect(batch: list[str]) -> None:
        made.append(batch)

    collect()
    return made


def judge_batch(batch: Sequence[str], predict: Predictor, tools: Instruments, search: Search) -> list[Surprise]:
    """Executes a batch; the surprises in it. Scripts that fail or do not end are no cases."""
    try:
        executions = execute_scripts(batch, tools)
    except CaseError:
        search.failed += len(batch)
        return []
    found = []
    for script, execution in zip(batch, executions, strict=True):
        search.count(execution)
        if execution.status == 0 and (believed := predict(script)) != execution.verdict:
            found.append(Surprise(script=script, believed=believed, execution=execution))
    return found


def smaller_scripts(script: str) -> Iterator[str]:
    """Valid scripts that are a part of ``script``, the smallest first: without some lines, then without some words."""
    lines = script.split("\n")
    spans = [(start, end) for start in range(len(lines)) for end in range(start + 1, len(lines) + 1)]
    without_lines = ["\n".join(lines[:start] + lines[end:]) for start, end in spans]
    without_words = [
        "\n".join([*lines[:number], " ".join(words[:place] + words[place + 1 :]), *lines[number + 1 :]])
        for number, words in enumerate(line.split(" ") for line in lines)
        for place in range(len(words) if len(words) > 1 else 0)
    ]
    for candidate in [*sorted(set(without_lines), key=len), *sorted(set(without_words), key=len)]:
        checked = subprocess.run(["bash", "-n"], input=candidate, text=True, capture_output=True, check=False)
        if candidate.strip() and checked.returncode == 0 and not checked.stderr:
            yield candidate


def shrink(surprise: Surprise, predict: Predictor, tools: Instruments, search: Search) -> Surprise:
    """The surprise made smaller, until no part of it surprises."""
    candidates = smaller_scripts(surprise.script)
    while batch := list(islice(candidates, BATCH)):
        found = judge_batch(batch, predict, tools, search)
        if found:
            surprise = min(found, key=lambda one: len(one.script))
            candidates = smaller_scripts(surprise.script)
    return surprise


def fuzz(predict: Predictor, tools: Instruments, *, minutes: float, number: int) -> Search:
    """Rounds of random scripts until the time is over, from seed ``number`` on; surprises are made small."""
    end = time.monotonic() + minutes * 60
    search = Search()
    while time.monotonic() < end:
        for batch in random_scripts(number):
            for surprise in judge_batch(batch, predict, tools, search):
                small = shrink(surprise, predict, tools, search)
                search.surprises[small.name] = small
            if time.monotonic() >= end:
                break
        number += 1
    return search


def keep(surprise: Surprise, directory: Path) -> Path:
    """Writes a surprise as a case. Its truth is stored when the case is executed."""
    verdict = surprise.execution.verdict
    path = directory / f"{surprise.name}.{verdict}.yml"
    directory.mkdir(parents=True, exist_ok=True)
    comment = f"# Found by chance: believed {surprise.believed}, and execution shows {verdict}.\n"
    path.write_text(comment + workflow(surprise.script))
    return path
