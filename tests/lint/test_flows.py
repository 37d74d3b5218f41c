"""The flow through jobs, steps, actions and calls: every line that ends in ``# leak``, and no other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runner_e2e.lint.linter import lint
from runner_e2e.lint.values import Confidence

FLOWS = Path(__file__).parent / "flows"
MARKER = "# leak"


def marked(root: Path) -> set[tuple[str, int]]:
    found = set()
    for path in root.rglob("*"):
        if path.is_file():
            lines = enumerate(path.read_text().splitlines(), 1)
            found |= {(str(path.relative_to(root)), number) for number, line in lines if line.endswith(MARKER)}
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in FLOWS.iterdir()))
def test_exactly_the_marked_lines_are_reported(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    shutil.copytree(FLOWS / name, root)
    # The workflow alone: what it calls is reached from it.
    report = lint([root / ".github" / "workflows" / "w.yml"], current=root)
    found = {
        (finding.span.path, finding.span.line)
        for finding in report.findings
        if finding.rule in {"confidential-argv", "secret-argv"} and finding.confidence >= Confidence.MEDIUM
    }
    assert report.problems == ()
    assert sorted(found) == sorted(marked(root))
    assert not [finding for finding in report.findings if finding.rule == "invalid-expression"]
