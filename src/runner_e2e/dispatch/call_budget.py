"""One budget of API calls per token, shared by every process that uses the token and remembered when one is killed."""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from runner_e2e.dispatch.call_rate import Pause, Rate, learn, pause_before, rate_as_text, rate_from_text, take
from runner_e2e.dispatch.github_api import DEFAULT_URL, Limits
from runner_e2e.errors import GitHubError, RunnerE2EError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.dispatch.answers import Answer

__all__ = ["CallBudget", "LimitedError", "MemoryStore", "RateStore"]

# Shorter waits are no news.
_WORTH_TELLING: Final = 5.0


class LimitedError(GitHubError):
    """No call may go out before :attr:`until` (seconds since the epoch). Nothing was sent."""

    def __init__(self, *, until: float, why: str) -> None:
        self.until = until
        clock = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%d %H:%M:%S")
        super().__init__(
            f"GitHub takes no call with this token before {clock} UTC",
            why=why,
            fix="run the same command again then; nothing was sent, and nothing is lost",
        )


class RateStore(Protocol):
    """Where the state of a token is kept: the ledger."""

    def change_rate(self, token: str, change: Callable[[str], str]) -> None:
        """Replaces the text stored for *token* (empty: none) by what *change* makes of it, as one transaction."""


class MemoryStore:
    """A store for one process and its lifetime."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def change_rate(self, token: str, change: Callable[[str], str]) -> None:
        """As :class:`RateStore` says."""
        self._texts[token] = change(self._texts.get(token, ""))


class CallBudget:
    """The calls of one token at one server.

    A call waits for as long as the limits ask; where that is more than *patience* seconds for one call,
    :class:`LimitedError` says so before anything is sent. *say* is told of longer waits. Only a digest of *token* is
    stored, and every answer is stored when it comes.
    """

    def __init__(  # noqa: PLR0913 - clock, waits and words are the caller's
        self,
        store: RateStore,
        *,
        token: str,
        url: str = DEFAULT_URL,
        now: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] = lambda _: None,
        patience: float = float("inf"),
    ) -> None:
        self._store = store
        self._token = hashlib.sha256(f"runner-e2e rate\0{url.rstrip('/')}\0{token.strip()}".encode()).hexdigest()[:32]
        self._now = now
        self._wait = wait
        self._say = say
        self._patience = patience
        self._answers: list[tuple[Answer, float]] = []
        self._rate = Rate()

    def limits(self) -> Limits:
        """What :class:`~runner_e2e.dispatch.github_api.GitHubApi` does around its requests."""
        return Limits(
            ready=lambda verb: self._wait_for(verb, use=False),
            before=lambda verb: self._wait_for(verb, use=True),
            after=self._after,
            wait=self._wait,
            now=self._now,
            paced=True,
        )

    def rate(self) -> Rate:
        """What is known of the token's limits now; another process with the token may have learned it."""
        self._change(lambda rate: rate)
        return self._rate

    def _wait_for(self, verb: str, *, use: bool) -> None:
        """Waits until a call may go out, and uses what it costs."""
        now = self._now()
        latest = now + self._patience
        while (pause := self._pause(verb, now, use=use)) is not None:
            if now + pause.seconds > latest:
                raise LimitedError(until=now + pause.seconds, why=pause.why)
            if pause.seconds >= _WORTH_TELLING:
                self._say(f"waiting {pause.seconds:.0f} s: {pause.why}")
            self._wait(pause.seconds)
            # What was waited counts, also where the clock was set back meanwhile.
            now = max(self._now(), now + pause.seconds)

    def _pause(self, verb: str, now: float, *, use: bool) -> Pause | None:
        """How long a call must wait; None where it may go out, and then what it costs is used."""
        found: Pause | None = None

        def change(rate: Rate) -> Rate:
            nonlocal found
            found = pause_before(rate, verb, now)
            return take(rate, verb, now) if use and not found else rate

        self._change(change)
        return found

    def _after(self, answer: Answer) -> None:
        """Stores what an answer tells. Where that fails the answer is kept, and the next call says why, unsent."""
        self._answers.append((answer if answer.status >= 400 else replace(answer, data=None), self._now()))
        with contextlib.suppress(RunnerE2EError):
            self._change(lambda rate: rate)

    def _change(self, change: Callable[[Rate], Rate]) -> None:
        """Changes what is stored, after what the answers tell that are not stored yet."""
        answers = tuple(self._answers)

        def changed(text: str) -> str:
            rate = rate_from_text(text)
            for answer, at in answers:
                rate = learn(rate, answer, at)
            self._rate = change(rate)
            return rate_as_text(self._rate)

        self._store.change_rate(self._token, changed)
        del self._answers[: len(answers)]
