"""How many calls a token has left, and when the next one may go out: pure, so that a table can test it.

Three kinds of limits (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api). The primary
one is so many calls an hour, which each answer tells. Secondary ones are told only when they are passed: 900 points a
minute, where a read is one and a write five, and about 80 writes a minute and 500 an hour that make something. And an
answer may ask for a pause. Times are seconds since the epoch by this machine's clock; what the server says in its own
time is converted by its ``Date``.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.answers import is_rate_limit, retry_after, server_time

if TYPE_CHECKING:
    from runner_e2e.dispatch.answers import Answer

__all__ = ["HOUR", "Pause", "Rate", "learn", "pause_before", "rate_as_text", "rate_from_text", "take"]

HOUR: Final = 3600.0

# The part of the hourly calls that reads leave to others with the same token, and to writes, which decide things.
_LEFT_TO_OTHERS: Final = 0.1

# No limit of GitHub's lasts longer than its hour: after that one call finds out.
_LONGEST_PAUSE: Final = HOUR + 60

# A secondary limit so soon after the last one doubles the pause, as GitHub wants it.
_SOON: Final = 600.0
_FIRST_PAUSE: Final = 60.0
_DIGITS: Final = 12
_SAME_HOUR: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class _Bucket:
    """*burst* at once and *a_second* more: within any *s* seconds at most ``burst + s * a_second``."""

    burst: float
    a_second: float


_POINTS: Final = _Bucket(burst=300, a_second=10)  # 900 in a minute
_WRITES: Final = _Bucket(burst=20, a_second=1)  # 80 in a minute
_WRITES_AN_HOUR: Final = _Bucket(burst=100, a_second=400 / HOUR)  # 500 in an hour


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What is known of one token.

    *limit*, *remaining* and *reset* are those of the primary limit, None where the server has told none (an Enterprise
    Server has none by default). *until* is the end of a pause of *asked* seconds, *why* its cause, *strikes* how often
    in a row a secondary limit was passed, *struck* when the pause after the last time ended. The buckets hold what may
    be used at *stamp*.
    """

    limit: int | None = None
    remaining: int | None = None
    reset: float = 0.0
    asked: float = 0.0
    until: float = 0.0
    why: str = ""
    strikes: int = 0
    struck: float = 0.0
    stamp: float = 0.0
    points: float = _POINTS.burst
    writes: float = _WRITES.burst
    hourly: float = _WRITES_AN_HOUR.burst

    @property
    def kept(self) -> int:
        """How many calls of the hour reads leave alone."""
        return math.ceil((self.limit or 0) * _LEFT_TO_OTHERS)


@dataclass(frozen=True, kw_only=True)
class Pause:
    """So many seconds to wait before a call, and why."""

    seconds: float
    why: str


def pause_before(rate: Rate, verb: str, now: float) -> Pause | None:
    """How long a call must wait; None where it may go out now."""
    rate = _at(rate, now)
    least = rate.kept if verb in _READS else 0
    ends = rate.reset if rate.remaining is not None and rate.remaining <= least else 0.0
    if ends > max(now, rate.until):
        used = "all calls of this hour are used up" if rate.remaining == 0 else f"{rate.remaining} calls are left"
        return Pause(seconds=ends - now, why=f"{used} of {rate.limit or 'those'} that the token has an hour")
    if rate.until > now:
        return Pause(seconds=rate.until - now, why=rate.why)
    wanted = _cost(verb)
    seconds = max(
        (amount - held) / bucket.a_second
        for amount, held, bucket in (
            (wanted[0], rate.points, _POINTS),
            (wanted[1], rate.writes, _WRITES),
            (wanted[1], rate.hourly, _WRITES_AN_HOUR),
        )
    )
    return Pause(seconds=seconds, why="GitHub takes only so many calls in a while") if seconds > 1e-6 else None


def take(rate: Rate, verb: str, now: float) -> Rate:
    """The rate after a call that goes out now."""
    rate = _at(rate, now)
    points, writes = _cost(verb)
    return replace(rate, points=rate.points - points, writes=rate.writes - writes, hourly=rate.hourly - writes)


