"""What a catalog of the right shape can still get wrong: references, repetitions, ranges, and secrets in it.

Every check looks at the whole catalog and yields its problems with their places; none stops the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from runner_e2e.cells.ids import MAXIMUM_LENGTH, CellId
from runner_e2e.cells.selectors import excludes
from runner_e2e.cells.wording import quote, suggestion
from runner_e2e.errors import Place, Problem
from runner_e2e.sandbox.hosts import InvalidRuleError, parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from runner_e2e.cells.model import Catalog, Exclusion

__all__ = ["MAXIMUM_TIMEOUT", "Draft", "Repetition", "Written", "check_meaning"]

T = TypeVar("T")

# A job on a self-hosted runner may take five days; https://docs.github.com/en/actions/reference/limits
MAXIMUM_TIMEOUT: Final = 5 * 24 * 3600.0

_RESERVED_PREFIXES = ("GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_", "LD_", "DYLD_", "PYTHON", "BASH_FUNC_")
_OF_SESSION = {"PATH", "HOME", "SHELL", "USER", "LOGNAME", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP", "TERM", "LANG"}
_OF_INTERPRETERS = {"CI", "IFS", "ENV", "BASH_ENV", "NODE_OPTIONS", "NODE_PATH"}
_PLACEHOLDER = re.compile(
    r"\{\{?\s*(?:selected[-_. ]?)?(?:id|case|cell)(?:[-_.]id)?\s*\}?\}|<(?:selected[-_])?(?:id|case|cell)>"
    r"|%(?:id|case)%|\$\{?(?:id|case_id|cell_id|selected_id)\b",
    re.IGNORECASE,
)
_DIMENSIONS = ("suite", "profile", "environment", "case")
_HARNESS_FIX = "remove it: the harness finds the id in its environment"


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """A case that was written a second time, perhaps in another way (``a.b``, or ``b`` below ``a``)."""

    suite: str
    case: str
    place: Place
    first: Place


@dataclass(frozen=True, kw_only=True)
class Written(Generic[T]):
    """A value that may be written at several levels, where it was written, and in which suite ("": at the top)."""

    value: T
    suite: str
    place: Place


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A catalog as it was read, and what was written at each level of it before the nearest level won."""

    catalog: Catalog
    repetitions: tuple[Repetition, ...] = ()
    groups: tuple[Written[str], ...] = ()
    timeouts: tuple[Written[float], ...] = ()
    costs: tuple[Written[float], ...] = ()


def check_meaning(draft: Draft) -> Iterator[Problem]:
    """Yields every problem of *draft* that its shape does not show, in no particular order."""
    checks = _Checks(draft)
    references = list(checks.references())
    yield from references
    yield from checks.repetitions()
    yield from checks.credentials()
    yield from checks.durations()
    yield from checks.costs()
    yield from checks.lengths()
    yield from checks.harness()
    yield from checks.artifacts()
    yield from checks.hosts()
    yield from checks.selected_id()
    yield from checks.variables()
    yield from checks.exclusions(complete=not references)


