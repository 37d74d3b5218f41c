"""What the action's ``gate``, ``plan`` and ``claim`` do: who may pay, for which cells, and that nobody else does."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e import gha
from runner_e2e.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.run_reservations import Bill

__all__ = ["claim", "connect", "gate", "plan", "read_whole_number"]

_WHOLE_NUMBER = re.compile(r"[0-9]{1,16}")


def gate() -> int:
    """Passes the gate or refuses; outputs the target's commit. Raises what :func:`admit` raises."""
    from runner_e2e.dispatch.admission import Application, admit, describe

    contexts = gha.run_contexts()
    application = Application(
        allowlist=gha.read_input("allowlist"),
        branch=gha.read_input("target"),
        default_branch=gha.read_input("default-branch"),
        claim=gha.read_input("claim"),
    )
    admission = admit(connect(contexts), contexts, application)
    gha.write_outputs(
        {
            "target-sha": admission.target.sha,
            "target-ref": admission.target.ref,
            "default-branch": admission.default_branch,
        }
    )
    for line in describe(admission):
        print(f"gate: {line}")
    return 0


def plan() -> int:
    """Turns selectors, a sealed selection, or the one id in the environment into a matrix, and says what it may cost.

    Raises what the selectors, the seal, :func:`~runner_e2e.engine.local.take_cell` and the matrix raise.
    """
    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cells.handles import campaign_keys
    from runner_e2e.cells.model import DEFAULT_CATALOG_PATH
    from runner_e2e.cells.wording import count, expected_cost
    from runner_e2e.dispatch.run_reservations import bill_of

    keys = campaign_keys(os.environ)
    catalog = read_catalog(Path(gha.read_input("configuration", default=DEFAULT_CATALOG_PATH)))
    sealed = gha.read_input("sealed-selection")
    key = next(iter(keys), None)
    named = bool(os.environ.get(catalog.selected_id.variable))
    if named:
        cells = _named(catalog, sealed=sealed)
    elif sealed:
        cells, key = _unsealed(catalog, sealed, keys)
    else:
        cells = _selected(catalog)
    # Without a key a cell has no name that tells the next job and nobody else which one it is.
    unnamed = named and key is None and not catalog.plain_ids
    matrix = {} if unnamed else _matrix(catalog, cells, key)
    bill = bill_of(catalog, cells)
    reserved, largest = ("" if each is None else str(each) for each in (bill.reserved, bill.largest))
    credentials = json.dumps(sorted({name for cell in cells for name in cell.credentials}), separators=(",", ":"))
    money = {"cells": str(bill.cells), "reserved": reserved, "largest": largest}
    gha.write_outputs({**matrix, **money, "credentials": credentials})
    said = f"{count(bill.cells, 'cell')}, {expected_cost(cells)} an attempt"
    print(f"plan: {said}, at most {count(1 + catalog.retries, 'attempt')} each")
    if bill.reserved is None:
        text = "what this run may cost is not known, and caps refuse it\nfix: write `expected-cost` into the catalog"
        print(gha.annotation("warning", text, title="runner-e2e plan"))
    gha.append_summary(f"**Plan:** {said}.\n")
    return 0


def _matrix(catalog: Catalog, cells: Sequence[Cell], key: bytes | None) -> dict[str, str]:
    """The outputs that make the jobs of *cells*."""
    from runner_e2e.cells.matrix import MAXIMUM_JOBS, make_matrix

    made = make_matrix(catalog, cells, key=key)
    if len(made.shards) > 1:
        raise UsageError(
            f"the selection has {made.cells} cells, and one run has a matrix of at most {MAXIMUM_JOBS} jobs",
            fix="seal it with `runner-e2e dispatch seal`, which makes several runs of it, or select fewer cells",
        )
    (shard,) = made.shards
    return {"matrix": json.dumps(shard.to_data(), separators=(",", ":")), "max-parallel": str(made.max_parallel)}


