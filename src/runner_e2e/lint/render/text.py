"""The report for a reader: place, fact, the line with a caret below, cause, fix, and the way as a numbered path."""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.linter import Report
    from runner_e2e.lint.values import Span

__all__ = ["render"]

_WIDEST = 160


def render(report: Report) -> str:
    """All problems and findings, and one line that sums up."""
    lines = _Lines()
    blocks = [f"{problem}\n" for problem in report.problems]
    blocks += [_finding(finding, lines) for finding in report.findings]
    return "\n".join([*blocks, _summary(report)]) + "\n"


def _summary(report: Report) -> str:
    count = len(report.findings)
    parts = [f"{count} finding{'' if count == 1 else 's'} in {report.files} file{'' if report.files == 1 else 's'}"]
    if report.problems:
        parts.append(f"{len(report.problems)} could not be checked")
    return ", ".join(parts)


def _finding(finding: Finding, lines: _Lines) -> str:
    confidence = finding.confidence.name.lower()
    out = [f"{finding.span}: {finding.level}: {finding.message} [{finding.rule}, {confidence} confidence]"]
    out += _excerpt(finding.span, lines)
    if finding.why:
        out.append(f"  why: {finding.why}")
    if finding.fix:
        out.append(f"  fix: {finding.fix}")
    if finding.flow:
        out.append("  way:")
        out += [f"    {number}. {place.span}: {place.note}" for number, place in enumerate(finding.flow, 1)]
    return "\n".join(out) + "\n"


def _excerpt(span: Span, lines: _Lines) -> list[str]:
    """The first line of *span* and carets below what is meant, whatever width the characters have."""
    line = lines(span.path, span.line)
    if not line or span.column > len(line):
        return []
    start = span.column - 1
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    shown = line.expandtabs(4) if "\t" in line else line
    before = _width(line[:start].expandtabs(4))
    marked = max(1, _width(line[: max(end, start)].expandtabs(4)) - before)
    if len(shown) > _WIDEST:
        cut = max(0, min(before - 20, len(shown) - _WIDEST))
        shown, before = ("…" if cut else "") + shown[cut : cut + _WIDEST], before - cut + (1 if cut else 0)
        marked = min(marked, _WIDEST - before) if before < _WIDEST else 1
    number = str(span.line)
    return [f"  {number} | {shown}", f"  {' ' * len(number)} | {' ' * before}{'^' * max(1, marked)}"]


def _width(text: str) -> int:
    """Columns of a terminal that *text* takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
        for char in text
    )


class _Lines:
    """Lines of files by path and number, each file read once; empty when it is gone."""

    def __init__(self) -> None:
        self.read = cache(self._read)

    @staticmethod
    def _read(path: str) -> list[str]:
        try:
            text = Path(path).read_text("utf-8-sig", errors="replace")
        except OSError:
            return []
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def __call__(self, path: str, number: int) -> str:
        lines = self.read(path)
        return lines[number - 1] if 1 <= number <= len(lines) else ""
