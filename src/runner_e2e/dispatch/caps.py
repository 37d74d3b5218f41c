"""Caps: may so much more be reserved? Pure arithmetic over the entries of the shared ledger, in micro-dollars.

What is reserved counts as if it had been spent, until its cost is known. What nobody knows is not taken for zero: while
a cap looks at a reservation of unknown cost, nothing more is reserved under it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner_e2e.cells.wording import count
from runner_e2e.dispatch.money import BudgetError, usd
from runner_e2e.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner_e2e.dispatch.shared_ledger_file import Caps, Entry

__all__ = ["Room", "check_caps", "overdrafts", "rooms"]


@dataclass(frozen=True, kw_only=True)
class Room:
    """One cap and what it looks at: amounts in micro-dollars, *unknown* the number of entries of unknown cost.

    *cap* is None where there is none. *wait* says when it looks at nothing any more, empty where that never comes.
    *option* is the one of ``runner-e2e dispatch`` that changes it.
    """

    name: str
    cap: int | None
    settled: int
    reserved: int
    unknown: int
    option: str
    wait: str = ""

    @property
    def taken(self) -> int:
        """What is spent and reserved, as far as it is known."""
        return self.settled + self.reserved

    @property
    def left(self) -> int | None:
        """What may still be reserved; None without a cap. Less than zero where cells cost more than was reserved."""
        return None if self.cap is None else self.cap - self.taken


def rooms(caps: Caps, entries: Sequence[Entry], *, day: str, campaign: str = "") -> tuple[Room, ...]:
    """The caps of *campaign* (where one is named), of *day* (``2026-11-30``) and of its month.

    *entries* are all of that month, and all of the campaign.
    """
    month = day[:7]
    found = [
        _room(
            f"of {day}", caps.day, (each for each in entries if each.day == day),
            option="caps --day", wait="wait until tomorrow (UTC)",
        ),
        _room(
            f"of {month}", caps.month, (each for each in entries if each.day[:7] == month),
            option="caps --month", wait="wait until next month",
        ),
    ]  # fmt: skip
    if campaign:
        mine = [each for each in entries if each.campaign == campaign]
        found.insert(0, _room(f"of the campaign {campaign}", caps.campaign, mine, option="caps --campaign"))
    return tuple(found)


def check_caps(
    caps: Caps, entries: Sequence[Entry], more: Sequence[Entry], *, day: str, max_cost: int | None = None
) -> None:
    """Raises :class:`~runner_e2e.dispatch.money.BudgetError` with every cap that *more* would pass on *day*.

    *entries* are what stands: all of the month, and all of the campaigns of *more*, without *more* itself.
    *max_cost* is what the plan of each campaign allows.
    """
    problems: list[Problem] = []
    for campaign in dict.fromkeys(each.campaign for each in more):
        own = [rooms(caps, entries, day=day, campaign=campaign)[0]]
        if max_cost is not None:
            name = f"that the plan of {campaign} has"
            mine = (each for each in entries if each.campaign == campaign)
            own.append(_room(name, max_cost, mine, option="plan --max-cost"))
        problems += overdrafts(own, _sum(each for each in more if each.campaign == campaign))
    problems += overdrafts(rooms(caps, entries, day=day), _sum(more))
    if problems and more:
        raise BudgetError.of(problems)


def overdrafts(rooms: Iterable[Room], wanted: int | None) -> tuple[Problem, ...]:
    """Why *wanted* micro-dollars more (None: nobody knows how many) do not fit into *rooms*; empty where they do."""
    return tuple(problem for room in rooms if (problem := _overdraft(room, wanted)) is not None)


def _sum(entries: Iterable[Entry]) -> int | None:
    found = [each.counts for each in entries]
    known = [each for each in found if each is not None]
    return sum(known) if len(known) == len(found) else None


def _room(name: str, cap: int | None, entries: Iterable[Entry], *, option: str, wait: str = "") -> Room:
    settled = reserved = unknown = 0
    for entry in entries:
        counts = entry.counts
        if counts is None:
            unknown += 1
        elif entry.state == "settled":
            settled += counts
        else:
            reserved += counts
    return Room(name=name, cap=cap, settled=settled, reserved=reserved, unknown=unknown, option=option, wait=wait)


def _overdraft(room: Room, wanted: int | None) -> Problem | None:
    if room.cap is None or room.left is None:
        return None
    if wanted is None:
        return Problem(
            what=f"what this costs is not known, and the cap {room.name} is {usd(room.cap)}",
            why="unknown is not zero, so it cannot be shown to stay below the cap",
            fix="write `expected-cost` into the catalog for every cell that costs something",
        )
    if room.unknown:
        return Problem(
            what=f"the cap {room.name} is {usd(room.cap)}, and nobody knows what "
            f"{count(room.unknown, 'reservation')} under it will cost",
            why="unknown is not zero, so what is left cannot be told",
            fix="say what they cost with `runner-e2e dispatch caps --settle KEY USD` (`dispatch caps` shows the keys)",
        )
    if wanted <= room.left:
        return None
    raised = f"raise it with `runner-e2e dispatch {room.option} USD`"
    return Problem(
        what=f"{usd(wanted)} more would pass the cap {room.name}, {usd(room.cap)}",
        why=f"{usd(room.settled)} spent + {usd(room.reserved)} reserved + {usd(wanted)} = "
        f"{usd(room.taken + wanted)}, which is {usd(wanted - room.left)} more than it",
        fix=", ".join(filter(None, ("select fewer cells", room.wait))) + f", or {raised}",
    )
