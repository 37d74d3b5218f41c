"""How a lint is run from an edge, and what its report means for an exit code."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.cli.lint_remote import Target
    from runner_e2e.lint.report import Report

__all__ = [
    "FAIL_ON",
    "FAIL_ON_DEFAULT",
    "FORMATS",
    "FORMAT_DEFAULT",
    "exit_code",
    "no_collection",
    "processors",
    "screen_text",
    "wants_colour",
    "with_fixes",
    "with_usual_fixes",
    "written",
]

FAIL_ON = ("low", "medium", "high", "never")
"""From which confidence on a finding makes the exit code 1."""

FAIL_ON_DEFAULT = "medium"

FORMATS = ("text", "json", "sarif", "github", "markdown")
FORMAT_DEFAULT = "text"

_MOST_FIXES_COUNTED = 20
"""To know which findings have a fix, all must be made; beyond so many, a text says which may have one."""


def exit_code(report: Report, fail_on: str) -> int:
    """The code for *report*; findings count from the confidence *fail_on* on, notes never."""
    if report.defects:
        return 4
    if report.problems:
        return 2
    least = FAIL_ON.index(fail_on) + 1
    return 1 if any(one.confidence >= least and one.level != "note" for one in report.findings) else 0


@contextmanager
def no_collection() -> Iterator[None]:
    """Trees live for one file: the collector of cycles would only look at everything again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # All that was made counts as old now, else the collector would look at it at once.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def processors() -> int:
    """How many processors this process may use; systems other than Linux only tell how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def with_fixes(report: Report, *, most: int | None = None) -> Report:
    """The report with the fix of every finding that has one; as it is where more than *most* may have one."""
    may = sum(finding.rule in report.repairs for finding in report.findings)
    if may == 0 or (most is not None and may > most):
        return report
    from runner_e2e.lint.fix import proposals

    return replace(report, fixes=proposals(report.findings, current=Path.cwd()), repairs=frozenset())


def with_usual_fixes(report: Report, form: str, target: Target) -> Report:
    """The report about *target* with as many fixes as the format *form* shows."""
    return with_fixes(report, most=0 if target.label else None if form in {"json", "sarif"} else _MOST_FIXES_COUNTED)


def written(report: Report, form: str, target: Target, *, colour: bool = False) -> str:
    """*report* about *target* in the format *form*."""
    from runner_e2e.lint.render import View, render

    blob = _blob_address() if form == "markdown" and not target.label else ""
    return render(report, form, View(folder=target.current, label=target.label, colour=colour, blob=blob))


def screen_text(report: Report, form: str, target: Target) -> tuple[str, bool]:
    """What :func:`written` gives for the screen, and whether it has colours."""
    from runner_e2e.lint.render.sources import inert

    colour = form == "text" and wants_colour(os.environ, terminal=sys.stdout.isatty())
    text = written(report, form, target, colour=colour)
    return inert(text) if form == "markdown" else text, colour


def _blob_address() -> str:
    from runner_e2e import gha  # the other formats have no links

    return gha.blob_address()


def wants_colour(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to write colours: https://no-color.org first, then ``FORCE_COLOR``, then whether a terminal reads."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return terminal and environ.get("TERM") != "dumb"
