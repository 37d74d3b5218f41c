"""What `dispatch plan` says: facts in the order in which one decides whether to pay, as text and as JSON."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from runner_e2e import gha
from runner_e2e.cells.matrix import MAXIMUM_JOBS
from runner_e2e.cells.wording import count
from runner_e2e.cli.table import Column, print_table
from runner_e2e.dispatch.caps import overdrafts
from runner_e2e.dispatch.money import BudgetError, micros, usd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.dispatch.campaign import Campaign
    from runner_e2e.dispatch.caps import Room

__all__ = [
    "PLAN_SCHEMA",
    "Plan",
    "Surroundings",
    "check_caps",
    "dollars",
    "listed",
    "next_step",
    "plan_data",
    "print_facts",
    "print_plan",
    "requests",
]

PLAN_SCHEMA: Final = "runner-e2e.dispatch-plan/v1"
_PAGE: Final = 110
_UNBROKEN: Final = 1_000_000
_NARROW: Final = 72


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What GitHub said: the *rooms* below the shared caps, and whether the repository is *private* (None: not known).

    *unseen* says why nothing is known.
    """

    rooms: Sequence[Room] = ()
    private: bool | None = None
    unseen: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that is printed. *file* is where the campaign was written, None where it was not."""

    campaign: Campaign
    catalog: Catalog
    cells: Sequence[Cell]
    around: Surroundings
    file: Path | None


@dataclass(frozen=True, kw_only=True)
class Requests:
    """How many requests a campaign takes, about: until everything is sent, and in all with its results."""

    start: int
    whole: int


def requests(shards: int) -> Requests:
    """What *shards* take where nothing goes wrong. Looks that find nothing new are free, and not counted."""
    # To start: what the repository is, the reservation, and a dispatch each. Then for each a claim, the place of its
    # results and the results; and the looks that do find something, and the settlements.
    return Requests(start=10 + shards, whole=30 + 5 * shards)


def print_plan(plan: Plan, *, public_log: bool) -> None:
    """Prints the plan. What stands in a *public_log* names no suite."""
    if not public_log:
        _print_groups(plan)
        click.echo()
    print_facts(_facts(plan))


def next_step(plan: Plan) -> str:
    """What to do with the plan."""
    if plan.file is None:
        return "Nothing was written. To keep this campaign for `dispatch start`, add -o FILE."
    return f"Written to {plan.file}. Next: runner-e2e dispatch start {plan.file}"


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Prints names and texts in two columns; long texts go on below themselves."""
    width = max(len(name) for name, _ in facts) + 2
    room = max(20, _columns() - width)
    for name, text in facts:
        # A command stays on its line, to be copied.
        whole = text.startswith("runner-e2e ")
        lines = [text] if whole else textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        for number, line in enumerate(lines):
            click.echo(f"{click.style((name if not number else '').ljust(width), bold=True)}{line}")


def _columns() -> int:
    """How wide a text may be: as wide as the terminal, and elsewhere as a page.

    In the log of a job nothing is broken over lines: what another wrote could begin one, and be obeyed as a command.
    """
    if gha.in_actions():
        return _UNBROKEN
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PAGE


def _print_groups(plan: Plan) -> None:
    """Cells by suite and profile, with what an attempt costs and where that is known from."""
    groups = Counter((cell.suite, cell.profile, cell.expected_cost, cell.billable) for cell in plan.cells)
    assumed = plan.campaign.assumed_cost or 0
    rows: list[tuple[str, ...]] = []
    for (suite, profile, expected, billable), number in groups.items():
        each = assumed if expected is None else micros(expected)
        basis = "nothing is billed" if not billable else "--assume-cost" if expected is None else "catalog"
        rows.append((suite, profile, str(number), usd(each), usd(each * number), basis))
    columns: tuple[Column, ...] = (
        Column(title="suite", whole=True),
        Column(title="profile", whole=True),
        Column(title="cells", right=True, whole=True),
        Column(title="attempt", right=True, whole=True),
        Column(title="expected", right=True, whole=True),
        Column(title="basis", styles={"--assume-cost": "yellow", "": "dim"}),
    )
    if _columns() < _NARROW:
        kept = [index for index, column in enumerate(columns) if column.title in {"suite", "cells", "expected"}]
        columns = tuple(columns[index] for index in kept)
        rows = [tuple(row[index] for index in kept) for row in rows]
    print_table(columns, rows)


def _facts(plan: Plan) -> list[tuple[str, str]]:
    campaign = plan.campaign
    target = f"branch {campaign.target}" if campaign.target else "the default branch"
    facts = [
        ("campaign", campaign.id),
        ("repository", f"{campaign.repository}, {campaign.workflow}, {target}"),
        ("cells", f"{count(campaign.cells, 'cell')}, each paid for once"),
        ("shards", _shards_text(campaign)),
        ("expected", _expected_text(campaign)),
        ("reserved", _reserved_text(campaign)),
    ]
    facts += _caps_facts(plan)
    needed = requests(len(campaign.shards))
    hour = "an hour has 5,000 (GITHUB_TOKEN: 1,000)"
    facts.append(("requests", f"about {needed.start:,} to start, about {needed.whole:,} in all; {hour}"))
    return [*facts, *listed("public", _public(plan))]


