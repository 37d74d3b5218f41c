"""The examples of `docs/lint-paid.md` say what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lint.paid.sample import OURS, PATH, analysed, lint_paid

from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.rules import RULES

PAGE = (Path(__file__).parents[3] / "docs" / "lint-paid.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- test: (.+?) -->\n```yaml\n(.*?)```", PAGE, re.DOTALL))
REST = f"""\
    runs-on: ubuntu-24.04
    steps:
      - uses: {OURS}
        with: {{command: gate}}
      - uses: {OURS}
        env: {{KEY: '${{{{ secrets.OPENAI_API_KEY }}}}'}}
        with: {{command: run}}
"""


@pytest.mark.parametrize("name", EXAMPLES)
def test_jobs_that_are_let_by_are_reported(tmp_path: Path, name: str) -> None:
    text = re.sub(r"(    if: .*\n)", lambda found: found[1] + REST, EXAMPLES[name])
    found = lint_paid(tmp_path, f"on: workflow_dispatch\n{text}").of("paid-gate")
    assert found == ["the job `let-by` runs although the gate did not pass"]


def test_the_configuration_is_a_valid_one(tmp_path: Path) -> None:
    section = re.search(r"```yaml\n(lint:.*?)```", PAGE, re.DOTALL)
    assert section is not None
    files = {PATH: "on: push\njobs: {}\n", ".github/runner-e2e.yml": f"version: 1\n{section[1]}"}
    run, document = analysed(tmp_path, files)
    settings = run.repository.settings
    assert settings.provider_secrets == {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    assert settings.paid_workflows.match(".github/workflows/paid-cell.yml")
    assert paid_workflow(run, document) is None


def test_the_number_of_rules() -> None:
    numbers = {13: "Thirteen", 14: "Fourteen", 15: "Fifteen"}
    assert PAGE.splitlines()[1].startswith(numbers[sum(rule.profile == "paid" for rule in RULES)])
