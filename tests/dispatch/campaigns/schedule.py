"""What happens in one schedule: drawn from a number, so that the number says it all."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final, Literal

__all__ = ["EXPECTED", "Hold", "Kill", "Order", "Schedule", "draw"]

How = Literal["boundary", "line", "moment", "interrupt"]

# What breaks while a client or a job talks to GitHub; the names are those of tests/github_double/faults.py.
OVERCOME: Final = (
    "lost-502", "lost-hang-up", "done-502", "done-500", "done-hang-up", "done-cut", "limit-403", "limit-429",
    "limit-429-bare", "late-list", "stale-304",
)  # fmt: skip
ENDING: Final = ("html", "forbidden", "conflict", "stale-404", "moved-elsewhere", "limit-hour")
HANGING: Final = ("lost-hang", "done-hang")
OF_A_DISPATCH: Final = (*OVERCOME, *ENDING, "duplicate", "duplicate", "duplicate")
OF_THE_SHARED_LEDGER: Final = ("done-502", "lost-502", "conflict", "done-hang-up", "done-cut", "limit-403")
EXPECTED: Final = 500_000
"""What the catalog says that an attempt of a cell costs, in micro-dollars. No cell of the double costs more."""

RESERVED: Final = 2 * EXPECTED
"""What is reserved for a cell: one retry is planned."""

DISPATCHES: Final = r"/dispatches$"
CLAIMS: Final = r"/matching-refs/runner-e2e/claims/"
CONTENTS: Final = r"/contents/\d{4}-\d\d\.json$"


@dataclass(frozen=True, kw_only=True)
class Kill:
    """The end of one process of an operator: of its *life* number so-and-so (from 0), at its boundary number *at*.

    With a *name* (a regular expression) only boundaries that match count, and it ends *after* so many others. *line*:
    at the line number *at* of the client instead. *moment*: *delay* seconds after the boundary, wherever it is then.
    *interrupt*: Ctrl-C at the boundary. All others are SIGKILL.
    """

    operator: int
    life: int
    how: How
    at: int
    name: str = ""
    after: int = 0
    delay: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """A fault of one request: the one after *skip* others with that verb and path."""

    fault: str
    verb: str
    path: str
    skip: int


@dataclass(frozen=True, kw_only=True)
class Hold:
    """The run that is created as number *run* (from 0) begins only *seconds* later, as in a long queue."""

    run: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Everything that a schedule decides beforehand; what is decided on the way comes from *seed* too.

    *cells* is how many each operator pays for, *per_shard* how many make a shard. *rate* is the share of requests that
    break, with the faults *broken*, until *faults_end* requests were made; *jobs_too* breaks those of runs as well.
    *pace* is how many turns runs get. *caps* are micro-dollars: for a campaign, a day, a month. *wire*: clients talk
    over loopback.
    """

    seed: int
    cells: tuple[int, ...]
    per_shard: int = 2
    same_campaign: bool = False
    kills: tuple[Kill, ...] = ()
    orders: tuple[Order, ...] = ()
    rate: float = 0.0
    broken: tuple[str, ...] = ()
    faults_end: int = 60
    jobs_too: bool = False
    holds: tuple[Hold, ...] = ()
    listing_delay: float = 0.0
    pace: int = 3
    caps: tuple[int | None, int | None, int | None] = (None, None, None)
    decoys: int = 0
    old_server: bool = False
    skew: float = 0.0
    second_process: int = 0
    lost_machines: int = 0
    expired: bool = False
    switches: float = 0.3
    wire: bool = False

    @property
    def hangs(self) -> bool:
        """Whether some request gets no reply at all."""
        names = {*self.broken, *(each.fault for each in self.orders)}
        return bool(names & set(HANGING))

    @property
    def spares_runs(self) -> bool:
        """Whether nothing happens that may end a run before it has paid, or take its results away."""
        return not (self.jobs_too or self.lost_machines or self.expired)

    def without_kills(self) -> Schedule:
        """The same with a client that nobody kills."""
        return replace(self, kills=())


def draw(seed: int) -> Schedule:
    """The schedule of the number *seed*. About half of them have one kill and one fault, so that they can be read."""
    rng = random.Random(f"schedule {seed}")
    rich = rng.random() < 0.5
    operators = 2 if rng.random() < (0.3 if rich else 0.1) else 1
    cells = tuple(rng.choice((2, 3, 4) if rich else (1, 1, 2, 3)) for _ in range(operators))
    same = operators == 2 and rng.random() < 0.3
    schedule = Schedule(
        seed=seed,
        cells=(cells[0], cells[0]) if same else cells,
        per_shard=rng.choice((1, 2, 2, 3)),
        same_campaign=same,
        kills=_kills(rng, operators, most=4 if rich else 1),
        orders=_orders(rng, most=3 if rich else 1),
        listing_delay=rng.choice((0.0, 0.0, 0.0, 8.0, 45.0, 150.0, 900.0)),
        pace=rng.choice((1, 3, 3, 6)),
        old_server=rng.random() < 0.1,
        skew=rng.choice((0.0, 0.0, 0.0, 0.0, -240.0, 240.0, 30.0)),
        decoys=rng.choice((0, 0, 0, 1, 2)),
        second_process=rng.randrange(5, 60) if rng.random() < 0.1 else 0,
    )
    if rich and rng.random() < 0.5:
        schedule = replace(
            schedule,
            rate=rng.choice((0.03, 0.1, 0.25)),
            broken=OVERCOME if rng.random() < 0.5 else (*OVERCOME, *ENDING, "duplicate"),
            faults_end=rng.choice((30, 80, 150)),
            jobs_too=rng.random() < 0.5,
        )
    if rng.random() < 0.04:
        schedule = replace(schedule, orders=(*schedule.orders, _order(rng, HANGING)))
    if rng.random() < 0.35:
        schedule = replace(schedule, holds=_holds(rng))
    if rng.random() < 0.25:
        schedule = replace(schedule, caps=_caps(rng, schedule.cells))
    if rng.random() < 0.1:
        schedule = replace(schedule, lost_machines=rng.randrange(1, 60))
    return _themed(replace(schedule, expired=rng.random() < 0.05, wire=rng.random() < 0.08), rng)


