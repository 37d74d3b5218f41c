"""Comments that ignore nothing go, and what stands around them stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.fixes.steps import read

from runner_e2e.lint.finding import Finding
from runner_e2e.lint.fixes.comments import repair
from runner_e2e.lint.fixes.unchanged import applied, unchanged_elsewhere
from runner_e2e.lint.repository import Repository
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1 «# runner-e2e: ignore[x] why»\nb: 2\n", "a: 1\nb: 2\n"),
        ("a: 1\n  «# runner-e2e: ignore[x] why»\r\nb: 2\r\n", "a: 1\nb: 2\r\n"),
        ("a: 1 # v4 «# runner-e2e: ignore[x]»\n", "a: 1 # v4\n"),
        ("a: 1\n«# runner-e2e: ignore[x]»", "a: 1"),
        ("a: 1 «# runner-e2e: ignore[y, x] why»\n", "a: 1 # runner-e2e: ignore[y] why\n"),
        ("«# runner-e2e: ignore[x]»\na: 1\n", "a: 1\n"),
        ("a: |\n  b «# runner-e2e: ignore[x]»\n  c\n", "a: |\n  b\n  c\n"),
        ("a: 1 «# runner-e2e: ignore[y] why»\n", None),
        ("a: 1 «# something else»\n", None),
    ],
)
def test_the_comment_goes(before: str, after: str | None, tmp_path: Path) -> None:
    start, end = before.index("«"), before.index("»") - 1
    text = before.replace("«", "").replace("»", "")
    document = read(text)
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    span = Span(path="w.yml", line=line, column=column, end_line=line, end_column=column + end - start)
    message = "nothing is ignored here for `x`"
    finding = Finding(rule="r", level="warning", confidence=Confidence.HIGH, span=span, message=message)
    fix = repair(finding, document, Repository(tmp_path))
    assert (applied(text, fix.edits) if fix is not None else None) == after
    assert fix is None or unchanged_elsewhere(document.root, fix.edits)
