"""Audits an attempt: every program that it starts, from the kernel's own record, searched for the id of its cell."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import LaunchError, UsageError
from runner_e2e.report.fields import InvalidDocumentError, read_document
from runner_e2e.sandbox.exec_audit import audit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.engine.campaign_plan import Reporter
    from runner_e2e.engine.processes import Ended
    from runner_e2e.engine.supervisor import Specification

__all__ = ["REPORT", "audited", "check_audits", "ended_as_audited", "off", "read_audit"]

REPORT: Final = "audit.json"
_LONGEST_REPORT: Final = 256 << 20
# What ends with the harness by itself is watched until then, this many seconds at most.
_LINGER: Final = "1"
_MOST_GAPS: Final = 20
_MOST_HOLDERS: Final = 50


def check_audits(reporter: Reporter) -> None:
    """Raises :class:`UsageError` where nothing can be audited: before anything is started or paid for."""
    try:
        outcome = audit([sys.executable, "-I", "-S", "-c", "pass"], descriptors={})
    except LaunchError as error:
        raise UsageError(
            f"--audit cannot be used on this machine: {error.problem.what}",
            why=error.problem.why,
            fix=error.problem.fix or "install strace and allow ptrace, or leave --audit out",
        ) from error
    if outcome.gaps:
        raise UsageError(
            "--audit cannot be used on this machine: not everything can be seen",
            why="; ".join(outcome.gaps),
            fix="leave --audit out",
        )
    if os.geteuid() != 0:
        reporter.warning(
            "in an audited attempt sudo gains nothing: where this host refuses user namespaces, the sandbox has "
            "Landlock alone, and the record says so"
        )


def audited(specification: Specification, *, command: Path, variable: str, report: Path) -> Specification:
    """The same harness, started by this product's *command* under an audit that looks for the value of *variable*."""
    options = ["--selected-id-env", variable, "--linger", _LINGER, "--report", str(report)]
    words = [str(command), "audit", *options, "--", specification["program"], *specification["command"][1:]]
    return {**specification, "program": str(command), "command": words}


def off(why: str) -> dict[str, object]:
    """The summary of an attempt that was not audited."""
    return {"verdict": "off", "why": why}


def read_audit(report: Path) -> dict[str, object]:
    """The summary of an audit from its *report*: verdict, counts, who held the id in its environment, gaps.

    Without a readable report the verdict is ``incomplete``: the audit was killed with its attempt.
    """
    try:
        found = read_document(report, limit=_LONGEST_REPORT)
        counts = found.object("counts")
        return {
            "verdict": found.text("verdict"),
            "execs": counts.count("execs"),
            "processes": counts.count("processes"),
            "argv_leaks": counts.count("argv_leaks"),
            "environ_holders": [dict(entry.values) for entry in found.objects("environ")[:_MOST_HOLDERS]],
            "gaps": _texts(found.values.get("gaps")),
            "signal": found.text("signal"),
        }
    except (FileNotFoundError, InvalidDocumentError) as error:
        gap = "the audit ended without a report" if isinstance(error, FileNotFoundError) else f"its report {error}"
        return {"verdict": "incomplete", "gaps": [gap], "signal": ""}


def ended_as_audited(ended: Ended, summary: Mapping[str, object]) -> Ended:
    """How the harness itself ended: the audit passes a signal on as a status."""
    signal = summary.get("signal")
    if ended.code is None or not signal:
        return ended
    return replace(ended, code=None, signal=str(signal))


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)][:_MOST_GAPS] if isinstance(value, list) else []
