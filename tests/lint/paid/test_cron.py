"""How often schedules fire."""

from __future__ import annotations

import pytest

from runner_e2e.lint.paid.cron import runs_a_day


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("17 3 * * *", 1),
        ("0 * * * *", 24),
        ("* * * * *", 1440),
        ("*/15 * * * *", 96),
        ("5/20 0-11/3 * * *", 12),
        ("0,30 9-17 * * mon-fri", 18),
        ("0 0 1 JAN sun", 1),
        ("1,1,1 2 * * *", 1),
        ("0 0 * *", None),
        ("60 0 * * *", None),
        ("5-1 0 * * *", None),
        ("*/0 0 * * *", None),
        ("*/x 0 * * *", None),
        ("0 0 0 * *", None),
        ("0 0 * * fun", None),
        ("@daily", None),
        ("", None),
    ],
)
def test_runs_a_day(text: str, runs: int | None) -> None:
    assert runs_a_day(text) == runs