def learn(rate: Rate, answer: Answer, at: float) -> Rate:
    """The rate after an answer that came *at* that time."""
    rate = _counted(rate, answer, at)
    asked = retry_after(answer, now=at)
    if asked is None:
        return rate
    why = f"GitHub answered {answer.status} and asked for a pause"
    strikes = rate.strikes
    if is_rate_limit(answer) and answer.headers.get("x-ratelimit-remaining") != "0":
        strikes = strikes + 1 if abs(at - rate.struck) < _SOON else 1
        why = f"a secondary limit of GitHub's was passed ({answer.status})"
        if "retry-after" not in answer.headers:
            asked = _FIRST_PAUSE * 2 ** min(strikes - 1, _DIGITS)
        rate = replace(rate, strikes=strikes, struck=at + min(asked, _LONGEST_PAUSE))
    elif is_rate_limit(answer):
        why = "all calls of this hour are used up"
    asked = min(asked, _LONGEST_PAUSE)
    return replace(rate, asked=asked, until=at + asked, why=why) if at + asked > rate.until else rate


def _counted(rate: Rate, answer: Answer, at: float) -> Rate:
    """The rate with what the answer tells of the primary limit."""
    headers = answer.headers
    remaining, limit, reset = (_number(headers.get(f"x-ratelimit-{name}")) for name in ("remaining", "limit", "reset"))
    # Searches and the like have limits of their own.
    if remaining is None or reset is None or headers.get("x-ratelimit-resource", "core") != "core":
        return rate
    told = server_time(answer)
    ends = min(at + reset - (at if told is None else told), at + _LONGEST_PAUSE)
    if ends <= at:
        return rate
    # Answers of one hour come in any order, and dates have whole seconds.
    if rate.remaining is not None and abs(ends - rate.reset) < _SAME_HOUR:
        return replace(rate, limit=limit or rate.limit, remaining=min(remaining, rate.remaining))
    return replace(rate, limit=limit or rate.limit, remaining=remaining, reset=ends) if ends > rate.reset else rate


def _at(rate: Rate, now: float) -> Rate:
    """The rate at *now*: what is over is forgotten, and nothing lasts longer than it was asked to.

    The second matters where the clock was set back.
    """
    if now >= rate.until:
        rate = replace(rate, until=0.0, asked=0.0, why="")
    if now >= rate.reset:
        rate = replace(rate, remaining=None, reset=0.0)
    passed = min(max(0.0, now - rate.stamp), HOUR)
    return replace(
        rate,
        stamp=now,
        until=min(rate.until, now + rate.asked),
        reset=min(rate.reset, now + _LONGEST_PAUSE),
        points=min(_POINTS.burst, rate.points + passed * _POINTS.a_second),
        writes=min(_WRITES.burst, rate.writes + passed * _WRITES.a_second),
        hourly=min(_WRITES_AN_HOUR.burst, rate.hourly + passed * _WRITES_AN_HOUR.a_second),
    )


_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def _cost(verb: str) -> tuple[int, int]:
    """Points, and how many things it makes."""
    return (1, 0) if verb in _READS else (5, 0 if verb == "DELETE" else 1)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def rate_as_text(rate: Rate) -> str:
    """The rate as JSON, to be stored."""
    return json.dumps(asdict(rate), sort_keys=True)


def rate_from_text(text: str) -> Rate:
    """The rate that was stored; a new one where *text* is none of ours: at worst one call learns the limits again."""
    try:
        data = json.loads(text) if text else {}
        found = Rate(**data)
    except (ValueError, TypeError, RecursionError):
        return Rate()
    return found if _is_sound(found) else Rate()


def _is_sound(rate: Rate) -> bool:
    values = asdict(rate)
    whole = [values.pop(name) for name in ("limit", "remaining")]
    why, strikes = values.pop("why"), values.pop("strikes")
    return (
        isinstance(why, str)
        and type(strikes) is int
        and all(value is None or type(value) is int for value in whole)
        and all(type(value) in {int, float} and math.isfinite(value) for value in values.values())
    )
