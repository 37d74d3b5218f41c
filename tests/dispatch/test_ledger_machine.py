"""Any sequence of what clients do to a ledger, compared with a model of a few lines."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.dispatch.ledgers import CAMPAIGN, MEMORY, Clock, nonce, outcomes, planned

from runner_e2e.dispatch.ledger import Ledger, Move, StaleError, open_ledger
from runner_e2e.dispatch.ledger_books import check_books
from runner_e2e.dispatch.money import BudgetError
from runner_e2e.dispatch.shard_states import STATES, State
from runner_e2e.errors import DefectError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from runner_e2e.dispatch.ledger_records import ShardState

SIZES = (2, 1, 3)
RESERVED = tuple(size * 200 for size in SIZES)

# Written out here, so that the table in the product is compared with something.
LEGAL = {
    ("planned", "reserved"), ("planned", "cancelled"),
    ("reserved", "reserved"), ("reserved", "planned"), ("reserved", "sending"), ("reserved", "cancelled"),
    ("reserved", "stuck"),
    ("sending", "reserved"), ("sending", "sent"), ("sending", "unknown"), ("sending", "running"),
    ("sending", "unpaid"), ("sending", "stuck"),
    ("sent", "sent"), ("sent", "unknown"), ("sent", "running"), ("sent", "unpaid"), ("sent", "stuck"),
    ("unknown", "unknown"), ("unknown", "sent"), ("unknown", "running"), ("unknown", "unpaid"), ("unknown", "stuck"),
    ("running", "running"), ("running", "ended"), ("running", "stuck"),
    ("ended", "ended"), ("ended", "running"), ("ended", "settled"), ("ended", "stuck"),
    ("unpaid", "reserved"), ("unpaid", "cancelled"),
    ("stuck", "stuck"), ("stuck", "unknown"), ("stuck", "running"), ("stuck", "ended"), ("stuck", "settled"),
    ("stuck", "unpaid"),
}  # fmt: skip


@dataclass
class Model:
    """What a shard should be."""

    state: State = "planned"
    round: int = 1
    nonce: str | None = None
    run: int | None = None
    paid: int = 0
    history: list[str] = field(default_factory=list)

    def committed(self, index: int) -> int:
        if self.state == "settled":
            return self.paid
        return 0 if self.state in {"planned", "unpaid", "cancelled"} else RESERVED[index]


class Clients(RuleBasedStateMachine):
    """Clients that come, act, are killed and come again, with one ledger."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.path = Path(self.folder.name) / "ledger.sqlite"
        self.clock = Clock()
        self.models = [Model() for _ in SIZES]
        self.numbers = iter(range(10**6))
        self.used: list[str] = []
        self.old: list[ShardState] = []
        self.cap: int | None = None
        self.lock: AbstractContextManager[None] | None = None
        self.abandoned: list[Ledger] = []
        self.ledger = open_ledger(self.path, now=self.clock)

    @initialize(cap=st.sampled_from([None, sum(RESERVED), 700]))
    def plan(self, cap: int | None) -> None:
        self.cap = cap
        self.ledger.add(planned(*SIZES, max_cost=cap))
        self.enter()

    def enter(self) -> None:
        self.lock = self.ledger.acting(CAMPAIGN)
        self.lock.__enter__()
        for model in self.models:
            if model.state == "sending":
                model.state = "unknown"
                model.history.append("unknown")

    def leave(self) -> None:
        if self.lock is not None:
            self.lock.__exit__(None, None, None)
            self.lock = None

    def shard(self, index: int) -> ShardState:
        return self.ledger.shards(CAMPAIGN)[index]

    @precondition(lambda self: self.lock is not None)
    @rule(
        index=st.integers(0, len(SIZES) - 1),
        to=st.sampled_from([state for state in STATES if state != "settled"]),
        fresh=st.sampled_from(["right", "right", "right", "none", "used"]),
        run=st.sampled_from([None, None, 7, 8]),
    )
    def move(self, index: int, to: State, fresh: str, run: int | None) -> None:
        shard, model = self.shard(index), self.models[index]
        self.old.append(shard)
        needed = to == "reserved" and model.state != "sending"
        text = {"right": nonce(next(self.numbers)) if needed else None, "none": None}.get(
            fresh, self.used[0] if self.used else None
        )
        legal = (
            (model.state, to) in LEGAL
            and needed == (text is not None)
            and text not in self.used
            and (run in (None, model.run) or model.run is None or model.state == "stuck")
            and (to not in {"running", "ended"} or (run or model.run) is not None)
        )
        committed = sum(each.committed(number) for number, each in enumerate(self.models))
        over = (
            legal
            and to == "reserved"
            and model.state in {"planned", "unpaid"}
            and self.cap is not None
            and committed + RESERVED[index] > self.cap
        )
        if not legal or over:
            with pytest.raises(BudgetError if over else DefectError):
                self.ledger.move(shard, to, nonce=text, run=run)
            return
        self.ledger.move(shard, to, nonce=text, run=run)
        if text is not None:
            self.used.append(text)
            model.nonce = text
        if model.state == "unpaid" and to == "reserved":
            model.round += 1
        if to in {"planned", "reserved"}:
            model.run = run
        if to == "planned":
            model.nonce = None
        model.run = run or model.run
        model.state = to
        model.history.append(to)

    @precondition(lambda self: self.lock is not None)
    @rule(index=st.integers(0, len(SIZES) - 1), actual=st.sampled_from([None, 0, 70, 900]), kept=st.integers(0, 300))
    def settle(self, index: int, actual: int | None, kept: int) -> None:
        shard, model = self.shard(index), self.models[index]
        found = outcomes(self.ledger, shard, actual=actual, kept=kept)
        if (model.state, "settled") not in LEGAL:
            with pytest.raises(DefectError):
                self.ledger.settle(shard, found)
            return
        self.ledger.settle(shard, found)
        model.state = "settled"
        model.paid = SIZES[index] * ((actual or 0) + kept)
        model.history.append("settled")

    @precondition(lambda self: self.lock is not None)
    @rule(data=st.data())
    def move_with_an_old_look(self, data: st.DataObject) -> None:
        stale = [each for each in self.old if each.version != self.shard(each.index).version]
        if stale:
            shard = data.draw(st.sampled_from(stale))
            to = "stuck" if (shard.state, "stuck") in LEGAL else "cancelled"
            if (shard.state, to) in LEGAL:
                with pytest.raises(StaleError):
                    self.ledger.move(shard, to)  # type: ignore[arg-type]

    @precondition(lambda self: self.lock is not None)
    @rule(data=st.data())
    def move_two_of_which_one_is_wrong(self, data: st.DataObject) -> None:
        first = data.draw(st.sampled_from(self.ledger.shards(CAMPAIGN)))
        wrong = replace(first, index=(first.index + 1) % len(SIZES), version=10**6)
        good = Move(shard=first, to="stuck") if (first.state, "stuck") in LEGAL else Move(shard=first, to="cancelled")
        with pytest.raises((StaleError, DefectError)):
            self.ledger.move_all([good, Move(shard=replace(wrong, state="unknown"), to="stuck")])

    @rule()
    def close_and_open(self) -> None:
        self.leave()
        self.ledger.close()
        self.ledger = open_ledger(self.path, now=self.clock)
        self.enter()

    @rule()
    def another_client_takes_over_from_one_that_hangs(self) -> None:
        """The old connection stays open, as one of a process that is stopped and has lost its lock."""
        self.leave()
        self.abandoned.append(self.ledger)
        self.ledger = open_ledger(self.path, now=self.clock)
        self.enter()

    @rule()
    def detach(self) -> None:
        self.leave()
        with pytest.raises(DefectError):
            self.ledger.move(self.shard(0), "cancelled")
        self.enter()

    @invariant()
    def every_shard_is_what_it_should_be(self) -> None:
        if self.lock is None:
            return
        shards = self.ledger.shards(CAMPAIGN)
        for index, (shard, model) in enumerate(zip(shards, self.models, strict=True)):
            assert (shard.state, shard.round, shard.nonce, shard.run) == (
                model.state, model.round, model.nonce, model.run,
            )  # fmt: skip
            assert shard.committed == model.committed(index)
            assert shard.version == 1 + len(model.history)
            happened = [event.after for event in self.ledger.events(CAMPAIGN) if event.shard == index]
            assert happened == model.history
        assert self.ledger.totals(CAMPAIGN).committed == sum(
            model.committed(index) for index, model in enumerate(self.models)
        )

    @invariant()
    def the_books_agree(self) -> None:
        if self.lock is not None:
            check_books(self.ledger._database, self.path, CAMPAIGN)

    def teardown(self) -> None:
        self.leave()
        for ledger in (self.ledger, *self.abandoned):
            ledger.close()
        self.folder.cleanup()


Clients.TestCase.settings = settings(max_examples=20, stateful_step_count=30)
TestClients = Clients.TestCase
