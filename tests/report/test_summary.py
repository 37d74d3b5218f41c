"""The summary of a cell: what it says beyond the plain case, which the action's tests cover end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.report.billing import Usage
from runner_e2e.report.results import Exit, Failure, Host, Output, Result, Retry
from runner_e2e.report.summary import ARGV_NOTE, cell_summary

if TYPE_CHECKING:
    from collections.abc import Mapping


def result(**changes: object) -> Result:
    values: Mapping[str, object] = {
        "id": "suite.profile.local.secret-case",
        "handle": "cell-0123456789abcdef",
        "campaign": "20260101T000000Z-abcdef",
        "attempt": 1,
        "attempts": 2,
        "selection": "env",
        "verdict": "passed",
        "failure": None,
        "started": "2026-01-01T00:00:00.000Z",
        "ended": "2026-01-01T00:01:05.000Z",
        "duration_s": 65.04,
        "exit": Exit(code=0),
        "usage": Usage(cost_usd=1.5, cost_status="estimated"),
        "retry": Retry(allowed=False, reason="it passed"),
        "output": Output(),
        "left_processes": 0,
        "sandbox": (),
        "notes": (),
        "definition_hash": "a" * 64,
        "engine": "runner-e2e 0",
        "host": Host(kernel="6", machine="x86_64", python="3.13"),
        **changes,
    }
    return Result(**values)  # type: ignore[arg-type]


def test_whole() -> None:
    failed = result(
        verdict="failed",
        failure=Failure(failure_class="provider_variance", message="a | b\n# c"),
        usage=Usage(),
        duration_s=1.23,
    )
    passed = result(attempt=2, notes=("<b>slow</b>",), selection="argv")
    assert cell_summary([failed, passed]).splitlines() == [
        "### ✅ cell-0123456789abcdef: passed",
        "",
        "| Attempt | Verdict | Time | Cost | Failure |",
        "| ---: | --- | ---: | ---: | --- |",
        "| 1 of 2 | failed | 1.2s | unknown | **provider_variance**: a &#124; b &#35; c |",
        "| 2 of 2 | passed | 1m 5s | ~$1.50 |  |",
        "| all | | 1m 6s | ~$1.50 + 1 unknown | |",
        "",
        "Campaign `20260101T000000Z-abcdef`.",
        "",
        f"⚠️ {ARGV_NOTE}",
        "",
        "- Attempt 2: &lt;b&gt;slow&lt;/b&gt;",
    ]


def test_the_id_is_not_in_it() -> None:
    assert "secret-case" not in cell_summary([result()])
    assert "### ❌ cell-0123456789abcdef: not run" in cell_summary(
        [result(verdict="not_run", failure=Failure(failure_class="transient_infrastructure", message="stopped"))]
    )


def test_nothing_that_follows_from_the_cell_without_a_key_is_public() -> None:
    summary = cell_summary([result(definition_hash="d" * 64)])
    assert "dddd" not in summary
