"""Comments that do nothing are taken out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Edit, Fix

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.repository import Document, Repository

__all__ = ["repair"]

_NAMED = re.compile(r"`([^`]+)`")
_LIST = re.compile(r"ignore\[(?P<names>[^\]]*)\]")
_LINE_BREAK = re.compile(r"\r\n|\n|\r")


def repair(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001 - one signature
    """Removes the comment that the finding is about, or the rules in it that find nothing."""
    if document.root is None:
        return None
    source = document.root.source
    starts = source.line_starts
    if finding.span.end_line > len(starts):
        return None
    start = starts[finding.span.line - 1] + finding.span.column - 1
    end = starts[finding.span.end_line - 1] + finding.span.end_column - 1
    found = _LIST.search(source.text, start, end)
    if found is None:
        return None
    unused = set(_NAMED.findall(finding.message))
    names = [name.strip() for name in found["names"].split(",")]
    kept = [name for name in names if name not in unused]
    if len(kept) == len(names):
        return None
    if kept:
        edit = Edit(path=document.path, start=found.start("names"), end=found.end("names"), text=", ".join(kept))
        return Fix(title="leave out the rules that find nothing", safe=True, edits=(edit,))
    first, last = _without(source.text, start, end)
    edit = Edit(path=document.path, start=first, end=last, text="")
    return Fix(title="remove the comment, which does nothing", safe=True, edits=(edit,))


def _without(text: str, start: int, end: int) -> tuple[int, int]:
    """What goes with the comment ``[start, end)``: its line where it stands alone, else the blanks before it."""
    before = text[:start].rstrip(" \t")
    following = _LINE_BREAK.match(text, end)
    if before and not before.endswith(("\n", "\r")):
        return len(before), end
    if following is not None:
        return len(before), following.end()
    return (len(before[:-2]) if before.endswith("\r\n") else len(before[:-1])), end
