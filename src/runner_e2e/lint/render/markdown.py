"""The report for the page of a run: a table, then each finding with its lines and its way, folded."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from runner_e2e.gha import code_span
from runner_e2e.lint.render.descriptions import describe
from runner_e2e.lint.render.sources import one_line, visible
from runner_e2e.lint.render.text import LEVELS, counted, summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.errors import Problem
    from runner_e2e.lint.finding import Finding, Level
    from runner_e2e.lint.linter import Report
    from runner_e2e.lint.render.view import View
    from runner_e2e.lint.values import Span

__all__ = ["MAXIMUM_BYTES", "render"]

MAXIMUM_BYTES = 900_000
"""A step summary holds 1 MiB; the rest is left for what else a step has to say."""

_MARKS: dict[Level, str] = {"error": "🔴", "warning": "🟠", "note": "🔵"}
_WIDEST = 200
_LONGEST = 2000
_UNFOLDED = 3
"""Up to so many findings are shown whole at once."""

_CODE = re.compile(r"`([^`\n]+)`")


def render(report: Report, view: View) -> str:
    """A heading, problems, a table by rule, and the findings; what would pass the limit is counted."""
    mark = "❌" if report.problems or any(each.level == "error" for each in report.findings) else "✅"
    mark = "⚠️" if mark == "✅" and report.findings else mark
    blocks = [f"### {mark} Workflow lint: {summary(report)}\n"]
    if report.problems:
        blocks.append(_problems(report.problems, view))
    if report.findings:
        blocks.append(_by_rule(report.findings))
    unfold = len(report.findings) <= _UNFOLDED
    return _within_limit(blocks, [_finding(each, view, unfold=unfold) for each in _gravest_first(report.findings)])


def _gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors first, of these the surest; otherwise in the order of the files."""
    return sorted(findings, key=lambda each: (LEVELS.index(each.level), -each.confidence))


def _within_limit(head: list[str], findings: list[str]) -> str:
    out, size = list(head), sum(len(block.encode()) for block in head)
    for number, block in enumerate(findings):
        size += len(block.encode()) + 1
        if size > MAXIMUM_BYTES:
            out.append(f"_{counted(len(findings) - number, 'more finding')}: the summary is full._\n")
            break
        out.append(block)
    return "\n".join(out)


def _problems(problems: Iterable[Problem], view: View) -> str:
    rows = ["| Could not be checked | Problem | What to do |", "| --- | --- | --- |"]
    for problem in problems:
        place = problem.place
        shown = _place(str(place), place.path, place.line, view) if place else ""
        what = f"{problem.what}: {problem.why}" if problem.why else problem.what
        rows.append(f"| {shown} | {_prose(what)} | {_prose(problem.fix)} |")
    return "\n".join(rows) + "\n"


def _by_rule(findings: Iterable[Finding]) -> str:
    counts = Counter((finding.level, finding.rule) for finding in findings)
    rows = ["| | Rule | Findings | About |", "| --- | --- | ---: | --- |"]
    for (level, rule), count in sorted(counts.items(), key=lambda item: (LEVELS.index(item[0][0]), item[0][1])):
        about = describe(rule)
        rows.append(f"| {_MARKS[level]} {level} | [{rule}]({about.page}) | {count} | {_prose(about.summary)} |")
    return "\n".join(rows) + "\n"


def _finding(finding: Finding, view: View, *, unfold: bool) -> str:
    span = finding.span
    link = view.link(span.path, span.line)
    title = f"{_MARKS[finding.level]} {_prose(finding.message)}"
    below = f"{_prose(str(span))} · {finding.rule} · {finding.confidence.name.lower()} confidence"
    lines = [
        f"<details{' open' if unfold else ''}><summary>{title}<br><sub>{below}</sub></summary>\n",
        *([f"[Line {span.line} at this commit]({link})\n"] if link else []),
        *_excerpt(span, view),
    ]
    lines += [f"**Why:** {_prose(finding.why)}\n"] if finding.why else []
    lines += [f"**Fix:** {_prose(finding.fix)}\n"] if finding.fix else []
    if finding.flow:
        places = ((_place(str(each.span), each.span.path, each.span.line, view), each) for each in finding.flow)
        lines += [f"{number}. {shown}: {_prose(each.note)}" for number, (shown, each) in enumerate(places, 1)]
        lines.append("")
    return "\n".join([*lines, "</details>\n"])


def _excerpt(span: Span, view: View) -> list[str]:
    """The line as a block of code, whose fence is longer than any in the line."""
    text = visible(view.sources.line(span.path, span.line)).strip()
    if not text:
        return []
    text = text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}yaml\n{text}\n{fence}\n"]


def _place(shown: str, path: str, line: int, view: View) -> str:
    link, shown = view.link(path, line) if line else "", one_line(shown)
    return f"[{code_span(shown)}]({link})" if link else code_span(shown)


def _prose(text: str) -> str:
    """A message in Markdown, also in a table's cell: what stands in backticks as code, the rest as it is."""
    parts = _CODE.split(re.sub(r"\s", " ", visible(text)))
    return "".join(f"<code>{_spaced(part)}</code>" if at % 2 else _spaced(part) for at, part in enumerate(parts))


def _spaced(text: str) -> str:
    """Text without effect, with the blanks at its ends."""
    kept = code_span(text, limit=_LONGEST)
    return f"{text[: len(text) - len(text.lstrip())]}{kept}{text[len(text.rstrip()) :]}" if kept else text
