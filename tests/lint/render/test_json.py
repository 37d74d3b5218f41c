"""`runner-e2e.lint/v1` against its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
from tests.lint.render.reports import PROBLEM, WORKFLOW, finding, fix_at, report

import runner_e2e.lint
from runner_e2e.lint.render import render

if TYPE_CHECKING:
    from runner_e2e.lint.linter import Report

SCHEMA = json.loads((Path(runner_e2e.lint.__file__).parent / "schemas" / "lint-v1.json").read_text())


def valid(made: Report) -> dict[str, object]:
    document: dict[str, object] = json.loads(render(made, "json"))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_real_findings_fit_the_schema(real: Report) -> None:
    document = valid(real)
    assert isinstance(document["findings"], list)
    (first, _) = document["findings"]
    assert first["labels"] == ["inputs.selected-id"]
    assert first["edits"] is None


def test_fixes_say_which_text_comes_where(repository: Path) -> None:
    start = WORKFLOW.index('"$ID"')
    document = valid(report(finding(), problems=(PROBLEM,), fixes={0: fix_at(start, start + 5, '"x"')}))
    assert isinstance(document["findings"], list)
    edits = document["findings"][0]["edits"]
    assert edits["title"] == "take it from the environment"
    assert edits["changes"] == [
        {"path": ".github/workflows/w.yml", "line": 11, "column": 33, "end_line": 11, "end_column": 38, "text": '"x"'},
        {"path": "act/action.yml", "line": 1, "column": 1, "end_line": 1, "end_column": 1, "text": "# a\n"},
    ]


def test_rules_of_actionlint_fit_too() -> None:
    valid(report(finding(rule="actionlint/syntax-check")))
