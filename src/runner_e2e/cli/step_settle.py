"""What the action's ``settle`` does: the results of a run become what it has cost, in the shared ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e import gha
from runner_e2e.cli.step_gate import connect, read_whole_number
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from runner_e2e.dispatch.claim import Claim
    from runner_e2e.dispatch.run_reservations import Settlement

__all__ = ["settle"]

TITLE = "runner-e2e settle"


def settle() -> int:
    """Settles the reservation of the claim. Raises what :func:`settle_run` raises, and for inputs that are none."""
    from runner_e2e.dispatch.downloads import records_below
    from runner_e2e.dispatch.run_reservations import RunPlan, settle_run

    contexts = gha.run_contexts()
    claim, plan = _claim(contexts), RunPlan(handles=_handles(), largest=read_whole_number("largest"))
    results = records_below(Path(gha.read_input("results", default="results")))
    inside = contexts.run_attempt == str(claim.attempt)
    settled = settle_run(connect(contexts), claim, plan, results.records, inside=inside)
    for problem in results.problems:
        print(gha.annotation("warning", problem, title=TITLE))
    if settled is None:
        print("settle: nothing was reserved for this run, so there is nothing to settle")
    else:
        _tell(settled)
    return 0


def _tell(settled: Settlement) -> None:
    from runner_e2e.cells.wording import count
    from runner_e2e.dispatch.money import usd

    entry, joined = settled.entry, settled.joined
    for problem in joined.problems:
        print(gha.annotation("warning", problem, title=TITLE))
    unknown = sum(cell.kept > 0 for cell in joined.cells)
    reserved = "an unknown amount" if entry.reserved is None else usd(entry.reserved)
    if settled.charged is None and entry.charged is not None:
        said = f"{entry.key} stays settled at {usd(entry.charged)}: less is known of its cost than before"
    elif settled.charged is None:
        said = f"{entry.key} keeps its reservation of {reserved}: the cost of {count(unknown, 'cell')} is not known"
    else:
        said = f"{entry.key} has cost {usd(settled.charged)} of {reserved} reserved"
        if unknown:
            said += f", with {usd(settled.kept)} kept for {count(unknown, 'cell')} of unknown cost"
    if settled.charged is None and entry.charged is None:
        waits = "; until it is, caps refuse whatever is to be paid" if entry.reserved is None else ""
        text = (
            f"what {entry.key} has cost is not known{waits}\n"
            f"fix: look it up at the provider, and write it: `runner-e2e dispatch caps --settle {entry.key} USD`"
        )
        print(gha.annotation("warning", text, title=TITLE))
    print(f"settle: {said}")
    gha.append_summary(f"**Cost:** {said}.\n")


def _claim(contexts: gha.RunContexts) -> Claim:
    """The claim of this run. That of an earlier attempt is right too, where only this job is run again."""
    from runner_e2e.dispatch.claim import check_claim

    text = gha.read_input("claim")
    return check_claim(text, run=contexts.run_id, attempt=text.rpartition(":")[2])


def _handles() -> tuple[str, ...]:
    """The cells that the run was to pay for, by the plan's matrix; empty for a single one, of which there is none."""
    from runner_e2e.cells.handles import is_handle

    text = gha.read_input("matrix")
    if not text and gha.read_input("cells") == "1":
        return ()
    try:
        matrix = json.loads(text)
        handles = tuple(each["handle"] for each in matrix["include"])
    except (ValueError, KeyError, TypeError, RecursionError):
        handles = ()
    if not handles or not all(isinstance(each, str) and is_handle(each) for each in handles):
        raise UsageError(
            "the input `matrix` is not the plan's",
            fix="give `matrix: ${{ needs.plan.outputs.matrix }}`, or `cells` alone for one cell that its id named",
        )
    return tuple(dict.fromkeys(handles))