def claim() -> int:
    """Reserves what this attempt may cost and takes its claim. Raises what :func:`claim_within_caps` raises."""
    from runner_e2e.dispatch.admission import read_own_run
    from runner_e2e.dispatch.claim import claim_of
    from runner_e2e.dispatch.money import usd
    from runner_e2e.dispatch.run_reservations import claim_within_caps

    contexts = gha.run_contexts()
    api = connect(contexts)
    bill = _bill()
    run = read_own_run(api, contexts)
    taken = claim_of(run, gha.read_input("nonce"))
    entry = claim_within_caps(api, taken, bill, commit=run.head_sha)
    gha.write_outputs({"claim": str(taken)})
    print(f"claim: attempt {taken.attempt} of this run holds {taken.nonce}")
    if entry is None:
        print("claim: this repository keeps no ledger, so no cap limits the run (`runner-e2e dispatch caps` sets one)")
    else:
        amount = "an unknown amount is" if entry.reserved is None else f"{usd(entry.reserved)} are"
        print(f"claim: {amount} reserved as {entry.key}")
    return 0


def _bill() -> Bill:
    """What the plan said of the cost. An older workflow does not hand it on: then it is not known."""
    from runner_e2e.dispatch.run_reservations import Bill

    cells, reserved = read_whole_number("cells"), read_whole_number("reserved")
    if cells is None:
        text = "the claim was not told what this run may cost\nfix: give it the plan's outputs `cells` and `reserved`"
        print(gha.annotation("warning", text, title="runner-e2e claim"))
    return Bill(cells=cells or 0, reserved=reserved)


def read_whole_number(name: str) -> int | None:
    """An input that hands on a number of the plan; None where it is empty. Raises :class:`UsageError` for another."""
    value = gha.read_input(name)
    if value and not _WHOLE_NUMBER.fullmatch(value):
        raise UsageError(
            f"the input `{name}` is {value[:20]!r}, which is no whole number",
            fix=f"give `{name}: ${{{{ needs.plan.outputs.{name} }}}}`",
        )
    return int(value) if value else None


def connect(contexts: gha.RunContexts) -> GitHubApi:
    """The API of the job, with the token that the step was given."""
    from runner_e2e.dispatch.github_api import DEFAULT_URL, GitHubApi

    return GitHubApi(
        repository=contexts.repository, token=gha.read_input("github-token"), url=contexts.api_url or DEFAULT_URL
    )


def _unsealed(catalog: Catalog, sealed: str, keys: tuple[bytes, ...]) -> tuple[tuple[Cell, ...], bytes]:
    from runner_e2e.cells.sealed import open_selection
    from runner_e2e.cells.selectors import cell_by_id
    from runner_e2e.errors import RunnerE2EError

    if _selectors():
        raise UsageError("a sealed selection excludes selectors", fix="give one of them")
    nonce, repository = gha.read_input("nonce"), gha.run_contexts().repository
    opened = open_selection(sealed, keys=keys, nonce=nonce, repository=repository)
    cells = []
    for each in opened.ids:
        try:
            cells.append(cell_by_id(catalog, each))
        except RunnerE2EError:
            # The message would name the id.
            raise RefusedError(
                f"{catalog.path} does not have a cell of the sealed selection, or excludes it (it is not shown here)",
                why="the target's catalog is another one than that of the plan",
                fix="plan the campaign from the catalog of the target",
            ) from None
    return tuple(cells), opened.key


def _named(catalog: Catalog, *, sealed: str) -> tuple[Cell, ...]:
    """The one cell whose id is in the environment, which is taken out of it."""
    from runner_e2e.engine.local import take_cell

    if sealed or _selectors() or gha.read_input("all", default="false") != "false":
        raise UsageError(
            f"the variable {catalog.selected_id.variable} excludes selectors and a sealed selection",
            fix="give the id of one cell, or select cells",
        )
    return (take_cell(catalog),)


def _selected(catalog: Catalog) -> tuple[Cell, ...]:
    from runner_e2e.cells.selectors import Selection, select

    every = gha.read_input("all", default="false")
    if every not in {"true", "false"}:
        raise UsageError(f"the input `all` is {every[:20]!r}", fix="write true or false")
    try:
        return select(catalog, Selection(all=every == "true", **_selectors()))
    except RefusedError as error:
        raise RefusedError(
            error.problem.what,
            why=f"{catalog.selected_id.variable}, `sealed-selection` and the inputs that select are empty",
            fix="give one of them: suites, groups, profiles or environments, or `all: true`",
        ) from None


def _selectors() -> dict[str, tuple[str, ...]]:
    """The selectors that may be public. There is none for cases and ids: those are handed over sealed."""
    names = ("suites", "groups", "profiles", "environments")
    return {name: found for name in names if (found := gha.read_list_input(name))}
