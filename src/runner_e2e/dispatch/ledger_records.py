"""What the ledger holds, as plain records. Money is micro-dollars, times are seconds since the epoch (UTC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from runner_e2e.dispatch.shard_states import HOLDING

if TYPE_CHECKING:
    from runner_e2e.dispatch.shard_states import State

__all__ = [
    "CampaignState",
    "CellState",
    "Event",
    "Outcome",
    "Remembered",
    "ShardState",
    "Totals",
]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The money of a campaign, and how many shards are in each state.

    ``committed`` is what counts against a cap now: reservations that stand, and of settled shards the actual cost and
    what they keep for cells of unknown cost. ``kept`` is that last part alone.
    """

    shards: int
    cells: int
    expected: int
    reserved: int
    committed: int
    actual: int
    kept: int
    states: tuple[tuple[State, int], ...]

    def number(self, *states: State) -> int:
        """How many shards are in one of *states*."""
        return sum(number for state, number in self.states if state in states)


@dataclass(frozen=True, kw_only=True)
class CampaignState:
    """A campaign in the ledger.

    The first part is what was planned and never changes. ``digest`` is that of the campaign file, ``repository_id``
    GitHub's number once it is known, ``cancel_asked_at`` when a person asked the client that runs it to stop.
    """

    id: str
    digest: str
    created_at: str
    repository: str
    workflow: str
    target: str
    key_id: str
    max_cost: int | None
    retries: int
    assumed_cost: int | None
    assumed_cells: int
    added_at: float
    started_at: float | None
    cancel_asked_at: float | None
    repository_id: int | None
    totals: Totals


@dataclass(frozen=True, kw_only=True)
class ShardState:
    """A shard in the ledger.

    ``reserved`` is its whole reservation; ``actual`` and ``kept`` are known once it is settled (``kept``: the
    reservation of cells whose cost nobody knows). ``run`` and ``attempt`` are those of the run that holds the claim;
    ``hinted_run`` is what GitHub's answer named, which may be the losing twin. ``round`` counts the nonces that were
    sent or may have been, from 1. ``version`` counts the changes: a move is refused when another came between.
    """

    campaign: str
    index: int
    round: int
    state: State
    version: int
    nonce: str | None
    sealed: str
    cells: int
    expected: int
    reserved: int
    actual: int | None
    kept: int
    run: int | None
    attempt: int | None
    hinted_run: int | None
    intended_at: float | None
    sent_at: float | None
    changed_at: float
    note: str

    @property
    def key(self) -> str:
        """The name of its reservation in the shared ledger."""
        return f"{self.campaign}/{self.index}/{self.round}"

    @property
    def committed(self) -> int:
        """What of it counts against a cap now, in micro-dollars."""
        if self.state == "settled":
            return (self.actual or 0) + self.kept
        return self.reserved if self.state in HOLDING else 0


@dataclass(frozen=True, kw_only=True)
class CellState:
    """A cell in the ledger. Its ``verdict`` and money are None until its shard is settled; unknown cost stays None."""

    handle: str
    shard: int
    expected: int
    reserved: int
    verdict: str | None
    actual: int | None
    kept: int
    attempts: int
    note: str


class Outcome(Protocol):
    """What became of one cell, as the ledger takes it."""

    @property
    def handle(self) -> str:
        """Which cell it is."""
        ...

    @property
    def verdict(self) -> str:
        """How it ended."""
        ...

    @property
    def actual(self) -> int | None:
        """What its attempts are known to have cost; None where nothing is known."""
        ...

    @property
    def kept(self) -> int:
        """What stays reserved because the cost of an attempt is unknown."""
        ...

    @property
    def attempts(self) -> int:
        """How many attempts began."""
        ...

    @property
    def note(self) -> str:
        """What a person should know of it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Event:
    """One change, never changed itself. ``number`` grows; ``shard`` is None for the campaign as a whole.

    ``committed`` is what of the shard counts against a cap since then, ``process`` the number of who did it.
    """

    number: int
    at: float
    campaign: str
    shard: int | None
    round: int
    before: str
    after: str
    nonce: str | None
    run: int | None
    committed: int
    process: int
    note: str


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """An answer that can be asked for again at no cost: its entity tag and its text."""

    etag: str
    body: str
