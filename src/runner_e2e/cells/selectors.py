"""Selectors: which cells of a catalog a person means, and why each cell is in or out.

Within a dimension selectors are alternatives (OR), dimensions and groups restrict one another (AND). ``id`` stands
alone, ``all`` is said explicitly, and what would be nothing or what was not meant is refused.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING

from runner_e2e.cells.definition import definition_hash
from runner_e2e.cells.handles import handle as handle_of
from runner_e2e.cells.ids import CellId, parse_id
from runner_e2e.cells.model import Cell
from runner_e2e.cells.wording import count, listing, nearest, quote, suggestion
from runner_e2e.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.cells.model import Case, Catalog, Exclusion, Suite

__all__ = [
    "DIMENSIONS",
    "Candidate",
    "Decision",
    "Selection",
    "Verdict",
    "candidate_by_id",
    "candidates",
    "cell_by_handle",
    "cell_by_id",
    "decide",
    "select",
]

# Field of a selection -> option of the command line.
DIMENSIONS: Mapping[str, str] = {
    "suites": "--suite",
    "groups": "--group",
    "profiles": "--profile",
    "environments": "--environment",
    "cases": "--case",
}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What was selected, as it was written. Empty dimensions do not restrict."""

    suites: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    all: bool = False

    @property
    def used(self) -> tuple[str, ...]:
        """The options that were used, ``--id`` and ``--all`` too."""
        options = [option for name, option in DIMENSIONS.items() if getattr(self, name)]
        return (*options, *(["--id"] if self.ids else []), *(["--all"] if self.all else []))

    def to_json(self) -> str:
        """Writes the selection as one line of JSON, to be handed to another process in its environment."""
        return json.dumps({key: value for key, value in asdict(self).items() if value}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Selection:
        """Reads what :meth:`to_json` wrote. Raises :class:`UsageError` for anything else."""
        problem = UsageError("the handed-over selection is not valid", fix="select with options instead")
        try:
            data = json.loads(text)
        except ValueError as error:
            raise problem from error
        known = {field.name for field in fields(cls)}
        if not isinstance(data, dict) or not known >= data.keys():
            raise problem
        everything = data.pop("all", False)
        names: dict[str, tuple[str, ...]] = {}
        for key, value in data.items():
            if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                raise problem
            names[key] = tuple(value)
        if not isinstance(everything, bool):
            raise problem
        return cls(all=everything, **names)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A cell that the catalog spans, and the exclusion that takes it out (None: it may run)."""

    cell: Cell
    exclusion: Exclusion | None = None


class Verdict(StrEnum):
    """What became of a cell under a selection."""

    SELECTED = "selected"
    NOT_SELECTED = "not-selected"
    MANUAL_ONLY = "manual-only"
    EXCLUDED = "excluded"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One cell, whether it is in, and the reason in one sentence."""

    cell: Cell
    verdict: Verdict
    reason: str


def candidates(catalog: Catalog) -> tuple[Candidate, ...]:
    """Returns every cell that *catalog* spans, excluded ones too, in the order of the catalog.

    The order is that of ids: by suite, profile, environment and case, each as the catalog writes them.
    """
    return tuple(_candidates(catalog))


def _candidates(catalog: Catalog) -> Iterator[Candidate]:
    for suite in catalog.suites.values():
        for profile in suite.profiles:
            for environment in suite.environments:
                for case in suite.cases.values():
                    part = CellId(suite=suite.name, profile=profile, environment=environment, case=case.name)
                    yield Candidate(cell=_cell(catalog, suite, case, part), exclusion=exclusion_of(catalog, part))


def exclusion_of(catalog: Catalog, cell: CellId) -> Exclusion | None:
    """Returns the first exclusion that matches *cell*."""
    return next((exclusion for exclusion in catalog.exclusions if excludes(exclusion, cell)), None)


def excludes(exclusion: Exclusion, cell: CellId) -> bool:
    """Whether *exclusion* matches *cell* in every dimension that it names."""
    return (
        exclusion.suite in {None, cell.suite}
        and exclusion.profile in {None, cell.profile}
        and exclusion.environment in {None, cell.environment}
        and exclusion.case in {None, cell.case}
    )


def _cell(catalog: Catalog, suite: Suite, case: Case, part: CellId) -> Cell:
    named = (catalog.profiles[part.profile].credential, catalog.environments[part.environment].credential)
    return Cell(
        id=str(part),
        suite=part.suite,
        profile=part.profile,
        environment=part.environment,
        case=part.case,
        groups=tuple(dict.fromkeys([*suite.groups, *case.groups])),
        credentials=tuple(dict.fromkeys(name for name in named if name is not None)),
        timeout=case.timeout,
        expected_cost=case.expected_cost if suite.billable else 0.0,
        manual_only=suite.manual_only,
        billable=suite.billable,
        definition_hash=definition_hash(catalog, part, timeout=case.timeout),
    )


def select(catalog: Catalog, selection: Selection, *, unselective: bool = False) -> tuple[Cell, ...]:
    """Returns the selected cells in the order of the catalog, each once.

    Without any selector it refuses to run billable cells, unless *unselective* (to look, not to run): then
    everything that is not excluded is meant, manual-only cells too.

    Raises :class:`UsageError` for unknown names, for selectors that exclude each other, and for a selection of
    nothing; :class:`RefusedError` for a billable run that nothing was selected for.
    """
    decisions = decide(catalog, selection, unselective=unselective)
    selected = tuple(decision.cell for decision in decisions if decision.verdict is Verdict.SELECTED)
    if not selection.used and not unselective and any(cell.billable for cell in selected):
        raise RefusedError(
            f"nothing was selected, and all {count(len(selected), 'cell')} would be paid for",
            why="a run that costs money says what it runs",
            fix=f"select with {', '.join(DIMENSIONS.values())} or --id, or say --all",
        )
    if not selected:
        raise _nothing(selection, decisions)
    return selected


def decide(catalog: Catalog, selection: Selection, *, unselective: bool = False) -> tuple[Decision, ...]:
    """Says of every cell that *catalog* spans whether *selection* takes it and why, in the order of the catalog.

    *unselective* concerns a selection without selectors: it then takes manual-only cells too.
    Raises :class:`UsageError` for unknown names and for selectors that exclude each other.
    """
    _check_form(selection)
    _check_names(catalog, selection)
    anyway = unselective and not selection.used
    return tuple(_decision(candidate, selection, anyway=anyway) for candidate in candidates(catalog))


def _check_form(selection: Selection) -> None:
    used = selection.used
    for alone in ("--id", "--all"):
        if alone in used and len(used) > 1:
            others = [option for option in used if option != alone]
            raise UsageError(
                f"{alone} excludes {' and '.join(others)}",
                why="--id names whole cells" if alone == "--id" else "--all means every cell",
                fix=f"drop {alone}, or drop the other selectors",
            )


def _check_names(catalog: Catalog, selection: Selection) -> None:
    known: dict[str, tuple[str, ...]] = {
        "suites": tuple(catalog.suites),
        "groups": tuple(catalog.groups),
        "profiles": tuple(catalog.profiles),
        "environments": tuple(catalog.environments),
        "cases": tuple(dict.fromkeys(case for suite in catalog.suites.values() for case in suite.cases)),
    }
    for dimension, option in DIMENSIONS.items():
        names: tuple[str, ...] = getattr(selection, dimension)
        for name in names:
            if name not in known[dimension]:
                raise UsageError(
                    f"{option} {quote(name)} is unknown",
                    why=f"{catalog.path} has no {option.removeprefix('--')} of this name",
                    fix=suggestion(name, known[dimension]),
                )
    for cell_id in selection.ids:
        cell_by_id(catalog, cell_id)


def _decision(candidate: Candidate, selection: Selection, *, anyway: bool) -> Decision:
    cell = candidate.cell
    verdict, reason = Verdict.SELECTED, _taken_by(cell, selection)
    named = cell.suite in selection.suites or cell.id in selection.ids
    if missed := _missed(cell, selection):
        verdict, reason = Verdict.NOT_SELECTED, missed
    elif candidate.exclusion is not None:
        verdict, reason = Verdict.EXCLUDED, _exclusion_reason(candidate.exclusion)
    elif cell.manual_only and not named and not anyway:
        verdict = Verdict.MANUAL_ONLY
        reason = f"suite {cell.suite} is manual-only: it runs only when --suite or --id names it"
    return Decision(cell=cell, verdict=verdict, reason=reason)


def _missed(cell: Cell, selection: Selection) -> str:
    """Why the selectors do not take *cell*, or nothing when they do."""
    if selection.ids:
        return "" if cell.id in selection.ids else "--id names other cells"
    for dimension, own in _names_of(cell).items():
        wanted: tuple[str, ...] = getattr(selection, dimension)
        if wanted and not set(own) & set(wanted):
            return f"{DIMENSIONS[dimension]} does not name {listing(own) if own else 'it: it has none'}"
    return ""


def _taken_by(cell: Cell, selection: Selection) -> str:
    if selection.ids:
        return "named by --id"
    if selection.all:
        return "taken by --all"
    hits = [
        f"{DIMENSIONS[dimension]} {name}"
        for dimension, own in _names_of(cell).items()
        for name in getattr(selection, dimension)
        if name in own
    ]
    return f"taken by {', '.join(dict.fromkeys(hits))}" if hits else "no selector restricts it"


def _names_of(cell: Cell) -> dict[str, tuple[str, ...]]:
    return {
        "suites": (cell.suite,),
        "groups": cell.groups,
        "profiles": (cell.profile,),
        "environments": (cell.environment,),
        "cases": (cell.case,),
    }


def _exclusion_reason(exclusion: Exclusion) -> str:
    return f"excluded by the catalog: {exclusion.reason}" if exclusion.reason else "excluded by the catalog"


def _nothing(selection: Selection, decisions: tuple[Decision, ...]) -> UsageError:
    """The error for an empty selection; it says what held back the cells that did match."""
    manual = [decision.cell for decision in decisions if decision.verdict is Verdict.MANUAL_ONLY]
    excluded = [decision for decision in decisions if decision.verdict is Verdict.EXCLUDED]
    why = f"{' and '.join(selection.used)} have no cell in common" if selection.used else ""
    fix = "see `runner-e2e cells list`, or `runner-e2e cells explain` with the same selectors"
    if manual:
        suites = tuple(dict.fromkeys(cell.suite for cell in manual))
        why = f"what matches is manual-only ({count(len(manual), 'cell')})"
        fix = f"name the suite too: {' '.join(f'--suite {name}' for name in suites[:3])}"
    elif excluded:
        why = f"all that match are excluded by the catalog ({excluded[0].cell.id}: {excluded[0].reason})"
        fix = "select others, or change `exclusions` of the catalog"
    return UsageError("the selection is empty", why=why, fix=fix)


def candidate_by_id(catalog: Catalog, cell_id: str) -> Candidate:
    """Returns the cell of this id, also when it is excluded.

    Raises :class:`UsageError` when the text is no id, or when the catalog spans no such cell.
    """
    part = parse_id(cell_id)
    suite = catalog.suites.get(part.suite)
    case = suite.cases.get(part.case) if suite is not None else None
    if (
        suite is None
        or case is None
        or part.profile not in suite.profiles
        or part.environment not in suite.environments
    ):
        close = nearest(cell_id, (candidate.cell.id for candidate in candidates(catalog)))
        raise UsageError(
            f"cell {quote(cell_id)} is unknown",
            why=f"{catalog.path} has no cell of this id",
            fix=f"did you mean {' or '.join(close)}?" if close else "see `runner-e2e cells list`",
        )
    return Candidate(cell=_cell(catalog, suite, case, part), exclusion=exclusion_of(catalog, part))


def cell_by_id(catalog: Catalog, cell_id: str) -> Cell:
    """Returns the cell of this id.

    Raises :class:`UsageError` when the text is no id, when the catalog has no such cell, or excludes it.
    """
    found = candidate_by_id(catalog, cell_id)
    if found.exclusion is not None:
        raise UsageError(
            f"cell {quote(cell_id)} is excluded",
            why=_exclusion_reason(found.exclusion),
            fix="choose another cell, or change `exclusions` of the catalog",
        )
    return found.cell


def cell_by_handle(catalog: Catalog, key: bytes, handle: str) -> Cell:
    """Returns the cell whose handle under *key* is *handle*. Raises :class:`UsageError` when there is none."""
    for candidate in _candidates(catalog):
        if candidate.exclusion is None and handle_of(key, candidate.cell.id) == handle:
            return candidate.cell
    raise UsageError(
        f"no cell has the handle {quote(handle)}",
        why="the campaign key is another one, or the catalog has changed since the handle was made",
        fix="use the key and the commit of the run that shows the handle",
    )
