"""The report as ``runner-e2e.lint/v1`` (``lint/schemas/lint-v1.json``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from runner_e2e.lint.render.sources import edited, inert_json

if TYPE_CHECKING:
    from runner_e2e.errors import Problem
    from runner_e2e.lint.finding import Finding, Fix
    from runner_e2e.lint.linter import Report
    from runner_e2e.lint.render.view import View
    from runner_e2e.lint.values import Span

__all__ = ["SCHEMA", "render"]

SCHEMA = "runner-e2e.lint/v1"


def render(report: Report, view: View) -> str:
    """One JSON object, with a line feed at its end."""
    findings = [
        {**_finding(finding), "edits": _edits(report.fixes.get(at), view)} for at, finding in enumerate(report.findings)
    ]
    document = {
        "schema": SCHEMA,
        "files": report.files,
        "findings": findings,
        "problems": [_problem(problem) for problem in report.problems],
    }
    return inert_json(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"


def _span(span: Span) -> dict[str, object]:
    return {
        "path": span.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "level": finding.level,
        "confidence": finding.confidence.name.lower(),
        **_span(finding.span),
        "message": finding.message,
        "why": finding.why,
        "fix": finding.fix,
        "labels": list(finding.labels),
        "flow": [{**_span(place.span), "note": place.note} for place in finding.flow],
    }


def _edits(fix: Fix | None, view: View) -> dict[str, object] | None:
    """The fix of a finding; places as those of findings, in the file as it is now."""
    if fix is None:
        return None
    changes = [{**_span(edited(edit, view.sources)), "text": edit.text} for edit in fix.edits]
    return {"title": fix.title, "safe": fix.safe, "changes": changes}


def _problem(problem: Problem) -> dict[str, object]:
    place = problem.place
    return {
        "path": place.path if place else "",
        "line": place.line if place else 0,
        "column": place.column if place else 0,
        "message": problem.what,
        "why": problem.why,
        "fix": problem.fix,
    }
