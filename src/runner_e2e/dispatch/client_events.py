"""What the client tells while it works, and how often it asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from runner_e2e.dispatch.shard_states import State

__all__ = ["Event", "Kind", "Pace"]

Kind: TypeAlias = State | Literal["twin", "stopping", "waiting", "round", "warning"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened at *at* (seconds since the epoch), with one sentence for people, free of ids of cells.

    *kind* is the state that a shard, or several, came to, or another thing that is worth a line. *shard* is its index
    where it is about one. *until* is when a ``waiting`` ends. A ``round`` ends each step: the ledger holds everything
    that was found out.
    """

    at: float
    kind: Kind
    text: str
    shard: int | None = None
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds between two rounds: *first* after something changed, then longer by *factor*, up to *longest*."""

    first: float = 5.0
    longest: float = 60.0
    factor: float = 1.5

    def after(self, quiet: int) -> float:
        """The pause after *quiet* rounds in which nothing changed."""
        # Beyond this many the power would only grow, and overflow after days.
        return min(self.longest, self.first * self.factor ** min(quiet, 100))
