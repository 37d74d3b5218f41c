"""Reads a catalog: the shape of the document here, what it means in :mod:`runner_e2e.cells.catalog_checks`.

Every mistake of both kinds is reported in one run, in the order of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, cast

from runner_e2e.cells.catalog_checks import MAXIMUM_TIMEOUT, Draft, Repetition, Written, check_meaning
from runner_e2e.cells.catalog_secrets import find_raw_secrets, without_values
from runner_e2e.cells.formats import ABSOLUTE_PATH, CASE, CREDENTIAL, INPUT, SEGMENT, SHA256, SOME_PATH, VARIABLE
from runner_e2e.cells.lint_section import read_lint_section
from runner_e2e.cells.model import (
    DEFAULT_SELECTED_ID_VARIABLE,
    Artifact,
    Artifacts,
    Case,
    Catalog,
    Confidential,
    Credential,
    Environment,
    Exclusion,
    Harness,
    Profile,
    SelectedId,
    Suite,
)
from runner_e2e.cells.reading import Reader
from runner_e2e.errors import ConfigurationError, Place, Problem
from runner_e2e.sandbox.policy import Network
from runner_e2e.yaml_positions import Mapping, Scalar, Sequence, compose, decode

if TYPE_CHECKING:
    import collections.abc
    from pathlib import Path

    from runner_e2e.cells.reading import Section
    from runner_e2e.sandbox.policy import Reach
    from runner_e2e.yaml_positions import Node

__all__ = ["MAXIMUM_TIMEOUT", "parse_catalog", "read_catalog"]

DEFAULT_TIMEOUT: Final = 20 * 60.0
DEFAULT_GRACE: Final = 30.0
DEFAULT_RETRIES: Final = 1

_KEYS = (
    "version",
    "harness",
    "artifacts",
    "sandbox",
    "selected-id",
    "confidential",
    "lint",
    "credentials",
    "profiles",
    "environments",
    "groups",
    "suites",
    "exclusions",
    "timeout",
    "grace",
    "expected-cost",
    "retries",
    "max-parallel",
    "plain-ids",
)
_FOR_CELLS = ("harness", "profiles", "environments", "suites")
_FOR_LINT = frozenset({"version", "selected-id", "confidential", "lint", "credentials"})


def read_catalog(path: Path, *, cells: bool = True) -> Catalog:
    """Reads the catalog at *path*; without *cells* also one that only configures the lint, and so has no suite.

    Raises :class:`ConfigurationError` that holds every mistake, each with its place, in the order of the file.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(
            "there is no catalog",
            why="a catalog says which cells exist and how one is run",
            fix="create it, run from the repository's root (in a job after its checkout), or give its path "
            "(--catalog; in the action `configuration`)",
            place=Place(path=str(path)),
        ) from None
    except OSError as error:
        raise ConfigurationError(
            "the catalog cannot be read",
            why=error.strerror or str(error),
            fix="name a readable file with --catalog",
            place=Place(path=str(path)),
        ) from error
    return parse_catalog(decode(data, path=str(path)), path=str(path), cells=cells)


def parse_catalog(text: str, *, path: str, cells: bool = True) -> Catalog:
    """Reads a catalog from *text*; *path* is what messages call it. Raises like :func:`read_catalog`."""
    root = compose(text, path=path)
    if root is None:
        raise ConfigurationError(
            "the catalog is empty", fix="write harness, profiles, environments and suites", place=Place(path=path)
        )
    shape = _Shape(path)
    draft = shape.draft(root)
    secrets = find_raw_secrets(root)
    problems = [*shape.reader.problems, *secrets.problems, *check_meaning(draft)]
    if problems:
        unique = dict.fromkeys(without_values(problem, secrets.values) for problem in problems)
        raise ConfigurationError.of(tuple(sorted(unique, key=_by_place)))
    if cells and not draft.catalog.suites:
        raise ConfigurationError(
            "the catalog has no suites",
            why="it configures the lint only, and cells come from suites",
            fix=f"add {', '.join(_FOR_CELLS)}",
            place=root.place,
        )
    return draft.catalog


def _only_lints(root: Node) -> bool:
    """Whether the file of a repository that has no cells was read: its keys are all of the lint."""
    keys = {key.value for key, _ in root.entries()} if isinstance(root, Mapping) else set()
    return keys <= _FOR_LINT and not keys.isdisjoint({"confidential", "lint"})


def _by_place(problem: Problem) -> Place:
    return problem.place or Place(path="")


@dataclass(frozen=True, kw_only=True)
class _Defaults:
    """What the nearest enclosing level says: case, folder of cases, suite, catalog."""

    timeout: float
    expected_cost: float | None
    groups: tuple[str, ...] = ()
    suite: str = ""