def _shards_text(campaign: Campaign) -> str:
    sizes = [len(shard.cells) for shard in campaign.shards]
    least, most = min(sizes), max(sizes)
    each = f"{most} cells each" if least == most else f"{least} to {most} cells each"
    if len(sizes) == 1:
        return f"1 run of {count(sizes[0], 'cell')}"
    return f"{len(sizes)} runs, {each} (a run has at most {MAXIMUM_JOBS})"


def _expected_text(campaign: Campaign) -> str:
    text = f"{usd(campaign.expected)} for one attempt of each cell"
    if campaign.assumed_cells:
        text += f"; {usd(campaign.assumed_cost or 0)} was assumed for {count(campaign.assumed_cells, 'cell')}"
    return text


def _reserved_text(campaign: Campaign) -> str:
    if not campaign.retries:
        return f"{usd(campaign.reserved)}, no cell is retried"
    return f"{usd(campaign.reserved)} if every cell needs all of its {1 + campaign.retries} attempts"


def _caps_facts(plan: Plan) -> list[tuple[str, str]]:
    campaign = plan.campaign
    facts = []
    if campaign.max_cost is not None:
        facts.append(
            f"{usd(campaign.max_cost)} for this campaign, {usd(campaign.max_cost - campaign.reserved)} to spare"
        )
    if plan.around.unseen:
        facts.append(f"those of all operators were not looked at: {plan.around.unseen}")
    else:
        shared = [room for room in plan.around.rooms if room.cap is not None]
        facts += [_room_text(room) for room in shared]
        if not shared:
            facts.append("none for all operators; `runner-e2e dispatch caps` sets them")
    return listed("caps", facts)


def _room_text(room: Room) -> str:
    unknown = f" and {count(room.unknown, 'reservation')} of unknown cost" if room.unknown else ""
    left = room.left or 0
    rest = f"{usd(left)} left" if left >= 0 else f"{usd(-left)} over"
    return f"{usd(room.cap or 0)} {room.name}, {usd(room.taken)} taken{unknown}, {rest}"


def listed(name: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """One name for several texts."""
    return [(name if not number else "", text) for number, text in enumerate(texts)]


def _public(plan: Plan) -> list[str]:
    """What others can see of the campaign, and who they are."""
    readers = "everybody" if plan.around.private is False else f"whoever may read {plan.campaign.repository}"
    if plan.catalog.plain_ids:
        return [f"{readers} sees the ids of the cells, since the catalog says `plain-ids: true`"]
    seen = "handles, verdicts, timeouts, kinds of environments, names of credentials, and how many cells there are"
    facts = [f"{readers} sees {seen}; no id, suite, profile or case"]
    if plan.around.private is False:
        facts.append("and can download the result records, which name the cells, when signed in to GitHub")
    return facts


def check_caps(plan: Plan) -> None:
    """Raises :class:`~runner_e2e.dispatch.money.BudgetError` where a shared cap would be passed."""
    problems = overdrafts(plan.around.rooms, plan.campaign.reserved)
    if problems:
        raise BudgetError.of(problems)


def plan_data(plan: Plan) -> dict[str, object]:
    """The plan for programs. Amounts are US dollars."""
    campaign = plan.campaign
    needed = requests(len(campaign.shards))
    return {
        "schema": PLAN_SCHEMA,
        "campaign": campaign.id,
        "digest": campaign.digest,
        "file": None if plan.file is None else str(plan.file),
        "repository": campaign.repository,
        "workflow": campaign.workflow,
        "target": campaign.target,
        "cells": campaign.cells,
        "retries": campaign.retries,
        "expected_usd": dollars(campaign.expected),
        "reserved_usd": dollars(campaign.reserved),
        "assumed": {"cells": campaign.assumed_cells, "attempt_usd": dollars(campaign.assumed_cost)},
        "max_cost_usd": dollars(campaign.max_cost),
        "caps": [
            {
                "name": room.name,
                "cap_usd": dollars(room.cap),
                "taken_usd": dollars(room.taken),
                "left_usd": dollars(room.left),
            }
            for room in plan.around.rooms
        ],
        "caps_unseen": plan.around.unseen or None,
        "requests": {"start": needed.start, "whole": needed.whole},
        "shards": [
            {
                "index": shard.index,
                "expected_usd": dollars(shard.expected),
                "reserved_usd": dollars(shard.reserved),
                "cells": [
                    {
                        "handle": cell.handle,
                        "expected_usd": dollars(cell.expected),
                        "reserved_usd": dollars(cell.reserved),
                    }
                    for cell in shard.cells
                ],
            }
            for shard in campaign.shards
        ],
        "public": _public(plan),
    }


def dollars(amount: int | None) -> float | None:
    """Micro-dollars as US dollars; None stays unknown."""
    return None if amount is None else amount / 1_000_000
