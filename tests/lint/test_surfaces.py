"""The public surfaces: every line that ends in ``# name``, ``# log`` … is reported by that rule, and no other line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from runner_e2e.lint.linter import lint
from runner_e2e.lint.values import Confidence

CASES = Path(__file__).parent / "surfaces"
RULES = {
    "name": "confidential-name",
    "log": "confidential-log",
    "summary": "confidential-summary",
    "output": "confidential-output-unmasked",
    "file": "confidential-file",
}
MARKER = re.compile(rf"# ((?:{'|'.join(RULES)})(?:, (?:{'|'.join(RULES)}))*)$")


def marked(root: Path) -> set[tuple[str, int, str]]:
    found = set()
    for path in root.rglob("*"):
        if path.is_file():
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if match := MARKER.search(line):
                    found |= {(str(path.relative_to(root)), number, RULES[word]) for word in match[1].split(", ")}
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir()))
def test_exactly_the_marked_lines_are_reported(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    shutil.copytree(CASES / name, root)
    # The workflow alone: what it calls is reached from it.
    report = lint([root / ".github" / "workflows" / "w.yml"], current=root)
    found = {
        (finding.span.path, finding.span.line, finding.rule)
        for finding in report.findings
        if finding.rule in RULES.values() and finding.confidence >= Confidence.MEDIUM
    }
    assert report.problems == ()
    assert sorted(found) == sorted(marked(root))
