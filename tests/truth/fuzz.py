"""Random scripts, executed: what a predictor believes of them against what the kernel saw."""

from __future__ import annotations

import hashlib
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from tests.truth.canary import Canary, random_canary
from tests.truth.case import WORKFLOW, CaseError, Verdict
from tests.truth.execution import SYSTEM_PATH, Instruments
from tests.truth.grammar import FILES, TAINTED, scripts
from tests.truth.trace import Trace, run_traced

from runner_e2e.lint.linter import lint
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Predictor = Callable[[str], Verdict]

TIMEOUT = 60.0
EXAMPLES = 50
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


class WrongBeliefError(Exception):
    """Raised inside a hypothesis run, so that it makes the script smaller."""

    def __init__(self, surprise: Surprise) -> None:
        super().__init__(surprise.name)
        self.surprise = surprise


def find_surprise(predict: Predictor, tools: Instruments, search: Search, *, number: int) -> Surprise | None:
    """One round of random scripts from seed ``number``; the shrunk surprise it ends with, None when there is none.

    Scripts that fail or do not end are no cases. What ``search`` holds already is not found again.
    """
    smallest: list[Surprise] = []

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(batch=st.lists(scripts(), min_size=1, max_size=BATCH))
    def every_belief_is_right(batch: list[str]) -> None:
        try:
            executions = execute_scripts(batch, tools)
        except CaseError:
            return
        for script, execution in zip(batch, executions, strict=True):
            search.count(execution)
            surprise = Surprise(script=script, believed=predict(script), execution=execution)
            wrong = execution.status == 0 and surprise.believed != execution.verdict
            if wrong and surprise.name not in search.surprises:
                smallest.append(surprise)
                raise WrongBeliefError(surprise)

    try:
        every_belief_is_right()
    except WrongBeliefError as wrong:
        return wrong.surprise
    except HypothesisException:
        # A script that is not deterministic after all: the last one that surprised is still a fact.
        return smallest[-1] if smallest else None
    return None


def fuzz(predict: Predictor, tools: Instruments, *, minutes: float, number: int) -> Search:
    """Rounds of random scripts until the time is over, from seed ``number`` on."""
    end = time.monotonic() + minutes * 60
    search = Search()
    while time.monotonic() < end:
        surprise = find_surprise(predict, tools, search, number=number)
        number += 1
        if surprise:
            search.surprises[surprise.name] = surprise
    return search


def keep(surprise: Surprise, directory: Path) -> Path:
    """Writes a surprise as a case. Its truth is stored when the case is executed."""
    verdict = surprise.execution.verdict
    path = directory / f"{surprise.name}.{verdict}.yml"
    directory.mkdir(parents=True, exist_ok=True)
    comment = f"# Found by chance: believed {surprise.believed}, and execution shows {verdict}.\n"
    path.write_text(comment + workflow(surprise.script))
    return path
