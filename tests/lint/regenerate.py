"""Writes what the lint says about each rule's `bad.yml` anew, there and on the rule's page: a diff to be read.

Run from anywhere: ``python3 -m tests.lint.regenerate [RULE…]``. `tests/lint/test_rules.py` compares the same texts.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.cli.lint_run import with_fixes
from runner_e2e.lint.fix import apply_fixes
from runner_e2e.lint.fix_files import unified_diff
from runner_e2e.lint.linter import lint
from runner_e2e.lint.render import render
from runner_e2e.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
FIXTURES = HERE / "rules"
PAGES = HERE.parent.parent / "docs" / "rules"


def said(rule: str) -> str:
    """The report about `bad.yml` of one rule, findings of others left out."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if (FIXTURES / rule / "files").is_dir():
            shutil.copytree(FIXTURES / rule / "files", ".", dirs_exist_ok=True)
        shutil.copy(FIXTURES / rule / "bad.yml", "bad.yml")
        report = lint([Path("bad.yml")], current=Path.cwd())
        found = tuple(finding for finding in report.findings if finding.rule == rule)
        text = render(with_fixes(replace(report, findings=found)), "text")
        os.chdir("/")
    return text


def repaired(rule: str) -> tuple[str, str]:
    """What ``--fix=all`` makes of `bad.yml` of one rule, and the lines of the patch after the names of the files."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if (FIXTURES / rule / "files").is_dir():
            shutil.copytree(FIXTURES / rule / "files", ".", dirs_exist_ok=True)
        shutil.copy(FIXTURES / rule / "bad.yml", "bad.yml")
        here = Path.cwd()
        outcome = apply_fixes(
            lambda texts: lint([Path("bad.yml")], current=here, texts=texts), current=here, unsafe=True, only=[rule]
        )
        os.chdir("/")
    changes = [change for change in outcome.changes if change.shown == "bad.yml"]
    return changes[0].after, "".join(unified_diff(changes).splitlines(keepends=True)[2:])


def main(rules: list[str]) -> int:
    for rule in rules or [rule.id for rule in RULES]:
        text = said(rule)
        (FIXTURES / rule / "bad.txt").write_text(text)
        page = PAGES / f"{rule}.md"
        blocks: Iterator[str] = iter(
            [(FIXTURES / rule / "bad.yml").read_text(), text, (FIXTURES / rule / "ok.yml").read_text()]
        )
        if next(each for each in RULES if each.id == rule).repair is not None:
            after, patch = repaired(rule)
            (FIXTURES / rule / "fixed.yml").write_text(after)
            blocks = itertools.chain(blocks, [patch])
            if "\n```diff\n" not in page.read_text():
                page.write_text(
                    page.read_text().rstrip("\n") + "\n\n## Fix\n`--fix=all` makes of `bad.yml`:\n```diff\n```\n"
                )
        parts = re.split(r"(?<=\n)(```\w+\n)(.*?)(?=```)", page.read_text(), flags=re.DOTALL)
        parts[2::3] = [next(blocks, old) for old in parts[2::3]]
        page.write_text("".join(parts))
        print(rule)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
