"""The report as commands of the CI runner: annotations on the changed lines, and the rest in the log.

GitHub shows 10 annotations of a level for a step ("Workflow commands for GitHub Actions"), so further findings would
vanish; they are written as plain lines instead, and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e import gha
from runner_e2e.errors import Place
from runner_e2e.lint.render.sources import inert, visible
from runner_e2e.lint.render.text import LEVELS, counted, summary

if TYPE_CHECKING:
    from runner_e2e.errors import Problem
    from runner_e2e.lint.finding import Finding, Level
    from runner_e2e.lint.linter import Report
    from runner_e2e.lint.render.view import View

__all__ = ["MOST_OF_A_LEVEL", "render"]

MOST_OF_A_LEVEL = 10
_NAMES: dict[Level, gha.Level] = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, view: View) -> str:
    """Problems first, then the surest findings of each level; a last line sums up."""
    lines = [_problem(problem, view) for problem in report.problems[:MOST_OF_A_LEVEL]]
    rest: list[str] = [_plain(str(problem)) for problem in report.problems[MOST_OF_A_LEVEL:]]
    room = MOST_OF_A_LEVEL - len(lines)
    for level in LEVELS:
        findings = [finding for finding in report.findings if finding.level == level]
        most = room if level == "error" else MOST_OF_A_LEVEL
        # The surest first; `sorted` keeps the order of the files among equals.
        ordered = sorted(findings, key=lambda finding: -finding.confidence)
        lines += [_annotation(finding, view) for finding in ordered[:most]]
        rest += [_plain(f"{each.span}: {each.level}: {each.message} [{each.rule}]") for each in ordered[most:]]
    if rest:
        lines.append(f"{counted(len(rest), 'further message')} without an annotation, for GitHub shows 10 of a level:")
        lines += [f"- {line}" for line in rest]
    lines.append(summary(report))
    return "\n".join(lines) + "\n"


def _problem(problem: Problem, view: View) -> str:
    lines = (problem.what, problem.why and f"why: {problem.why}", problem.fix and f"fix: {problem.fix}")
    text = "\n".join(filter(None, lines))
    path = view.in_repository(problem.place.path) if problem.place else None
    if problem.place is None or path is None:
        return _command("error", f"{problem.place}: {text}" if problem.place else text, "runner-e2e lint")
    place = Place(path=path, line=problem.place.line, column=problem.place.column)
    return _command("error", text, "runner-e2e lint", place)


def _annotation(finding: Finding, view: View) -> str:
    lines = [finding.message]
    lines += [f"why: {finding.why}"] if finding.why else []
    lines += [f"fix: {finding.fix}"] if finding.fix else []
    lines += [f"{number}. {place.span}: {place.note}" for number, place in enumerate(finding.flow, 1)]
    span, path = finding.span, view.in_repository(finding.span.path)
    level, title = _NAMES[finding.level], f"{finding.rule} ({finding.confidence.name.lower()} confidence)"
    if path is None:
        return _command(level, f"{span}: " + "\n".join(lines), title)
    place = Place(path=path, line=span.line, column=span.column)
    end = Place(path=path, line=span.end_line, column=span.end_column)
    return _command(level, "\n".join(lines), title, place, end)


def _command(level: gha.Level, text: str, title: str, place: Place | None = None, end: Place | None = None) -> str:
    """An annotation that rewrites no terminal either, whatever the names of files are."""
    return visible(gha.annotation(level, text, title=title, place=place, end=end))


def _plain(text: str) -> str:
    """One line of the log that the runner does not take for a command."""
    return inert(" ".join(visible(text).split()))
