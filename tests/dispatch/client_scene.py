"""A client and the other side of it: a double, its runs, a ledger, and what must be true in the end."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tests.github_double.crash import crashing
from tests.github_double.patience import give_up_at_once
from tests.github_double.player import Player

from runner_e2e.cells.catalog import read_catalog
from runner_e2e.cells.handles import random_key
from runner_e2e.cells.selectors import Selection, select
from runner_e2e.dispatch import campaign as campaigns
from runner_e2e.dispatch.client import Client
from runner_e2e.dispatch.conditional import ConditionalReader
from runner_e2e.dispatch.github_api import GitHubApi, Limits
from runner_e2e.dispatch.ledger import Ledger, open_ledger
from runner_e2e.dispatch.shared_ledger import SharedLedger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.github_double.server import Server

    from runner_e2e.dispatch.campaign import Campaign
    from runner_e2e.dispatch.client_events import Event
    from runner_e2e.dispatch.ledger_records import ShardState

__all__ = ["DEFINITION", "KEY", "PATH", "ClientScene"]

KEY = random_key()
PATH = ".github/workflows/paid-campaign.yml"
DEFINITION = """\
run-name: Paid campaign ${{ inputs.nonce || github.run_id }}
on: { workflow_dispatch: { inputs: { nonce: { type: string }, selection: { type: string }, target: } } }
jobs: { claim: { runs-on: ubuntu-latest, steps: [{ uses: org/runner-e2e-action@v1, with: { command: claim } }] } }
"""
CATALOG = """
harness: { command: [python3, harness.py] }
credentials: { OPENAI_API_KEY: }
profiles: { codex: { credential: OPENAI_API_KEY } }
environments: { local: }
suites: { chat: { profiles: [codex], environments: [local], cases: [one, two, three], expected-cost: 0.5 } }
"""


@dataclass
class ClientScene:
    """Three cells in *shards* shards; the runs go on while the client waits, and between its requests, if *playing*."""

    double: Server
    directory: Path
    shards: int = 1
    seed: int = 0
    token: str = "token-of-alice"
    playing: bool = True
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.double.state
        self.double.validating = False
        self.directory.mkdir(exist_ok=True)
        (self.directory / "catalog.yml").write_text(CATALOG)
        self.catalog = read_catalog(self.directory / "catalog.yml")
        self.state.workflows.clear()
        self.workflow = self.state.add_workflow(
            PATH, inputs={"nonce": False, "selection": False, "target": False},
            run_name="Paid campaign ${{ inputs.nonce }}",
        )  # fmt: skip
        self.define(DEFINITION)
        self.player = Player(self.double, self.catalog, keys=(KEY,), seed=self.seed)
        self.double.after = lambda entry: self.player.after_request(entry) if self.playing else None

    def define(self, text: str) -> None:
        """The definition of the workflow on the default branch."""
        known = self.state.files("main").get(PATH)
        self.state.write_file(PATH, "main", text.encode(), "workflow", known)

    def plan(self, *, max_cost: int | None = None, target: str = "") -> Campaign:
        """A campaign of all cells."""
        cells = select(self.catalog, Selection(all=True))
        moment = datetime.fromtimestamp(self.state.clock.now(), UTC)
        with patch.object(campaigns, "MAXIMUM_JOBS", -(-len(cells) // self.shards)):
            campaign = campaigns.plan_campaign(
                self.catalog, cells, key=KEY, repository="octo/evals", target=target, max_cost=max_cost,
                assume_cost=None, now=moment,
            )  # fmt: skip
        assert len(campaign.shards) == self.shards
        return campaign

    def limits(self) -> Limits:
        """No wait takes time, and in each the runs go on."""
        return Limits(wait=self.wait, now=self.state.clock.now)

    def wait(self, seconds: float) -> None:
        """Lets time pass for everybody."""
        self.state.clock.sleep(seconds)
        for _ in range(8 if self.playing else 0):
            self.player.turn()

    def api(self, limits: Limits | None = None, **changes: Any) -> GitHubApi:
        """A connection of the operator."""
        settings = {"repository": "octo/evals", "token": self.token, "url": self.double.url, "timeout": 60, **changes}
        return GitHubApi(limits=limits or self.limits(), **settings)

    @contextmanager
    def ledger(self, name: str = "ledger.sqlite") -> Iterator[Ledger]:
        """The operator's ledger."""
        with open_ledger(self.directory / name, now=self.state.clock.now) as ledger:
            yield ledger

    @contextmanager
    def client(
        self, *, crash_at: int = 0, sent: bool = False, impatient: bool = False, ledger: str = "ledger.sqlite",
        **changes: Any,
    ) -> Iterator[Client]:  # fmt: skip
        """A new process: it dies at the request *crash_at* (from 1), before it is *sent* or when it was.

        *impatient*: with a request that gets no reply.
        """
        limits = self.limits()
        if crash_at:
            limits = crashing(limits, at=crash_at, sent=sent)
        api = self.api(limits, **changes)
        if impatient:
            give_up_at_once(api, self.double)
        with self.ledger(ledger) as opened:
            yield Client(
                ledger=opened, shared=SharedLedger(api), api=api, reader=ConditionalReader(api, opened), keys=(KEY,),
                now=self.state.clock.now, wait=self.wait, say=self.events.append,
            )  # fmt: skip

    def run(self, campaign: Campaign) -> None:
        """What a person does: start (again), and watch."""
        with self.client() as client:
            client.start(campaign)
            client.watch(campaign.id)

    # What was found

    def found(self, campaign: Campaign) -> tuple[ShardState, ...]:
        """The shards in the ledger."""
        with self.ledger() as ledger:
            return ledger.shards(campaign.id)

    def states(self, campaign: Campaign) -> list[str]:
        """Their states."""
        return [shard.state for shard in self.found(campaign)]

    def dispatches(self) -> Counter[str]:
        """How many dispatches were carried out or may have been, by nonce."""
        return Counter(
            each.body["inputs"]["nonce"]
            for each in self.double.requests("POST", "/dispatches")
            if each.status not in range(300, 500)
        )

    def check(self, campaign: Campaign) -> None:
        """What must be true whenever nothing is open any more.

        No cell was paid for twice; each that was is said to be paid, with its cost, or to be unknown, and keeps its
        reservation; no other is said to be; no nonce was sent twice; both ledgers say the same.
        """
        assert self.player.paid_twice() == []
        assert max(self.dispatches().values(), default=0) <= 1
        paid = Counter(each.handle for each in self.player.payments)
        assert max(paid.values(), default=0) <= 1
        with self.ledger() as ledger:
            shards = {shard.index: shard for shard in ledger.shards(campaign.id)}
            for cell in ledger.cells(campaign.id):
                state = shards[cell.shard].state
                assert state in {"settled", "unpaid", "cancelled", "planned"}, (cell, shards[cell.shard])
                if paid[cell.handle]:
                    assert state == "settled", cell
                    assert cell.actual == 500_000 or (cell.kept >= 500_000 and cell.note), cell
                else:
                    assert not cell.actual, cell
        entries = {each.key: each for each in SharedLedger(self.api()).entries(campaign.id)}
        for shard in shards.values():
            entry = entries.pop(shard.key, None)
            charged = shard.committed
            assert (entry.counts if entry else 0) == charged, (entry, shard)
        assert all(each.counts == 0 for each in entries.values()), entries
