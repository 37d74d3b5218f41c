"""The report for a reader: place, fact, the line with a caret below, cause, fix, and the way as a numbered path."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from runner_e2e.lint.render.sources import inert, one_line, visible

if TYPE_CHECKING:
    from runner_e2e.errors import Problem
    from runner_e2e.lint.finding import Finding, FlowPlace, Level
    from runner_e2e.lint.linter import Report
    from runner_e2e.lint.render.view import View
    from runner_e2e.lint.values import Span

__all__ = ["LEVELS", "counted", "render", "summary"]

LEVELS: tuple[Level, ...] = ("error", "warning", "note")
"""The gravest first."""

_WIDEST = 160
_TABLE_FROM = 20
"""Findings from which on their rules are counted at the end."""

_CODES = {"error": "1;31", "warning": "1;33", "note": "1;36", "place": "1", "rule": "2", "number": "34", "word": "1"}


def render(report: Report, view: View) -> str:
    """All problems and findings, and what they sum up to; with the codes of a terminal's colours where wanted."""
    writer = _Writer(view)
    blocks = [writer.problem(problem) for problem in report.problems]
    blocks += [writer.finding(finding) for finding in report.findings]
    return inert("\n".join([*blocks, *writer.end(report)])) + "\n"


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def summary(report: Report) -> str:
    """``2 errors, 1 warning in 5 files, 1 could not be checked (3 ignored by comments)``."""
    counts = Counter(finding.level for finding in report.findings)
    found = ", ".join(counted(counts[level], level) for level in LEVELS if counts[level]) or "no findings"
    unread = f", {len(report.problems)} could not be checked" if report.problems else ""
    left_out = ((report.ignored, "ignored by comments"), (report.known, "in the baseline"))
    besides = ", ".join(f"{count:,} {why}" for count, why in left_out if count)
    return f"{found} in {counted(report.files, 'file')}{unread}{f' ({besides})' if besides else ''}"


class _Writer:
    def __init__(self, view: View) -> None:
        self.colour = view.colour
        self.sources = view.sources

    def paint(self, text: str, code: str) -> str:
        return f"\x1b[{_CODES[code]}m{text}\x1b[0m" if self.colour else text

    def labelled(self, label: str, text: str) -> list[str]:
        return [f"  {self.paint(label + ':', 'word')} {visible(text)}"] if text else []

    def problem(self, problem: Problem) -> str:
        place = self.paint(f"{one_line(str(problem.place))}:", "place") + " " if problem.place else ""
        lines = [place + self.paint(visible(problem.what), "error")]
        lines += self.labelled("why", problem.why) + self.labelled("fix", problem.fix)
        return "\n".join(lines) + "\n"

    def finding(self, finding: Finding) -> str:
        rule = self.paint(f"[{finding.rule}, {finding.confidence.name.lower()} confidence]", "rule")
        place = self.paint(f"{one_line(str(finding.span))}:", "place")
        out = [f"{place} {self.paint(finding.level + ':', finding.level)} {one_line(finding.message)} {rule}"]
        out += self.excerpt(finding.span, finding.level)
        out += self.labelled("why", finding.why) + self.labelled("fix", finding.fix)
        if finding.flow:
            out.append(f"  {self.paint('way:', 'word')}")
            out += [line for number, place in enumerate(finding.flow, 1) for line in self.step(number, place, finding)]
        return "\n".join(out) + "\n"

    def step(self, number: int, place: FlowPlace, finding: Finding) -> list[str]:
        """One place of the way; its line too when it stands in another file, where the reader is not looking."""
        lines = [f"    {number}. {one_line(str(place.span))}: {one_line(place.note)}"]
        if place.span.path != finding.span.path:
            text = self.sources.line(place.span.path, place.span.line).strip()
            if text:
                text = visible(text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…")
                lines.append(f"       {self.paint(f'{place.span.line} |', 'number')} {text}")
        return lines

    def excerpt(self, span: Span, level: str) -> list[str]:
        """The first line of *span* and carets below what is meant, whatever width the characters have."""
        line = self.sources.line(span.path, span.line)
        if not line or span.column > len(line):
            return []
        start = span.column - 1
        end = span.end_column - 1 if span.end_line == span.line else len(line)
        shown = visible(line.expandtabs(4) if "\t" in line else line)
        before = _width(line[:start].expandtabs(4))
        marked = max(1, _width(line[: max(end, start)].expandtabs(4)) - before)
        if len(shown) > _WIDEST:
            cut = max(0, min(before - 20, len(shown) - _WIDEST))
            shown, before = ("…" if cut else "") + shown[cut : cut + _WIDEST], before - cut + (1 if cut else 0)
            marked = min(marked, _WIDEST - before) if before < _WIDEST else 1
        number = str(span.line)
        carets = self.paint("^" * max(1, marked), level)
        return [
            f"  {self.paint(f'{number} |', 'number')} {shown}",
            f"  {self.paint(' ' * len(number) + ' |', 'number')} {' ' * before}{carets}",
        ]

    def end(self, report: Report) -> list[str]:
        """How often which rule was broken, when there are many findings, and one line that sums up."""
        lines = []
        if len(report.findings) >= _TABLE_FROM:
            counts = Counter(finding.rule for finding in report.findings).most_common()
            width = len(str(counts[0][1]))
            lines += [f"  {count:>{width}} {rule}" for rule, count in counts]
        lines.append(self.paint(summary(report) + _fixes(report), "word"))
        return lines + [self.paint(f"hint: {visible(hint)}", "rule") for hint in report.hints]


def _fixes(report: Report) -> str:
    """How many findings have a fix; to know that, all must be made: else how many are of rules that repair some."""
    if report.fixes:
        return f" ({len(report.fixes)} with a fix, which `--diff` shows)"
    count = sum(finding.rule in report.repairs for finding in report.findings)
    return f" ({count} may have a fix, which `--diff` shows)" if count else ""


def _width(text: str) -> int:
    """Columns of a terminal that *text* takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
        for char in text
    )
