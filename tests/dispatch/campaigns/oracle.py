"""What must be true when a schedule is over: the payments that the double counted against what the ledgers say."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from runner_e2e.dispatch.ledger import open_ledger

if TYPE_CHECKING:
    from tests.dispatch.campaigns.simulation import Operator
    from tests.dispatch.campaigns.world import World

    from runner_e2e.dispatch.ledger_records import CellState, ShardState

__all__ = ["judge"]

# After these nobody can know whether a dispatch arrived.
UNCLEAR = frozenset(
    {"lost-502", "lost-hang-up", "done-502", "done-500", "done-hang-up", "done-cut", "lost-hang", "done-hang", "html",
     "stale-304"}
)  # fmt: skip


def judge(world: World, operators: list[Operator]) -> None:
    """Adds to the world's problems whatever is not as it must be."""
    known: set[str] = set()
    for operator in operators:
        if operator.finished in {"defect", "given up", "left"}:
            continue  # told already
        known |= _judge_ledger(world, operator)
    _judge_payments(world, known, complete=all(each.finished == "settled" for each in operators))
    _judge_shared_ledger(world, operators)


def _judge_ledger(world: World, operator: Operator) -> set[str]:
    """One operator's own ledger against the double. Returns the nonces that it knows."""
    campaign = operator.campaign.id
    with open_ledger(operator.ledger, now=world.clock.now) as ledger:
        if campaign not in {each.id for each in ledger.campaigns()}:
            return set()
        nonces: dict[int, set[str]] = {}
        doubted: set[str | None] = set()
        for event in ledger.events(campaign):
            if event.after == "unknown":
                doubted.add(event.nonce)
            if event.nonce and event.shard is not None:
                nonces.setdefault(event.shard, set()).add(event.nonce)
        _judge_doubts(world, set().union(*nonces.values()) - doubted)
        for shard in ledger.shards(campaign):
            mine = nonces.get(shard.index, set())
            if operator.finished == "refused":  # another has started the same campaign
                mine &= {each.nonce for each in world.entries() if world.runs_of(each.nonce, operator.user)}
            _judge_shard(world, operator, shard, mine, list(ledger.cells(campaign, shard.index)))
    return set().union(*nonces.values()) if nonces else set()


def _judge_doubts(world: World, sure: set[str]) -> None:
    """What got no clear answer must have been called unknown; *sure* are the nonces of which that was never said."""
    for nonce in sorted(sure):
        if any(each.fault in UNCLEAR for each in world.sent.get(nonce, [])):
            world.problems.append(f"the dispatch of {nonce} got no clear answer, and was never called unknown")


def _judge_shard(world: World, operator: Operator, shard: ShardState, nonces: set[str], cells: list[CellState]) -> None:
    def problem(text: str) -> None:
        world.problems.append(f"{operator.user.login}, shard {shard.index} ({shard.state}): {text}")

    paid = Counter(each.handle for each in world.player.payments if each.authorisation in nonces)
    for handle, times in paid.items():
        if times > 1:
            problem(f"{handle} was paid for {times} times")
    foreign = set(paid) - {each.handle for each in cells}
    if foreign:
        problem(f"{sorted(foreign)} were paid for and belong to others")
    if shard.state != "settled":
        if paid:
            problem(f"{sorted(paid)} were paid for, and the ledger does not know")
        if shard.state in {"unpaid", "cancelled", "planned"}:
            return
        problem(f"is not final: {shard.note}")
        return
    for cell in cells:
        _judge_cell(world, cell, paid[cell.handle], problem)
    actual, kept = sum(cell.actual or 0 for cell in cells), sum(cell.kept for cell in cells)
    if actual + kept < world.spent(list(paid.elements())):
        problem(f"cost {world.spent(list(paid.elements()))}; its cells have {actual} and keep {kept}")
    if (shard.actual or 0, shard.kept) != (actual, kept):
        problem(f"has {shard.actual} and keeps {shard.kept}; its cells have {actual} and keep {kept}")


def _judge_cell(world: World, cell: CellState, paid: int, problem: object) -> None:
    assert callable(problem)
    cost = world.micros_of(cell.handle) if paid else 0
    if cell.verdict is None:
        problem(f"{cell.handle} has no verdict")
    if (cell.actual or 0) > cost:
        problem(f"{cell.handle} is said to have cost {cell.actual}; it cost {cost}")
    if not world.schedule.expired and (cell.actual or 0) + cell.kept < cost:
        problem(f"{cell.handle} cost {cost}; the ledger has {cell.actual} and keeps {cell.kept}")
    if cell.actual is None and not (cell.kept and cell.note):
        problem(f"what {cell.handle} cost is unknown, and that is not told: kept {cell.kept}, note {cell.note!r}")
    if cell.verdict == "passed" and not paid:
        problem(f"{cell.handle} passed and was never run")
    if not world.schedule.spares_runs:
        return
    if not paid:
        problem(f"{cell.handle} was lost: nothing stood in its way, and it was never paid for ({cell.note})")
    elif (cell.verdict, cell.actual, cell.kept) != ("passed", cost, 0):
        problem(f"{cell.handle} passed for {cost}; the ledger says {cell.verdict}, {cell.actual}, keeps {cell.kept}")


def _judge_payments(world: World, known: set[str], *, complete: bool) -> None:
    for handle_twice in world.player.paid_twice():
        world.problems.append(f"paid twice: {handle_twice}")
    strange = {each.authorisation for each in world.player.payments} - known
    if strange and complete:
        world.problems.append(f"something was paid for that no ledger knows: {sorted(strange)}")


def _judge_shared_ledger(world: World, operators: list[Operator]) -> None:
    """Every payment stands there, nothing is reserved any more that is decided, and sums agree with the own ledgers."""
    paid: dict[str, int] = {}
    for each in world.player.payments:
        paid[each.authorisation] = paid.get(each.authorisation, 0) + world.micros_of(each.handle)
    entries = {each.nonce: each for each in world.entries()}
    for nonce, amount in paid.items():
        entry = entries.get(nonce)
        if entry is None or (entry.counts or 0) < amount:
            world.problems.append(f"{nonce} was paid {amount}; the shared ledger has {entry}")
    for operator in operators:
        if operator.finished == "settled":
            _judge_entries(world, operator)


def _judge_entries(world: World, operator: Operator) -> None:
    campaign = operator.campaign.id
    with open_ledger(operator.ledger, now=world.clock.now) as ledger:
        totals = ledger.campaign(campaign).totals
    entries = [each for each in world.entries() if each.campaign == campaign]
    counted = sum(each.counts or 0 for each in entries)
    # Of a run whose results nobody can fetch, the run itself may have told there what they cost.
    better = totals.kept and totals.actual <= counted <= totals.committed
    if counted != totals.committed and not better:
        world.problems.append(
            f"{campaign}: the ledger has {totals.committed} micro-dollars and the shared ledger {counted}: {entries}"
        )
    for each in entries:
        if each.state == "reserved" and not totals.kept:
            world.problems.append(f"{campaign} is settled, and {each.key} is still reserved")
