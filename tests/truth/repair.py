"""What a fix does to a case when both are executed: the leak is gone, and everything else is as it was."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.truth.canary import Canary, random_canary
from tests.truth.case import WORKFLOW, Case, CaseError
from tests.truth.execution import Instruments, judge, run_case
from tests.truth.lines import read_notes

from runner_e2e.lint.fix import Outcome, apply_fixes
from runner_e2e.lint.fix_files import write_changes
from runner_e2e.lint.linter import lint

if TYPE_CHECKING:
    from tests.truth.verdict import Truth

_OUTPUT = re.compile(r"^\[[^\]]*\]   \| (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one execution showed: its truth, and the lines that its scripts wrote."""

    truth: Truth
    output: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """A case before and after its fixes, executed with the same canary."""

    rules: frozenset[str]
    """Rules of which findings were fixed."""
    remaining: frozenset[str]
    """Rules of which findings remain, of at least medium confidence."""
    before: Run
    after: Run

    def complaints(self) -> list[str]:
        """What the fix broke, or only seemed to repair."""
        found: list[str] = []
        if self.after.output != self.before.output:
            found.append(f"the output differs: {self.before.output} became {self.after.output}")
        if "confidential-argv" not in self.remaining and self.after.truth.verdict == "leak":
            found.append(f"the lint is content, and the id is on a command line: {self.after.truth.witnesses}")
        if "confidential-script-file" not in self.remaining and self.after.truth.script:
            found.append("the lint is content, and a script file holds the id")
        if self.before.truth.verdict == "clean" and self.after.truth.verdict == "leak":
            found.append("it leaks now")
        return found


def repaired(case: Case, tools: Instruments, *, unsafe: bool) -> Repaired | None:
    """Fixes *case*, and executes it before and after; None when nothing is fixed."""
    with tempfile.TemporaryDirectory(prefix="repair-") as directory:
        folder = Path(directory) / f"{case.stem}.{case.belief}"
        case.lay_out(folder)
        outcome = fixed(folder, unsafe=unsafe)
        if not outcome.changes:
            return None
        write_changes(outcome.changes)
        canary = random_canary()
        after = Case(path=folder, topic=case.topic, stem=case.stem, belief=case.belief)
        return Repaired(
            rules=frozenset(finding.rule for finding, _ in outcome.applied),
            remaining=frozenset(finding.rule for finding in outcome.report.findings if finding.confidence > 1),
            before=run(case, tools, canary),
            after=run(after, tools, canary),
        )


def fixed(folder: Path, *, unsafe: bool) -> Outcome:
    """The fixes of the workflow in *folder*, a repository."""
    workflow = folder / WORKFLOW
    return apply_fixes(lambda texts: lint([workflow], current=folder, texts=texts), current=folder, unsafe=unsafe)


def run(case: Case, tools: Instruments, canary: Canary) -> Run:
    """One execution."""
    with tempfile.TemporaryDirectory(prefix="case-") as directory:
        root = Path(directory)
        trace = run_case(case, tools, root, canary, recorded=True)
        notes = read_notes((root / "notes").read_bytes())
    if trace.status != 0:
        raise CaseError(f"{case.path}: the workflow failed with status {trace.status}\n{trace.output}")
    truth = judge(case, trace, notes, canary, recorded=True)
    return Run(truth=truth, output=tuple(_OUTPUT.findall(trace.output)))
