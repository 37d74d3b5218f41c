"""When the next call may go out: every kind of limit as a table, and the pacing as a property."""

from __future__ import annotations

import email.utils

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runner_e2e.dispatch.answers import Answer
from runner_e2e.dispatch.call_rate import Rate, learn, pause_before, rate_as_text, rate_from_text, take

NOW = 1_796_000_000.0


def answer(status: int, *, data: object = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(verb="GET", path="/repos/o/r", status=status, headers=named, data=data)


def left(remaining: int, *, reset: float = NOW + 600, status: int = 200, **headers: str) -> Answer:
    given = {
        "x_ratelimit_limit": "1000", "x_ratelimit_remaining": str(remaining), "x_ratelimit_reset": f"{reset:.0f}",
        **headers,
    }  # fmt: skip
    return answer(status, **given)


def date(seconds: float) -> str:
    return email.utils.formatdate(seconds, usegmt=True)


SECONDARY = {"message": "You have exceeded a secondary rate limit"}


@pytest.mark.parametrize(
    ("given", "seconds", "why"),
    [
        (answer(200), 0, ""),
        (left(500), 0, ""),
        (left(101), 0, ""),
        (left(100), 600, "100 calls are left of 1000"),
        (left(0), 600, "used up of 1000"),
        (left(0, status=403), 600, "used up"),
        (left(0, status=429), 600, "used up"),
        # A Retry-After that is longer than the reset is the one to keep, and a shorter one does not shorten the hour.
        (left(0, status=403, retry_after="900"), 900, "used up"),
        (left(0, status=429, retry_after="30"), 600, "used up"),
        (answer(403, retry_after="30"), 30, "secondary"),
        (answer(429, retry_after="7"), 7, "secondary"),
        (answer(429), 60, "secondary"),
        (answer(403, data=SECONDARY), 60, "secondary"),
        (left(700, status=403, retry_after="45"), 45, "secondary"),
        (answer(403, data={"message": "Resource not accessible by integration"}), 0, ""),
        (answer(503, retry_after="20"), 20, "503"),
        (answer(503), 0, ""),
        (answer(429, retry_after=date(NOW + 40)), 40, "secondary"),
        (answer(429, retry_after=date(NOW + 40), date=date(NOW + 10)), 30, "secondary"),
        # By the server's clock, which is an hour ahead of ours.
        (left(0, reset=NOW + 4200, date=date(NOW + 3600)), 600, "used up"),
        # Limits of searches are others; nonsense is no limit, and none lasts longer than its hour.
        (left(0, x_ratelimit_resource="search"), 0, ""),
        (left(0, reset=NOW - 5), 0, ""),
        (left(0, reset=9_999_999_999), 3660, "used up"),
        (answer(429, retry_after="999999999"), 3660, "secondary"),
        (answer(200, x_ratelimit_remaining="many", x_ratelimit_reset="soon"), 0, ""),
        (answer(200, x_ratelimit_remaining="0"), 0, ""),
    ],
)
def test_every_limit(given: Answer, seconds: float, why: str) -> None:
    pause = pause_before(learn(Rate(stamp=NOW), given, NOW), "GET", NOW)
    assert (pause.seconds if pause else 0) == pytest.approx(seconds, abs=0.01)
    assert why in (pause.why if pause else "")


def test_writes_may_use_what_reads_leave() -> None:
    few, none = learn(Rate(), left(30), NOW), learn(Rate(), left(0), NOW)
    assert pause_before(few, "GET", NOW)
    assert pause_before(few, "POST", NOW) is None
    assert pause_before(none, "POST", NOW)


def test_an_hour_ends() -> None:
    rate = learn(Rate(), left(0), NOW)
    assert rate.remaining == 0
    assert take(rate, "GET", NOW + 600).remaining is None
    assert pause_before(rate, "GET", NOW + 599)
    assert pause_before(rate, "GET", NOW + 600) is None


def test_answers_of_one_hour_in_any_order() -> None:
    rate = learn(learn(Rate(), left(490), NOW), left(500), NOW + 1)
    assert rate.remaining == 490
    assert learn(rate, left(999, reset=NOW + 4200), NOW + 601).remaining == 999
    assert learn(rate, left(999, reset=NOW + 300), NOW + 2).remaining == 490


def test_secondary_limits_in_a_row_double_the_pause() -> None:
    rate, now, pauses = Rate(), NOW, []
    for _ in range(9):
        rate = learn(rate, answer(429), now)
        pause = pause_before(rate, "GET", now)
        assert pause is not None
        pauses.append(pause.seconds)
        now += pause.seconds + 5
        assert pause_before(rate, "GET", now) is None
        rate = learn(take(rate, "GET", now), answer(200), now)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3660, 3660, 3660]
    rate = learn(rate, answer(429), now + 700)
    assert pause_before(rate, "GET", now + 700).seconds == 60  # type: ignore[union-attr]


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    rate = learn(learn(Rate(), answer(429, retry_after="300"), NOW), answer(429, retry_after="2"), NOW + 1)
    assert pause_before(rate, "GET", NOW + 10).seconds == pytest.approx(290)  # type: ignore[union-attr]


