"""When the next launch is made: not while the last one begins, unless they come thick and fast."""

from __future__ import annotations

from runner_e2e.sandbox.pace import QUIET, Pace


def patience(*moments: float) -> list[int]:
    """What the pace is after launches at *moments*."""
    pace = Pace(iter(moments).__next__)
    found = [pace.patience]
    for _ in moments:
        pace.note()
        found.append(pace.patience)
    return found


def test_a_launch_gets_a_quiet_moment() -> None:
    assert patience(0.0, 1.0, 61.0) == [QUIET] * 4


def test_launches_one_upon_another_leave_no_quiet_moment() -> None:
    assert patience(5.0, 5.03, 5.06, 5.2, 5.24) == [QUIET, QUIET, 0, 0, QUIET, 0]


def test_the_first_launch_gets_one_whatever_the_clock_shows() -> None:
    assert patience(0.0) == [QUIET, QUIET]