def _themed(schedule: Schedule, rng: random.Random) -> Schedule:
    """A third of all schedules are about one thing that by chance alone would hardly ever come together."""
    theme = rng.random()
    if theme < 0.1:  # twins, of which the older one may be overtaken
        order = Order(fault="duplicate", verb="POST", path=DISPATCHES, skip=0)
        hold = Hold(run=rng.choice((0, 0, 1)), seconds=rng.choice((30.0, 90.0, 400.0)))
        return replace(schedule, orders=(order, *schedule.orders), holds=(hold,), listing_delay=0.0)
    if theme < 0.18:  # the run is there, and nobody was told
        fault = rng.choice(("done-502", "done-500", "done-hang-up", "done-cut", "html"))
        order = Order(fault=fault, verb="POST", path=DISPATCHES, skip=0)
        return replace(schedule, orders=(order, *schedule.orders))
    if theme < 0.24:  # it claims when the client gives it up
        order = Order(fault="done-502", verb="POST", path=DISPATCHES, skip=0)
        hold = Hold(run=0, seconds=rng.choice((560.0, 590.0, 597.0, 600.0)))
        return replace(
            schedule, orders=(order,), holds=(hold,), listing_delay=5_000.0, pace=6, kills=schedule.kills[:1], rate=0.0
        )
    if theme < 0.3:  # two start the same campaign
        return replace(
            schedule, cells=(schedule.cells[0],) * 2, same_campaign=True, caps=(None, None, None), switches=0.5
        )
    return schedule


def _kills(rng: random.Random, operators: int, *, most: int) -> tuple[Kill, ...]:
    found = []
    for life in range(rng.randint(1, most)):
        how: How = rng.choices(("boundary", "line", "moment", "interrupt"), (70, 12, 12, 6))[0]
        kill = Kill(operator=rng.randrange(operators), life=life, how=how, at=rng.randint(1, 200))
        if how == "line":
            kill = replace(kill, at=rng.randint(1, 2_500))
        elif rng.random() < 0.7:
            kill = replace(
                kill, name=rng.choice(CRITICAL), at=rng.choice((1, 1, 1, 2, 2, 4)), after=rng.choice((0, 0, 1, 2, 3, 5))
            )
        if how == "moment":
            kill = replace(kill, delay=rng.random() * 0.004)
        found.append(kill)
    return tuple(found)


# Where money is decided: what stands in a ledger and what went out differ by one step there.
CRITICAL: Final = (
    r"POST .*/dispatches$", r"POST .*/dispatches$", r"POST .*/dispatches$", r"PUT .*/contents/", r"PUT .*/contents/",
    r"POST .*/git/(refs|tags)$", r"GET .*/runs$", r"GET .*/claims/", r"GET .*/artifacts$", r"GET /storage", r"wait ",
    r"POST .*/cancel$",
)  # fmt: skip


def _orders(rng: random.Random, *, most: int) -> tuple[Order, ...]:
    return tuple(_order(rng, ()) for _ in range(rng.randint(0, most)))


def _order(rng: random.Random, names: tuple[str, ...]) -> Order:
    kind = rng.random()
    if kind < 0.6:
        return Order(fault=rng.choice(names or OF_A_DISPATCH), verb="POST", path=DISPATCHES, skip=rng.randrange(3))
    if kind < 0.65:
        return Order(
            fault=rng.choice(names or ("late-list", "stale-304")), verb="GET", path=CLAIMS, skip=rng.randrange(4)
        )
    if kind < 0.8:
        return Order(fault=rng.choice(names or OF_THE_SHARED_LEDGER), verb="", path=CONTENTS, skip=rng.randrange(6))
    return Order(fault=rng.choice(names or OVERCOME), verb="", path="", skip=rng.randrange(60))


def _holds(rng: random.Random) -> tuple[Hold, ...]:
    """Mostly of the first runs, where an older twin may be overtaken by a younger one."""
    return tuple(
        Hold(run=run, seconds=rng.choice((60.0, 400.0, 400.0, 2_500.0)))
        for run in sorted(rng.sample(range(4), rng.randint(1, 2)))
    )


def _caps(rng: random.Random, cells: tuple[int, ...]) -> tuple[int | None, int | None, int | None]:
    """Around what is needed: just enough, a little too low, or for one of two operators only."""
    of_one, of_all = cells[0] * RESERVED, sum(cells) * RESERVED
    around = (of_one, of_all, of_all - 1, of_one + RESERVED - 1, of_all + 1)
    caps: list[int | None] = [None, None, None]
    for which in rng.sample(range(3), rng.randint(1, 2)):
        caps[which] = max(1, rng.choice(around))
    return (caps[0], caps[1], caps[2])
