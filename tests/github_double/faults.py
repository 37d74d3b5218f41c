"""Faults to order: what goes wrong with which request. Each that fired is counted, so that none is only believed in."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field

from tests.github_double.routes import Reply, Request

__all__ = ["FAULTS", "Fault", "Faults"]


@dataclass(frozen=True)
class Fault:
    """One kind. *carried_out* tells whether the request takes effect although the client does not learn it.

    *hangs*: the client gets nothing until it gives up. *late*: a list lacks its newest entry, as a replica's does that
    is behind. *elsewhere*: a redirect to another server.
    """

    name: str
    status: int = 0
    carried_out: bool = False
    hangs_up: bool = False
    cut: bool = False
    duplicates: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    html: bool = False
    hangs: bool = False
    late: bool = False
    elsewhere: bool = False

    def instead(self) -> Reply:
        """The answer to a request that is not carried out."""
        if self.html:
            return Reply(status=200, raw=b"<html>sign in</html>", headers={"Content-Type": "text/html"})
        if self.status == 304:
            return Reply(status=304)
        message = "You have exceeded a secondary rate limit" if self.name.startswith("limit") else "Refused"
        message = "Not Found" if self.status == 404 else message
        return Reply(status=self.status or 500, data={"message": message}, headers=dict(self.headers))


FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault("lost-502", status=502),
        Fault("lost-hang-up", hangs_up=True),
        Fault("done-502", status=502, carried_out=True),
        Fault("done-500", status=500, carried_out=True),
        Fault("done-hang-up", hangs_up=True, carried_out=True),
        Fault("done-cut", cut=True, carried_out=True),
        Fault("lost-hang", hangs=True),
        Fault("done-hang", hangs=True, carried_out=True),
        Fault("duplicate", duplicates=True, carried_out=True),
        Fault("limit-403", status=403, headers={"Retry-After": "3"}),
        Fault("limit-429", status=429, headers={"Retry-After": "2"}),
        Fault("limit-429-bare", status=429),
        Fault("limit-hour", status=403, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999"}),
        Fault("forbidden", status=403),
        Fault("conflict", status=409),
        Fault("invalid", status=422),
        Fault("stale-404", status=404),
        Fault("stale-304", status=304),
        Fault("late-list", late=True, carried_out=True),
        Fault("moved-elsewhere", status=301, elsewhere=True),
        Fault("html", html=True),
    )
}


class Faults:
    """Orders: ``order("done-502", "POST", "dispatches")`` breaks the next such request, ``at_random`` some of all.

    ``fired`` counts each kind when it has broken a request, so that a test can show that it did.
    """

    def __init__(self) -> None:
        self.fired: Counter[str] = Counter()
        self._orders: list[tuple[Fault, str, re.Pattern[str], int]] = []
        self._random: random.Random | None = None
        self._rate = 0.0
        self._names: tuple[str, ...] = ()

    def order(self, name: str, verb: str, path: str, *, skip: int = 0) -> None:
        """Breaks one request whose path has *path* (a regular expression), after *skip* others like it.

        An empty *verb* is any.
        """
        self._orders.append((FAULTS[name], verb, re.compile(path), skip))

    def at_random(self, seed: int, rate: float, names: tuple[str, ...] = tuple(FAULTS)) -> None:
        """Breaks a share of all requests from now on."""
        self._random, self._rate, self._names = random.Random(seed), rate, names

    def hangs(self, verb: str, path: str) -> bool:
        """Whether an order lets the next request with *verb* and *path* hang."""
        for fault, ordered, pattern, skip in self._orders:
            if ordered in {"", verb} and pattern.search(path) and not skip:
                return fault.hangs
        return False

    def next(self, request: Request) -> Fault | None:
        """What goes wrong with *request*."""
        for number, (fault, verb, path, skip) in enumerate(self._orders):
            if verb in {"", request.verb} and path.search(request.path):
                if skip:
                    self._orders[number] = (fault, verb, path, skip - 1)
                    continue
                del self._orders[number]
                self.fired[fault.name] += 1
                return fault
        if self._random is not None and self._random.random() < self._rate:
            fault = FAULTS[self._random.choice(self._names)]
            self.fired[fault.name] += 1
            return fault
        return None
