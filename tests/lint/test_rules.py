"""Every rule by its data: what it says about `bad.yml`, that `ok.yml` is clean, and that its page shows both."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.cli.lint_run import with_fixes
from runner_e2e.lint.linter import Report, lint
from runner_e2e.lint.render import render
from runner_e2e.lint.render.text import LEVELS
from runner_e2e.lint.rules import RULES

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Rule

HERE = Path(__file__).parent
FIXTURES = HERE / "rules"
PAGES = HERE.parent.parent / "docs" / "rules"
IDS = [rule.id for rule in RULES]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixtures are no part of this repository, whose catalog says what is confidential."""
    monkeypatch.chdir(tmp_path)


def linted(name: str, rule: str) -> Report:
    """The report about one fixture, the findings of its rule. What it refers to is in the folder `files` beside it."""
    if (FIXTURES / rule / "files").is_dir():
        shutil.copytree(FIXTURES / rule / "files", ".", dirs_exist_ok=True)
    shutil.copy(FIXTURES / rule / name, name)
    report = lint([Path(name)], current=Path.cwd())
    assert report.problems == ()
    return replace(report, findings=tuple(finding for finding in report.findings if finding.rule == rule))


@pytest.mark.parametrize("rule", IDS)
def test_bad_is_reported_exactly(rule: str) -> None:
    report = linted("bad.yml", rule)
    assert report.findings
    assert render(with_fixes(report), "text") == (FIXTURES / rule / "bad.txt").read_text()


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_the_level_of_a_rule_is_the_severest_of_its_findings(rule: Rule) -> None:
    levels = {finding.level for finding in linted("bad.yml", rule.id).findings}
    assert min(levels, key=LEVELS.index) == rule.level


@pytest.mark.parametrize("rule", IDS)
def test_ok_is_clean(rule: str) -> None:
    assert linted("ok.yml", rule).findings == ()


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_the_page_shows_what_is_executed(rule: Rule) -> None:
    page = (PAGES / f"{rule.id}.md").read_text()
    assert page.startswith(f"# {rule.id}\n")
    assert rule.explanation in page
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)
    folder = FIXTURES / rule.id
    assert blocks[:3] == [
        ("yaml", (folder / "bad.yml").read_text()),
        ("text", (folder / "bad.txt").read_text()),
        ("yaml", (folder / "ok.yml").read_text()),
    ]


def test_rules_fixtures_and_pages_are_the_same_set() -> None:
    assert len(set(IDS)) == len(IDS)
    assert {path.name for path in FIXTURES.iterdir()} == set(IDS)
    assert {path.stem for path in PAGES.glob("*.md")} == set(IDS)
    modules = {path.stem for path in (HERE.parent.parent / "src/runner_e2e/lint/rules").glob("*.py")} - {"__init__"}
    assert {name.replace("_", "-") for name in modules} == set(IDS)
