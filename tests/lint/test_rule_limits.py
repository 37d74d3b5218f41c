"""The section "Limits" of every rule's page tells the truth: each example is linted, and reported or not as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner_e2e.lint.linter import lint
from runner_e2e.lint.rules import RULES

PAGES = Path(__file__).parents[2] / "docs" / "rules"
IDS = [rule.id for rule in RULES]


def limits_of(rule: str) -> list[tuple[bool, str]]:
    """The examples of the page: whether its first comment says that it is reported, and the workflow."""
    section = (PAGES / f"{rule}.md").read_text().partition("\n## Limits\n")[2]
    examples = re.findall(r"^```yaml\n(# (not )?reported\b.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert len(examples) == section.count("```") // 2
    return [(not negation, text) for text, negation, *_ in examples]


@pytest.mark.parametrize("rule", IDS)
def test_limits_are_as_the_page_says(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    path = Path("example.yml")
    examples = limits_of(rule)
    assert examples
    for reported, text in examples:
        path.write_text(text)
        report = lint([path], current=tmp_path)
        assert report.problems == ()
        assert any(finding.rule == rule for finding in report.findings) is reported, text
