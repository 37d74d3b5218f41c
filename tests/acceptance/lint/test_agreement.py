"""The lint against what really ran: verdict and line of every case whose truth was executed.

A leak is found when an argv finding of at least medium confidence stands on the command of every witness, and nowhere
else. A clean case has no such finding. What is not followed yet is listed here with its reason, and a case that
agrees may not stand in the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.truth.case import Case, find_cases
from tests.truth.verdict import Truth, read_truth

from runner_e2e.lint.linter import lint
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CASES = [case for case in find_cases(Path(__file__).parent / "cases") if case.truth_path.exists()]

NOT_FOLLOWED = {
    "shell/indirect-unknown.clean": "an indirection by a name that is not known may reach any variable",
    "runner/if-failure.clean": "the outcome of a step is not known: it may have failed",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """``missed`` witnesses and ``unfounded`` findings, as places."""

    leak: bool
    found: bool
    missed: tuple[str, ...]
    unfounded: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not self.missed and not self.unfounded


def outcome(case: Case, folder: Path) -> Outcome:
    """What the lint says of *case*, against its truth."""
    truth, digest = read_truth(case)
    assert digest == case.digest(), f"{case.name} was changed after it was run: run `python -m tests.truth run` again"
    case.lay_out(folder)
    report = lint([folder / ".github" / "workflows" / "case.yml"], current=folder)
    assert report.problems == ()
    found = {
        (finding.span.path, finding.span.line)
        for finding in report.findings
        if finding.rule == "confidential-argv" and finding.confidence >= Confidence.MEDIUM
    }
    return compare(truth, found)


def compare(truth: Truth, found: set[tuple[str, int]]) -> Outcome:
    places = {(witness.file, witness.line, witness.end_line) for witness in truth.witnesses}
    missed = [
        f"{file}:{line}"
        for file, line, end in sorted(places)
        if not any(file == path and line <= at <= end for path, at in found)
    ]
    unfounded = [
        f"{path}:{at}"
        for path, at in sorted(found)
        if not any(file == path and line <= at <= end for file, line, end in places)
    ]
    return Outcome(leak=truth.verdict == "leak", found=bool(found), missed=tuple(missed), unfounded=tuple(unfounded))


def parameters() -> Iterator[object]:
    for case in CASES:
        reason = NOT_FOLLOWED.get(case.name)
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        yield pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", list(parameters()))
def test_the_lint_agrees_with_execution(case: Case, tmp_path: Path) -> None:
    result = outcome(case, tmp_path)
    assert result.missed == ()
    assert result.unfounded == ()


def test_precision_and_recall(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Over the cases in scope, verdict by verdict."""
    results = []
    for number, case in enumerate(CASES):
        if case.name not in NOT_FOLLOWED:
            folder = tmp_path / str(number)
            folder.mkdir()
            results.append(outcome(case, folder))
    right = sum(1 for each in results if each.leak and each.found)
    leaks = sum(1 for each in results if each.leak)
    found = sum(1 for each in results if each.found)
    record_property("cases", len(results))
    record_property("recall", right / leaks)
    record_property("precision", right / found)
    assert right / leaks == 1.0
    assert right / found >= 0.98


def test_the_list_names_cases_that_exist() -> None:
    assert set(NOT_FOLLOWED) <= {case.name for case in CASES}
