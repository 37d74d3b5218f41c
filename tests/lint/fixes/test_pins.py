"""Actions are named by a commit that somebody knows, and never by another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.fixes.steps import read

from runner_e2e.lint.commits import LocalPins
from runner_e2e.lint.finding import Finding
from runner_e2e.lint.fixes.pins import repair
from runner_e2e.lint.fixes.unchanged import applied, unchanged_elsewhere
from runner_e2e.lint.repository import Repository
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.lint.commits import PinResolver

A, B = "a" * 40, "b" * 40


class Known:
    """A resolver that is certain."""

    certain = True

    def resolve(self, repository: str, ref: str) -> str | None:
        return {("o/r", "v4"): A, ("o/r", "odd"): "not a commit"}.get((repository, ref))


def pinned(text: str, pins: PinResolver | None, folder: Path) -> tuple[str, bool] | None:
    before, _, after = text.partition("«")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    span = Span(path="w.yml", line=line, column=column, end_line=line, end_column=column + 1)
    document = read(before + after)
    finding = Finding(rule="r", level="error", confidence=Confidence.HIGH, span=span, message="")
    repository = Repository(folder)
    repository.pins = pins
    fix = repair(finding, document, repository)
    if fix is None:
        return None
    assert unchanged_elsewhere(document.root, fix.edits)
    return applied(before + after, fix.edits), fix.safe


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- uses: «o/r@v4\n", f"- uses: o/r@{A} # v4\n"),
        ("- uses: «o/r/sub@v4\n", f"- uses: o/r/sub@{A} # v4\n"),
        ("- uses: «o/r@v4", f"- uses: o/r@{A} # v4"),
        ("- uses: «'o/r@v4' # why\r\n", f"- uses: 'o/r@{A}' # v4 # why\r\n"),
        ("- {uses: «o/r@v4, with: {a: b}}\n", f"- {{uses: o/r@{A}, with: {{a: b}}}} # v4\n"),
    ],
)
def test_the_commit_and_the_version_are_written(before: str, after: str, tmp_path: Path) -> None:
    assert pinned(before, Known(), tmp_path) == (after, True)


@pytest.mark.parametrize(
    "text",
    [
        "- uses: «o/r@v5\n",
        "- uses: «o/r@odd\n",
        "- uses: «o/r\n",
        "- uses: «docker://alpine@v4\n",
        "- uses: «./local@v4\n",
        "- {uses: «o/r@v4, name: '\n  x # y'}\n",
    ],
)
def test_what_nobody_knows_is_left_alone(text: str, tmp_path: Path) -> None:
    assert pinned(text, Known(), tmp_path) is None


def test_without_a_resolver_nothing_is_known(tmp_path: Path) -> None:
    assert pinned("- uses: «o/r@v4\n", None, tmp_path) is None


def test_other_files_of_the_repository_know_commits(tmp_path: Path) -> None:
    pins = LocalPins(
        lambda: [f"- uses: O/R/sub@{A} # v4\n", f"    uses: o/other@{A} # v1\n    uses: o/other@{B} # v1\n"]
    )
    # somebody wrote it down: not certain
    assert pinned("- uses: «o/r@v4\n", pins, tmp_path) == (f"- uses: o/r@{A} # v4\n", False)
    assert pinned("- uses: «o/r@v4.1\n", pins, tmp_path) is None
    assert pinned("- uses: «o/other@v1\n", pins, tmp_path) is None  # two commits for one version
