from __future__ import annotations

import pytest

from runner_e2e.cells.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("20m", 1200),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("0.5s", 0.5),
        ("2d", 172800),
        ("1d1h1m1s", 90061),
        ("0s", 0),
    ],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "20", "20 minutes", "-5m", "m", "30m1h", "1m1m", "1e3s", "20M", "1:30", "5m\n", ".5s"]
)
def test_other_texts_are_no_durations(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (1.5, "1.5s"), (90, "1m 30s"), (1200, "20m"), (5400, "1h 30m"), (90061, "1d 1h"), (3601, "1h 1s")],
)
def test_durations_are_shown_with_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