class _Shape:
    """Builds a catalog out of nodes; what is wrong is left out of it and reported."""

    def __init__(self, path: str) -> None:
        self.reader = Reader(path)
        self.repetitions: list[Repetition] = []
        self.groups: list[Written[str]] = []
        self.timeouts: list[Written[float]] = []
        self.costs: list[Written[float]] = []

    def draft(self, root: Node) -> Draft:
        return Draft(
            catalog=self.catalog(root),
            repetitions=tuple(self.repetitions),
            groups=tuple(self.groups),
            timeouts=tuple(self.timeouts),
            costs=tuple(self.costs),
        )

    def catalog(self, root: Node) -> Catalog:
        reader = self.reader
        top = reader.section(root, "", _KEYS, required=() if _only_lints(root) else _FOR_CELLS)
        reader.integer(top.get("version"), "/version", least=1, most=1)
        defaults = self._defaults(top, _Defaults(timeout=DEFAULT_TIMEOUT, expected_cost=None))
        grace = reader.duration(top.get("grace"), "/grace")
        retries = reader.integer(top.get("retries"), "/retries", least=0, most=1)
        selected_id = self._selected_id(_present(top.get("selected-id")))
        return Catalog(
            path=reader.path,
            harness=self._harness(top.get("harness")),
            selected_id=selected_id,
            confidential=self._confidential(_present(top.get("confidential")), selected_id.variable),
            lint=read_lint_section(reader, _present(top.get("lint"))),
            credentials=self._credentials(_present(top.get("credentials"))),
            profiles=self._profiles(top.get("profiles")),
            environments=self._environments(top.get("environments")),
            suites=self._suites(top.get("suites"), defaults),
            groups=self._groups(_present(top.get("groups"))),
            exclusions=self._exclusions(_present(top.get("exclusions"))),
            grace=DEFAULT_GRACE if grace is None else grace,
            retries=DEFAULT_RETRIES if retries is None else retries,
            plain_ids=reader.boolean(top.get("plain-ids"), "/plain-ids", default=False),
            places=reader.places,
            max_parallel=reader.integer(top.get("max-parallel"), "/max-parallel", least=1, most=256),
            artifacts=self._artifacts(_present(top.get("artifacts"))),
            network=self._network(_present(top.get("sandbox"))),
        )

    def _harness(self, node: Node | None) -> Harness:
        if node is None:
            return Harness(command=())
        reader = self.reader
        section = reader.section(
            node, "/harness", ("command", "directory", "env", "pass-env", "hide"), required=("command",)
        )
        return Harness(
            command=reader.words(
                section.get("command"), "/harness/command", empty="write the program and its arguments, one an item"
            ),
            directory=reader.text(section.get("directory"), "/harness/directory") or ".",
            environment=self._variables(section),
            pass_environment=reader.names(section.get("pass-env"), "/harness/pass-env", VARIABLE) or (),
            hide=reader.words(section.get("hide"), "/harness/hide"),
        )

    def _artifacts(self, node: Node | None) -> Artifacts:
        if node is None:
            return Artifacts()
        reader = self.reader
        section = reader.section(node, "/artifacts", ("files", "trusted-launch-root"), required=("files",))
        files = []
        for pointer, item in reader.items(section.get("files"), "/artifacts/files", "name an executable"):
            entry = reader.section(item, pointer, ("path", "sha256"), required=("path", "sha256"))
            path = reader.name(entry.get("path"), f"{pointer}/path", SOME_PATH)
            sha256 = reader.name(entry.get("sha256"), f"{pointer}/sha256", SHA256)
            files.append(Artifact(path=path or "", sha256=sha256 or ""))
        root = reader.name(section.get("trusted-launch-root"), "/artifacts/trusted-launch-root", ABSOLUTE_PATH)
        return Artifacts(files=tuple(files), trusted_launch_root=root or "")

    def _network(self, node: Node | None) -> Network:
        if node is None:
            return Network()
        reader = self.reader
        chosen = reader.section(node, "/sandbox", ("network",)).get("network")
        pointer = "/sandbox/network"
        if isinstance(chosen, Sequence):
            return Network(reach="hosts", hosts=reader.words(chosen, pointer, empty="name a host, or write none"))
        reach = reader.choice(chosen, pointer, ("open", "loopback", "none"), default="open")
        return Network(reach=cast("Reach", reach))

    def _variables(self, section: Section) -> dict[str, str]:
        node = _present(section.get("env"))
        if node is None:
            return {}
        pointer = f"{section.pointer}/env"
        read = {
            name: self.reader.word(value, f"{pointer}/{name}")
            for name, value in self.reader.named(node, pointer, VARIABLE).items()
        }
        return {name: value for name, value in read.items() if value is not None}

    def _selected_id(self, node: Node | None) -> SelectedId:
        if node is None:
            return SelectedId()
        reader = self.reader
        section = reader.section(node, "/selected-id", ("variable", "detection", "argv-fallback", "sources"))
        detection = reader.choice(
            section.get("detection"), "/selected-id/detection", ("env", "argv", "auto"), default="env"
        )
        return SelectedId(
            variable=reader.name(section.get("variable"), "/selected-id/variable", VARIABLE)
            or DEFAULT_SELECTED_ID_VARIABLE,
            detection=cast('Literal["env", "argv", "auto"]', detection),
            argv_fallback=reader.boolean(section.get("argv-fallback"), "/selected-id/argv-fallback", default=False),
            sources=reader.words(section.get("sources"), "/selected-id/sources"),
        )

    def _confidential(self, node: Node | None, variable: str) -> Confidential:
        """The variable that carries the id is always confidential, whatever is listed."""
        default = Confidential()
        inputs = matrix = environment = None
        if node is not None:
            reader = self.reader
            section = reader.section(node, "/confidential", ("inputs", "matrix", "env"))
            inputs = reader.names(section.get("inputs"), "/confidential/inputs", INPUT)
            matrix = reader.names(section.get("matrix"), "/confidential/matrix", INPUT)
            environment = reader.names(section.get("env"), "/confidential/env", VARIABLE)
        return Confidential(
            inputs=default.inputs if inputs is None else inputs,
            matrix=default.matrix if matrix is None else matrix,
            environment=tuple(dict.fromkeys([variable, *(environment or ())])),
        )

    def _credentials(self, node: Node | None) -> dict[str, Credential]:
        found: dict[str, Credential] = {}
        if node is None:
            return found
        for name, value in self.reader.named(node, "/credentials", CREDENTIAL).items():
            pointer = f"/credentials/{name}"
            description = None
            if isinstance(value, Scalar) and value.data is not None:
                self.reader.report(
                    value,
                    f"credential {name} has a value",
                    why="the value of a credential never stands in a catalog, only its name does",
                    fix=f"remove it, keep it as the secret {name}; a text about it goes into `description:`",
                )
            elif (body := _present(value)) is not None:
                section = self.reader.section(body, pointer, ("description",))
                description = self.reader.text(section.get("description"), f"{pointer}/description")
            found[name] = Credential(name=name, description=description or "")
        return found

    def _profiles(self, node: Node | None) -> dict[str, Profile]:
        found: dict[str, Profile] = {}
        for name, section in self._named(node, "profiles", ("credential", "env")).items():
            found[name] = Profile(
                name=name,
                credential=self._credential(section),
                environment={} if section is None else self._variables(section),
            )
        return found

    def _environments(self, node: Node | None) -> dict[str, Environment]:
        found: dict[str, Environment] = {}
        for name, section in self._named(node, "environments", ("kind", "credential", "env")).items():
            kind = "local"
            if section is not None:
                pointer = f"{section.pointer}/kind"
                kind = self.reader.choice(section.get("kind"), pointer, ("local", "external-sandbox"), default="local")
            found[name] = Environment(
                name=name,
                kind=cast('Literal["local", "external-sandbox"]', kind),
                credential=self._credential(section),
                variables={} if section is None else self._variables(section),
            )
        return found

    def _named(self, node: Node | None, key: str, keys: tuple[str, ...]) -> dict[str, Section | None]:
        """The sections of a mapping from names; one that is left empty is None."""
        if node is None:
            return {}
        found: dict[str, Section | None] = {}
        for name, value in self.reader.named(node, f"/{key}", SEGMENT, empty="declare at least one").items():
            body = _present(value)
            found[name] = None if body is None else self.reader.section(body, f"/{key}/{name}", keys)
        return found

    def _credential(self, section: Section | None) -> str | None:
        if section is None:
            return None
        return self.reader.name(section.get("credential"), f"{section.pointer}/credential", CREDENTIAL)

    def _groups(self, node: Node | None) -> dict[str, str]:
        if node is None:
            return {}
        named = self.reader.named(node, "/groups", SEGMENT)
        return {name: self.reader.text(_present(value), f"/groups/{name}") or "" for name, value in named.items()}

    def _exclusions(self, node: Node | None) -> tuple[Exclusion, ...]:
        if node is None:
            return ()
        reader = self.reader
        found = []
        for pointer, item in reader.items(node, "/exclusions"):
            section = reader.section(item, pointer, ("suite", "profile", "environment", "case", "reason"))
            names = {
                key: reader.name(section.get(key), f"{pointer}/{key}", CASE if key == "case" else SEGMENT)
                for key in ("suite", "profile", "environment", "case")
            }
            found.append(Exclusion(**names, reason=reader.text(section.get("reason"), f"{pointer}/reason") or ""))
        return tuple(found)

    def _suites(self, node: Node | None, defaults: _Defaults) -> dict[str, Suite]:
        if node is None:
            return {}
        named = self.reader.named(node, "/suites", SEGMENT, empty="declare at least one suite")
        return {name: self._suite(name, body, defaults) for name, body in named.items()}

    def _suite(self, name: str, node: Node, defaults: _Defaults) -> Suite:
        reader, pointer = self.reader, f"/suites/{name}"
        keys = ("profiles", "environments", "cases", "groups", "manual-only", "billable", "timeout", "expected-cost")
        section = reader.section(node, pointer, keys, required=("profiles", "environments", "cases"))
        own = self._defaults(section, replace(defaults, suite=name))
        cases: dict[str, Case] = {}
        if (body := section.get("cases")) is not None:
            self._cases(body, f"{pointer}/cases", "", replace(own, groups=()), cases)
        return Suite(
            name=name,
            profiles=reader.names(section.get("profiles"), f"{pointer}/profiles", SEGMENT, empty="name a profile")
            or (),
            environments=reader.names(
                section.get("environments"), f"{pointer}/environments", SEGMENT, empty="name an environment"
            )
            or (),
            cases=cases,
            manual_only=reader.boolean(section.get("manual-only"), f"{pointer}/manual-only", default=False),
            billable=reader.boolean(section.get("billable"), f"{pointer}/billable", default=True),
            groups=own.groups,
        )

    def _defaults(self, section: Section, outer: _Defaults) -> _Defaults:
        """What *section* says itself, and else what encloses it; groups add up."""
        reader, pointer, suite = self.reader, section.pointer, outer.suite
        timeout = reader.duration(section.get("timeout"), f"{pointer}/timeout")
        if timeout is not None:
            self.timeouts.append(Written(value=timeout, suite=suite, place=reader.places[f"{pointer}/timeout"]))
        cost = reader.number(section.get("expected-cost"), f"{pointer}/expected-cost", "dollars")
        if cost is not None:
            self.costs.append(Written(value=cost, suite=suite, place=reader.places[f"{pointer}/expected-cost"]))
        # At the top of a catalog `groups` declares them.
        groups = reader.names(section.get("groups"), f"{pointer}/groups", SEGMENT) if suite else None
        for group in groups or ():
            self.groups.append(Written(value=group, suite=suite, place=reader.places[f"{pointer}/groups/{group}"]))
        return _Defaults(
            timeout=outer.timeout if timeout is None else timeout,
            expected_cost=outer.expected_cost if cost is None else cost,
            groups=tuple(dict.fromkeys([*outer.groups, *(groups or ())])),
            suite=suite,
        )

    def _cases(self, node: Node, pointer: str, prefix: str, defaults: _Defaults, found: dict[str, Case]) -> None:
        """Reads cases, from a mapping or a plain list, into *found*; a case with ``cases`` is a folder of cases."""
        reader, suite = self.reader, defaults.suite
        if isinstance(node, Sequence):
            names = reader.names(node, pointer, CASE, empty="add a case") or ()
            bodies: collections.abc.Mapping[str, Node | None] = dict.fromkeys(names)
        else:
            bodies = reader.named(node, pointer, CASE, empty="add a case")
        placed = [(name, value, reader.places[f"{pointer}/{name}"]) for name, value in bodies.items()]
        for name, value, place in placed:
            full = f"{prefix}{name}"
            body = _present(value)
            own = defaults
            if body is not None:
                keys = ("timeout", "expected-cost", "groups", "cases")
                section = reader.section(body, f"{pointer}/{name}", keys)
                own = self._defaults(section, defaults)
                if (inner := section.get("cases")) is not None:
                    self._cases(inner, f"{pointer}/{name}/cases", f"{full}.", own, found)
                    continue
            canonical = f"/suites/{suite}/cases/{full}"
            if full in found:
                self.repetitions.append(Repetition(suite=suite, case=full, place=place, first=reader.places[canonical]))
                continue
            reader.places[canonical] = place
            found[full] = Case(name=full, timeout=own.timeout, expected_cost=own.expected_cost, groups=own.groups)


def _present(node: Node | None) -> Node | None:
    """The node, or None where nothing was written after the colon."""
    return None if isinstance(node, Scalar) and node.data is None else node
