"""How a lint is run from an edge, and what its report means for an exit code."""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.report import Report

__all__ = ["FAIL_ON", "exit_code", "no_collection", "processors"]

FAIL_ON = ("low", "medium", "high", "never")
"""From which confidence on a finding makes the exit code 1."""


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
            gc.enable()


def processors() -> int:
    """How many processors this process may use; systems other than Linux only tell how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
