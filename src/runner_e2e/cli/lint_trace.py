"""``runner-e2e lint --trace FILE:LINE``: what is known about every variable before a line of a script."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import UsageError
from runner_e2e.lint.render.sources import inert, one_line

if TYPE_CHECKING:
    from runner_e2e.lint.report import Report

__all__ = ["trace_place", "traced"]


def trace_place(text: str) -> tuple[str, int]:
    """File and line of ``FILE:LINE``. Raises :class:`~runner_e2e.errors.UsageError` for another text."""
    found = re.fullmatch(r"(.+):([0-9]+)", text)
    if found is None:
        raise UsageError(f"`--trace {text}` has no line", fix="write the file and the line: `--trace FILE:LINE`")
    return found[1], int(found[2])


def traced(report: Report, path: str, line: int) -> str:
    """The variables before the commands of that line; those that carry something first."""
    wanted = Path(path).resolve()
    blocks: dict[str, None] = {}
    for point in report.trace:
        span = point.origin.span(point.start, point.end)
        if not span.line <= line <= span.end_line or Path(span.path).resolve() != wanted:
            continue
        ordered = sorted(point.variables.items(), key=lambda item: (not item[1].taints, item[0]))
        command = point.origin.text[point.start : point.end].strip().splitlines()[:1]
        rows = [one_line(f"{span}: before `{command[0] if command else ''}`")]
        rows += [one_line(f"  {name} = {value}") for name, value in ordered]
        blocks["\n".join(rows)] = None
    if not blocks and not wanted.is_file():
        raise UsageError(f"there is no file {path}", fix="check the path")
    if not blocks:
        raise UsageError(f"no command of a script stands at {path}:{line}", fix="name the line of a command in `run:`")
    return inert("\n".join(blocks))
