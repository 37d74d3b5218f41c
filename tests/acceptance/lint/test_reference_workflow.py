"""A paid workflow that names the id everywhere is found whole; the same with handles and this action is clean."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from runner_e2e.lint.linter import Report, lint

HERE = Path(__file__).parent / "reference"
ROOT = Path(__file__).parents[3]
MARKER = re.compile(r"# ((?:confidential-[a-z-]+(?:, )?)+)$")


def linted(name: str, root: Path) -> Report:
    shutil.copytree(HERE / name, root / name)
    report = lint([root / name / ".github" / "workflows" / "paid.yml"], current=root / name)
    assert report.problems == ()
    return report


def confidential(report: Report) -> set[tuple[str, int, str]]:
    return {
        (finding.span.path, finding.span.line, finding.rule)
        for finding in report.findings
        if finding.rule.startswith("confidential-")
    }


def test_the_reference_is_found_whole(tmp_path: Path) -> None:
    report = linted("leaky", tmp_path)
    expected = {
        (str(path.relative_to(HERE / "leaky")), number, rule)
        for path in (HERE / "leaky").rglob("*.yml")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := MARKER.search(line))
        for rule in match[1].split(", ")
    }
    assert sorted(confidential(report)) == sorted(expected)


def test_the_way_crosses_the_files(tmp_path: Path) -> None:
    report = linted("leaky", tmp_path)
    summary = next(finding for finding in report.findings if finding.rule == "confidential-summary")
    ways = [(place.span.path.rsplit("/", 1)[-1], place.span.line) for place in summary.flow]
    lines = (HERE / "leaky/.github/workflows/paid.yml").read_text().splitlines()
    given = next(number for number, line in enumerate(lines, 1) if "cell: ${{ matrix.id }}" in line)
    source = next(number for number, line in enumerate(lines, 1) if "matrix: ${{ fromJSON" in line)
    assert ways == [("paid.yml", source), ("paid.yml", given), ("action.yml", 13), ("action.yml", 16)]


def test_with_handles_it_is_clean(tmp_path: Path) -> None:
    assert confidential(linted("handles", tmp_path)) == set()


@pytest.mark.parametrize("folder", ["workflows-templates", ".github/workflows", "action.yml"])
def test_our_own_workflows_are_clean(folder: str) -> None:
    report = lint([ROOT / folder], current=ROOT)
    assert report.files >= 1
    assert confidential(report) == set()