@pytest.mark.parametrize("back", [10, 3600, 86_400 * 365, NOW])
def test_a_clock_that_was_set_back(back: float) -> None:
    """Nothing lasts longer than it was asked to last, and no bucket fills by it."""
    rate = take(learn(Rate(stamp=NOW), answer(429, retry_after="120"), NOW), "GET", NOW)
    pause = pause_before(rate, "GET", NOW - back)
    assert pause is not None
    assert pause.seconds == pytest.approx(120)
    hour = pause_before(learn(Rate(), left(0), NOW), "GET", NOW - back)
    assert hour is not None
    assert hour.seconds <= 3660
    empty = Rate(stamp=NOW, points=0.0, writes=0.0, hourly=0.0)
    assert pause_before(empty, "GET", NOW - back).seconds == pytest.approx(0.1)  # type: ignore[union-attr]


def test_a_clock_that_was_set_forward() -> None:
    """At worst one call finds out that the server sees it otherwise."""
    rate = learn(Rate(stamp=NOW), answer(429, retry_after="120"), NOW)
    later = NOW + 86_400
    assert pause_before(rate, "GET", later) is None
    rate = learn(take(rate, "GET", later), answer(429, retry_after="120"), later)
    assert pause_before(rate, "GET", later).seconds == pytest.approx(120)  # type: ignore[union-attr]


calls = st.lists(
    st.tuples(
        st.sampled_from(["GET", "POST", "DELETE"]), st.sampled_from([0.0, 0.5, 30.0, 600.0]), st.integers(1, 100)
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=30)
@example([("GET", 0.0, 2500)])
@example([("POST", 0.0, 700)])
@example([("DELETE", 0.0, 500)])
@example([("POST", 0.0, 20), ("GET", 0.0, 1500)])
@given(calls)
def test_no_minute_and_no_hour_has_more_than_github_takes(calls: list[tuple[str, float, int]]) -> None:
    rate, now = Rate(stamp=NOW), NOW
    sent: list[tuple[float, str]] = []
    for verb, gap, times in calls:
        now += gap
        for _ in range(times):
            while pause := pause_before(rate, verb, now):
                now += pause.seconds
            rate = take(rate, verb, now)
            sent.append((now, verb))
    points = [(at, 1 if verb == "GET" else 5) for at, verb in sent]
    made = [(at, 1) for at, verb in sent if verb == "POST"]
    assert most_within(points, 60) <= 900
    assert most_within(made, 60) <= 80
    assert most_within(made, 3600) <= 500


def most_within(events: list[tuple[float, int]], seconds: float) -> int:
    most = total = first = 0
    for at, amount in events:
        total += amount
        while events[first][0] <= at - seconds:
            total -= events[first][1]
            first += 1
        most = max(most, total)
    return most


def test_a_campaign_of_forty_dispatches_is_sent_within_a_minute() -> None:
    rate, now = Rate(stamp=NOW), NOW
    for _ in range(40):
        while pause := pause_before(rate, "POST", now):
            now += pause.seconds
        rate = take(rate, "POST", now)
    assert now - NOW < 60


def test_what_is_stored_is_read_back() -> None:
    rate = take(learn(Rate(stamp=NOW), left(0, status=403, retry_after="900"), NOW), "POST", NOW)
    assert rate_from_text(rate_as_text(rate)) == rate
    assert len(rate_as_text(rate)) < 1000


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "7", "null", '{"limit": 1, "other": 2}', '{"until": "soon"}', '{"until": NaN}', '{"points": 1e999}',
     '{"strikes": 1.5}', '{"remaining": true}', '{"why": null}', "[" * 100_000],
)  # fmt: skip
def test_what_is_damaged_is_learned_again(text: str) -> None:
    assert rate_from_text(text) == Rate()


def test_a_server_without_limits_is_only_paced() -> None:
    rate = learn(Rate(stamp=NOW), answer(200), NOW)
    assert rate == Rate(stamp=NOW)