class _Checks:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.catalog = draft.catalog
        self.spanned = tuple(_spanned(draft.catalog))

    def at(self, pointer: str) -> Place:
        """The place of *pointer*, or of the nearest thing around it that has one."""
        while pointer and pointer not in self.catalog.places:
            pointer = pointer.rpartition("/")[0]
        return self.catalog.places.get(pointer, Place(path=self.catalog.path, line=1, column=1))

    def references(self) -> Iterator[Problem]:
        """Names that nothing declares."""
        catalog = self.catalog
        for kind, declared in (("profile", catalog.profiles), ("environment", catalog.environments)):
            for owner in declared.values():
                if owner.credential is not None:
                    yield from self._known(
                        "credential", owner.credential, catalog.credentials, f"/{kind}s/{owner.name}/credential"
                    )
        for suite in catalog.suites.values():
            base = f"/suites/{suite.name}"
            for name in suite.profiles:
                yield from self._known("profile", name, catalog.profiles, f"{base}/profiles/{name}")
            for name in suite.environments:
                yield from self._known("environment", name, catalog.environments, f"{base}/environments/{name}")
        for group in self.draft.groups:
            yield from self._known("group", group.value, catalog.groups, "", group.place)

    def repetitions(self) -> Iterator[Problem]:
        """Ids that were written twice."""
        for repetition in self.draft.repetitions:
            yield Problem(
                what=f"case {quote(repetition.case)} of suite {repetition.suite} is there twice",
                why=f"line {repetition.first.line} makes the same ids",
                fix="remove or rename one of them",
                place=repetition.place,
            )

    def _known(
        self, kind: str, name: str, declared: Mapping[str, object], pointer: str, place: Place | None = None
    ) -> Iterator[Problem]:
        if name in declared:
            return
        private = kind == "credential" and not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)
        yield Problem(
            what=f"unknown {kind} {'(not shown)' if private else quote(name)}",
            why=f"{kind}s are declared at the top of the catalog",
            fix=suggestion(name, declared) if declared else f"declare it below `{kind}s:`",
            place=place or self.at(pointer),
        )

    def credentials(self) -> Iterator[Problem]:
        """Names that cannot be secrets of GitHub or that the system uses itself."""
        by_folded: dict[str, str] = {}
        for name in self.catalog.credentials:
            place = self.at(f"/credentials/{name}")
            if reserved := _reserved(name):
                yield Problem(what=f"credential {name} cannot be used", why=reserved, fix="rename it", place=place)
            if name == self.catalog.selected_id.variable:
                yield Problem(
                    what=f"credential {name} is the variable of the selected id", fix="rename one of them", place=place
                )
            first = by_folded.setdefault(name.upper(), name)
            if first != name:
                yield Problem(
                    what=f"credentials {first} and {name} are one",
                    why="GitHub does not distinguish the case of a secret's name",
                    fix="remove one of them",
                    place=place,
                )

    def durations(self) -> Iterator[Problem]:
        """Timeouts of nothing or of longer than any runner allows."""
        for timeout in self.draft.timeouts:
            if 0 < timeout.value <= MAXIMUM_TIMEOUT:
                continue
            yield Problem(
                what="the timeout is too long" if timeout.value else "a timeout of 0 ends every cell at once",
                why="no runner keeps a job for more than 5 days" if timeout.value else "",
                fix="write a duration like 20m",
                place=timeout.place,
            )
        if self.catalog.grace > 3600:
            yield Problem(
                what="the grace is too long",
                why="it is the time that a harness has to end itself after its timeout, at most 1h",
                fix="write a duration like 30s",
                place=self.at("/grace"),
            )

    def costs(self) -> Iterator[Problem]:
        """Costs of what is not billed."""
        for cost in self.draft.costs:
            suite = self.catalog.suites.get(cost.suite)
            if suite is not None and not suite.billable and cost.value:
                yield Problem(
                    what=f"suite {suite.name} is not billable and has an expected cost",
                    why="what is not billed costs nothing",
                    fix="remove the cost, or remove `billable: false`",
                    place=cost.place,
                )

    def lengths(self) -> Iterator[Problem]:
        """Ids that are too long, once for each case."""
        longest: dict[tuple[str, str], int] = {}
        for cell in self.spanned:
            key = (cell.suite, cell.case)
            longest[key] = max(longest.get(key, 0), len(str(cell)))
        for (suite, case), length in longest.items():
            if length > MAXIMUM_LENGTH:
                yield Problem(
                    what=f"an id of this case has {length} characters",
                    why=f"suite.profile.environment.case has at most {MAXIMUM_LENGTH}",
                    fix="shorten a name",
                    place=self.at(f"/suites/{suite}/cases/{case}"),
                )

    def harness(self) -> Iterator[Problem]:
        """A command that names a cell, or paths that leave the target."""
        harness, variable = self.catalog.harness, self.catalog.selected_id.variable
        cells = {str(cell) for cell in self.spanned}
        if harness.command and not harness.command[0].strip():
            yield Problem(
                what="the program of harness.command is empty",
                fix="write the program as the first item",
                place=self.at("/harness/command/0"),
            )
        for index, argument in enumerate(harness.command):
            place = self.at(f"/harness/command/{index}")
            if argument == "--id" or argument.startswith("--id="):
                yield Problem(
                    what="harness.command has --id",
                    why="a command line is public on the machine; an id reaches the harness in a variable",
                    fix=f"{_HARNESS_FIX}; for old targets see selected-id.argv-fallback",
                    place=place,
                )
            elif variable in argument:
                yield Problem(
                    what=f"harness.command names {variable}",
                    why="no shell expands it here, and its value must not reach a command line",
                    fix=_HARNESS_FIX,
                    place=place,
                )
            yield from self._names_no_cell(argument, "harness.command", cells, place)
        for index, path in enumerate(harness.hide):
            yield from self._below_target(path, "harness.hide", self.at(f"/harness/hide/{index}"))
        yield from self._below_target(harness.directory, "harness.directory", self.at("/harness/directory"))
        yield from self._names_no_cell(harness.directory, "harness.directory", cells, self.at("/harness/directory"))

    def _names_no_cell(self, text: str, named: str, cells: set[str], place: Place) -> Iterator[Problem]:
        if _PLACEHOLDER.search(text):
            yield Problem(
                what=f"{named} has a placeholder for the id",
                why=f"nothing is filled in here; the id reaches the harness in {self.catalog.selected_id.variable}",
                fix=_HARNESS_FIX,
                place=place,
            )
        elif any(word in cells for word in re.split(r"[^a-z0-9_.-]+", text)):
            yield Problem(
                what=f"{named} has the id of a cell in it",
                why="one harness runs every cell, and a command line or an environment is no place for an id",
                fix=_HARNESS_FIX,
                place=place,
            )

    def _below_target(self, path: str, named: str, place: Place) -> Iterator[Problem]:
        parts = PurePosixPath(path).parts
        if not path.strip() or "\0" in path:
            yield Problem(what=f"{named} is an empty path", fix="write a path below the target's root", place=place)
        elif path.startswith(("/", "~")) or ".." in parts:
            yield Problem(
                what=f"{named} {quote(path)} leaves the target",
                why="it is relative to the root of the target and stays below it",
                fix="write it without a leading / or ~ and without ..",
                place=place,
            )

    def artifacts(self) -> Iterator[Problem]:
        """Executables that are named twice."""
        first: dict[str, int] = {}
        for index, file in enumerate(self.catalog.artifacts.files):
            known = first.setdefault(str(PurePosixPath(file.path)), index)
            if file.path and known != index:
                yield Problem(
                    what=f"the artifact {quote(file.path)} is there twice",
                    why=f"line {self.at(f'/artifacts/files/{known}').line} has it too, and a file has one digest",
                    fix="remove one of them",
                    place=self.at(f"/artifacts/files/{index}/path"),
                )

    def hosts(self) -> Iterator[Problem]:
        """Hosts that agents are to reach and that are none."""
        for index, text in enumerate(self.catalog.network.hosts):
            try:
                parse_rule(text)
            except InvalidRuleError as error:
                place = self.at(f"/sandbox/network/{index}")
                yield Problem(what=f"sandbox.network {error}", fix=error.fix, place=place)

    def selected_id(self) -> Iterator[Problem]:
        """A way for the id that cannot work, or that was not allowed."""
        chosen = self.catalog.selected_id
        place = self.at("/selected-id/variable")
        if (reserved := _reserved(chosen.variable)) or chosen.variable.startswith("RUNNER_E2E_"):
            yield Problem(
                what=f"selected-id.variable {quote(chosen.variable)} cannot be used",
                why=reserved or "",
                fix="choose another name",
                place=place,
            )
        if chosen.detection == "argv" and not chosen.argv_fallback:
            yield Problem(
                what="selected-id.detection is argv, and argv-fallback is not true",
                why="an id on a command line can be read by the agent; that is done only where it is allowed",
                fix="let the target read the variable, or add `argv-fallback: true`",
                place=self.at("/selected-id/detection"),
            )
        if chosen.detection == "auto" and not chosen.sources:
            yield Problem(
                what="selected-id.detection is auto, and there are no sources",
                why="auto looks for the variable's name in the harness sources of the target",
                fix="add `sources: [tests/**/*.py]` with the files of your harness",
                place=self.at("/selected-id/detection"),
            )
        for index, glob in enumerate(chosen.sources):
            yield from self._below_target(glob, "selected-id.sources", self.at(f"/selected-id/sources/{index}"))

    def variables(self) -> Iterator[Problem]:
        """Variables that would carry a credential, an id, or what the product sets itself."""
        catalog = self.catalog
        cells = {str(cell) for cell in self.spanned}
        maps = [("/harness/env", catalog.harness.environment)]
        maps += [(f"/profiles/{profile.name}/env", profile.environment) for profile in catalog.profiles.values()]
        maps += [(f"/environments/{place.name}/env", place.variables) for place in catalog.environments.values()]
        for pointer, variables in maps:
            for name, value in variables.items():
                place = self.at(f"{pointer}/{name}")
                yield from self._settable(name, place, literal=True)
                yield from self._names_no_cell(value, pointer.strip("/").replace("/", "."), cells, place)
        for name in catalog.harness.pass_environment:
            yield from self._settable(name, self.at(f"/harness/pass-env/{name}"), literal=False)

    def _settable(self, name: str, place: Place, *, literal: bool) -> Iterator[Problem]:
        if name in self.catalog.credentials:
            yield Problem(
                what=f"{name} is a credential and {'is set to a text' if literal else 'is passed to every cell'}",
                why="a credential reaches only the cells whose profile or environment names it",
                fix=f"remove it here and write `credential: {name}` at the profile or environment",
                place=place,
            )
        elif name == self.catalog.selected_id.variable:
            yield Problem(
                what=f"{name} carries the selected id", why="it is set for each cell", fix="remove it", place=place
            )
        elif name.startswith("RUNNER_E2E_"):
            yield Problem(
                what=f"{name} may not be set here",
                why="names that begin with RUNNER_E2E_ are set for each cell, or hold the campaign's key",
                fix="rename or remove it",
                place=place,
            )

    def exclusions(self, *, complete: bool) -> Iterator[Problem]:
        """Exclusions of nothing, of everything, or of what another one excludes; suites with nothing left.

        Where the suites name unknown profiles or environments (not *complete*), only names are checked: the rest
        would follow from that mistake.
        """
        matched: dict[int, frozenset[CellId]] = {}
        for index, exclusion in enumerate(self.catalog.exclusions):
            pointer = f"/exclusions/{index}"
            wrong = list(self._exclusion_names(exclusion, pointer))
            yield from wrong
            if wrong or not complete or self._lost_a_name(exclusion, pointer):
                continue
            cells = frozenset(cell for cell in self.spanned if excludes(exclusion, cell))
            if cells:
                matched[index] = cells
                continue
            yield Problem(
                what="this exclusion matches no cell",
                why="no suite has this combination",
                fix="remove it, or correct its names",
                place=self.at(pointer),
            )
        yield from self._repeated_exclusions(matched)
        excluded = frozenset[CellId]().union(*matched.values())
        gone = {cell.suite for cell in excluded} - {cell.suite for cell in self.spanned if cell not in excluded}
        for suite in sorted(gone):
            yield Problem(
                what=f"suite {suite} has no cell left",
                why="the exclusions take out all of them",
                fix="remove the suite, or an exclusion",
                place=self.at(f"/suites/{suite}"),
            )

    def _lost_a_name(self, exclusion: Exclusion, pointer: str) -> bool:
        """Whether a dimension was written but could not be read, so that the exclusion seems wider than it is."""
        return any(
            getattr(exclusion, kind) is None and f"{pointer}/{kind}" in self.catalog.places for kind in _DIMENSIONS
        )

    def _exclusion_names(self, exclusion: Exclusion, pointer: str) -> Iterator[Problem]:
        catalog = self.catalog
        suite = catalog.suites.get(exclusion.suite or "")
        suites = list(catalog.suites.values()) if suite is None else [suite]
        known: dict[str, tuple[str | None, Iterable[str]]] = {
            "suite": (exclusion.suite, catalog.suites),
            "profile": (exclusion.profile, catalog.profiles),
            "environment": (exclusion.environment, catalog.environments),
            "case": (exclusion.case, [case for suite in suites for case in suite.cases]),
        }
        for kind, (name, names) in known.items():
            if name is not None:
                yield from self._known(kind, name, dict.fromkeys(names), f"{pointer}/{kind}")
        if not any(f"{pointer}/{kind}" in catalog.places for kind in _DIMENSIONS):
            yield Problem(
                what="this exclusion names nothing and would match every cell",
                fix="name a suite, profile, environment or case",
                place=self.at(pointer),
            )

    def _repeated_exclusions(self, matched: Mapping[int, frozenset[CellId]]) -> Iterator[Problem]:
        for index, cells in matched.items():
            for other, more in matched.items():
                if other != index and (cells < more or (cells == more and other < index)):
                    yield Problem(
                        what="what this excludes is excluded twice",
                        why=f"the exclusion in line {self.at(f'/exclusions/{other}').line} matches all of it",
                        fix="remove one of them",
                        place=self.at(f"/exclusions/{index}"),
                    )
                    break


def _spanned(catalog: Catalog) -> Iterator[CellId]:
    """Every cell whose parts are declared."""
    for suite in catalog.suites.values():
        for profile in suite.profiles:
            for environment in suite.environments:
                if profile in catalog.profiles and environment in catalog.environments:
                    for case in suite.cases:
                        yield CellId(suite=suite.name, profile=profile, environment=environment, case=case)


def _reserved(name: str) -> str:
    """Why *name* cannot be the variable of a credential, or nothing."""
    upper = name.upper()
    if upper in _OF_SESSION | _OF_INTERPRETERS:
        return f"{upper} is a variable of the system"
    prefix = next((prefix for prefix in _RESERVED_PREFIXES if upper.startswith(prefix)), "")
    return f"names that begin with {prefix} belong to the runner or the system" if prefix else ""
