"""Crash points: a client that dies at a chosen request, before it is sent or when its answer has come.

api = GitHubApi(…, limits=crashing(Limits(wait=clock.sleep), at=3, sent=True))
with pytest.raises(CrashError):
    client.run(api)        # the third request was carried out, and nobody wrote down its answer
client.resume(other_api)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.dispatch.github_api import Limits

if TYPE_CHECKING:
    from runner_e2e.dispatch.answers import Answer

__all__ = ["CrashError", "crashing"]


class CrashError(BaseException):
    """The end of a process, as far as one can have it within a test: no ``except Exception`` goes on after it."""


def crashing(limits: Limits, *, at: int, sent: bool) -> Limits:
    """*limits*, with a crash at the request number *at* (from 1): when it was *sent* and answered, or before."""
    count = 0

    def before(verb: str) -> None:
        nonlocal count
        count += 1
        if count >= at and not sent:
            raise CrashError(f"before request {count}, {verb}")
        limits.before(verb)

    def after(answer: Answer) -> None:
        if count >= at and sent:
            raise CrashError(f"after request {count}, {answer.verb} {answer.path}")
        limits.after(answer)

    return Limits(before=before, after=after, wait=limits.wait)
