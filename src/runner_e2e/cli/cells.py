"""``runner-e2e cells``: looks at a catalog before anything is run or paid for."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.ranges import Whole
from runner_e2e.cli.selection_options import campaign_key, catalog_option, key_option, selection_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.cells.selectors import Candidate, Selection

__all__ = ["cells"]

LIST_SCHEMA = "runner-e2e.cells/v1"
EXPLANATION_SCHEMA = "runner-e2e.explanation/v1"

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on one line.")


@click.group()
def cells() -> None:
    """Look at the cells of a catalog: which there are, which are selected and why, and as a matrix of jobs.

    Within a selector its values are alternatives; different selectors restrict one another.
    """


@cells.command("list", short_help="List the selected cells; without a selector all.")
@selection_options
@catalog_option
@click.option("--handles", is_flag=True, help="Show the public handle of each cell; needs the campaign key.")
@key_option
@json_option
def list_cells(*, selection: Selection, catalog_path: Path, handles: bool, key_variable: str, as_json: bool) -> None:
    """List the selected cells; without a selector all of them.

    It prints ids: do not run it in a job whose log is public.
    """
    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cells.selectors import select

    catalog = read_catalog(catalog_path)
    key = _required_key(key_variable, "--handles") if handles else None
    selected = select(catalog, selection, unselective=True)
    if as_json:
        _print_json(
            {
                "schema": LIST_SCHEMA,
                "catalog": catalog.path,
                "cells": [_cell_data(cell, key) for cell in selected],
                "totals": _totals(catalog, selected),
            }
        )
        return
    _print_cells(selected, key)
    click.echo(_summary(catalog, selected))


@cells.command(short_help="Print the selected cells as matrices of jobs.")
@selection_options
@catalog_option
@key_option
@click.option("--max-parallel", type=Whole(1, 256), metavar="N", help="Jobs that run at once.")
@click.option("--shard", type=Whole(min=0), metavar="N", help="Print only this matrix, from 0, without the rest.")
@json_option
def matrix(
    *,
    selection: Selection,
    catalog_path: Path,
    key_variable: str,
    max_parallel: int | None,
    shard: int | None,
    as_json: bool,
) -> None:
    """Print the selected cells as matrices of GitHub Actions, at most 256 jobs each.

    The output is public: it shows handles under the campaign key, never ids (unless the catalog says plain-ids).
    """
    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cells.matrix import make_matrix
    from runner_e2e.cells.selectors import select
    from runner_e2e.errors import UsageError

    catalog = read_catalog(catalog_path)
    key = campaign_key(key_variable)
    made = make_matrix(catalog, select(catalog, selection), key=key, max_parallel=max_parallel)
    if shard is None:
        data: object = made.to_data()
    elif shard < len(made.shards):
        data = made.shards[shard].to_data()
    else:
        raise UsageError(
            f"there is no shard {shard}",
            why=f"{made.cells} cells need {len(made.shards)} of them, counted from 0",
            fix="start a shard's job only if the length of `shards` says that it exists",
        )
    _print_json(data, pretty=not as_json and sys.stdout.isatty())


@cells.command(short_help="Explain one cell, or what selectors take and why.")
@click.argument("cell", required=False, metavar="[ID|HANDLE]")
@selection_options
@catalog_option
@key_option
@json_option
def explain(*, cell: str | None, selection: Selection, catalog_path: Path, key_variable: str, as_json: bool) -> None:
    """Explain one cell, by its id or its public handle, or what selectors take and leave, and why.

    It prints ids: do not run it in a job whose log is public.
    """
    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cells.handles import is_handle
    from runner_e2e.cells.selectors import candidate_by_id, cell_by_handle
    from runner_e2e.errors import UsageError

    catalog = read_catalog(catalog_path)
    if cell is None:
        _explain_selection(catalog, selection, as_json=as_json)
        return
    if selection.used:
        raise UsageError(f"an id excludes {' and '.join(selection.used)}", fix="give either one cell or selectors")
    key = campaign_key(key_variable)
    if is_handle(cell):
        cell = cell_by_handle(catalog, key or _required_key(key_variable, "a handle"), cell).id
    candidate = candidate_by_id(catalog, cell)
    if as_json:
        reason = candidate.exclusion.reason if candidate.exclusion else None
        data = {**_cell_data(candidate.cell, key), "excluded": candidate.exclusion is not None}
        _print_json({"schema": EXPLANATION_SCHEMA, "cells": [{**data, "exclusion_reason": reason}]})
        return
    for name, text in _facts(catalog, candidate, key):
        click.echo(f"  {name:<12} {text}" if name else text)


def _explain_selection(catalog: Catalog, selection: Selection, *, as_json: bool) -> None:
    from runner_e2e.cells.selectors import Verdict, decide
    from runner_e2e.cells.wording import count
    from runner_e2e.cli.table import Column, print_table

    decisions = decide(catalog, selection)
    if as_json:
        rows = [
            {**_cell_data(decision.cell, None), "verdict": decision.verdict.value, "reason": decision.reason}
            for decision in decisions
        ]
        _print_json({"schema": EXPLANATION_SCHEMA, "cells": rows})
        return
    styles = {Verdict.SELECTED.value: "green", Verdict.EXCLUDED.value: "yellow", Verdict.MANUAL_ONLY.value: "yellow"}
    columns = (
        Column(title="verdict", styles={**styles, "": "dim"}),
        Column(title="cell", whole=True),
        Column(title="why"),
    )
    print_table(columns, [(decision.verdict.value, decision.cell.id, decision.reason) for decision in decisions])
    taken = sum(decision.verdict is Verdict.SELECTED for decision in decisions)
    click.echo(f"{taken} of {count(len(decisions), 'cell')} selected")


def _required_key(variable: str, reason: str) -> bytes:
    from runner_e2e.errors import UsageError

    key = campaign_key(variable)
    if key is None:
        raise UsageError(
            f"{reason} needs the campaign key, and {variable} is not set",
            fix=f"set {variable} to the key of the campaign (a new one: `runner-e2e dispatch keygen`)",
        )
    return key


def _cell_data(cell: Cell, key: bytes | None) -> dict[str, object]:
    from runner_e2e.cells.handles import handle

    data: dict[str, object] = {
        "id": cell.id,
        "suite": cell.suite,
        "profile": cell.profile,
        "environment": cell.environment,
        "case": cell.case,
        "groups": list(cell.groups),
        "credentials": list(cell.credentials),
        "timeout_seconds": cell.timeout,
        "expected_cost_usd": cell.expected_cost,
        "manual_only": cell.manual_only,
        "billable": cell.billable,
        "definition_hash": cell.definition_hash,
    }
    return data if key is None else {"handle": handle(key, cell.id), **data}


def _print_json(data: object, *, pretty: bool = False) -> None:
    click.echo(json.dumps(data, indent=2) if pretty else json.dumps(data, separators=(",", ":")))


def _print_cells(selected: Sequence[Cell], key: bytes | None) -> None:
    from runner_e2e.cells.durations import format_duration
    from runner_e2e.cells.handles import handle
    from runner_e2e.cli.table import Column, print_table

    columns = (
        Column(title="handle", whole=True, styles={"": "dim"}),
        Column(title="cell", whole=True),
        Column(title="groups", styles={"": "cyan"}),
        Column(title="timeout", right=True, whole=True),
        Column(title="cost", right=True, whole=True, styles={"unknown": "yellow", "free": "green"}),
        Column(title="credential"),
        Column(title="note", styles={"": "yellow"}),
    )
    rows = [
        (
            handle(key, cell.id) if key else "",
            cell.id,
            ", ".join(cell.groups),
            format_duration(cell.timeout),
            _cost(cell),
            ", ".join(cell.credentials) or "none",
            "manual-only" if cell.manual_only else "",
        )
        for cell in selected
    ]
    print_table(columns, rows)


def _cost(cell: Cell) -> str:
    if not cell.billable:
        return "free"
    return "unknown" if cell.expected_cost is None else f"${cell.expected_cost:.2f}"


def _totals(catalog: Catalog, selected: Sequence[Cell]) -> dict[str, int | float]:
    """Sums over *selected*; what is unknown is counted, never taken for zero."""
    known = sum(cell.expected_cost for cell in selected if cell.expected_cost is not None)
    return {
        "cells": len(selected),
        "timeout_seconds": sum(cell.timeout for cell in selected),
        "expected_cost_usd": round(known, 6),
        "cells_of_unknown_cost": sum(cell.expected_cost is None for cell in selected),
        "attempts": 1 + catalog.retries,
    }


def _summary(catalog: Catalog, selected: Sequence[Cell]) -> str:
    from runner_e2e.cells.durations import format_duration
    from runner_e2e.cells.wording import count, expected_cost

    totals = _totals(catalog, selected)
    suites = count(len({cell.suite for cell in selected}), "suite")
    cost = expected_cost(selected)
    if catalog.retries and totals["expected_cost_usd"]:
        cost += f" (${totals['expected_cost_usd'] * totals['attempts']:.2f} if each is retried)"
    longest = format_duration(totals["timeout_seconds"])
    return f"{count(len(selected), 'cell')} in {suites}: {cost}, at most {longest} one after another"


def _facts(catalog: Catalog, candidate: Candidate, key: bytes | None) -> list[tuple[str, str]]:
    """What there is to say about one cell, as names and texts; a text without a name is a heading."""
    from runner_e2e.cells.durations import format_duration
    from runner_e2e.cells.handles import handle

    cell = candidate.cell
    kind = catalog.environments[cell.environment].kind
    unbilled = "nothing is billed" if not cell.billable else _cost(cell)
    facts = [
        ("", cell.id),
        ("suite", cell.suite),
        ("profile", cell.profile),
        ("environment", cell.environment if kind == cell.environment else f"{cell.environment} ({kind})"),
        ("case", cell.case),
        ("groups", ", ".join(cell.groups) or "none"),
        ("timeout", f"{format_duration(cell.timeout)}, then {format_duration(catalog.grace)} of grace"),
        ("cost", f"{unbilled} an attempt" if cell.billable else unbilled),
        ("attempts", f"at most {1 + catalog.retries}"),
        ("credentials", ", ".join(cell.credentials) or "none"),
        ("defined at", str(catalog.places.get(f"/suites/{cell.suite}/cases/{cell.case}", catalog.path))),
        ("definition", cell.definition_hash),
    ]
    if key is not None:
        facts.append(("handle", handle(key, cell.id)))
    return [*facts, ("runs", _when(catalog, candidate))]


def _when(catalog: Catalog, candidate: Candidate) -> str:
    cell = candidate.cell
    if candidate.exclusion is not None:
        place = catalog.places.get(f"/exclusions/{catalog.exclusions.index(candidate.exclusion)}", catalog.path)
        reason = candidate.exclusion.reason or "no reason is given"
        return f"never: excluded at {place}: {reason}"
    if cell.manual_only:
        return f"only when --suite {cell.suite} or --id names it: the suite is manual-only"
    return "with --all, --id, or any selectors that all match"
