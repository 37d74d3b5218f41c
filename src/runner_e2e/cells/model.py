"""The nouns of a catalog: what can be run, and the cells that come of it.

A cell is one ``suite.profile.environment.case``. All durations are seconds, all money US dollars.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from runner_e2e.cells.lint_model import (
    DEFAULT_SELECTED_ID_VARIABLE,
    Confidential,
    LintConfiguration,
    RuleConfiguration,
    RuleLevel,
    RuleProfile,
)
from runner_e2e.sandbox.policy import OPEN_NETWORK, Network

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.errors import Place

__all__ = [
    "DEFAULT_CATALOG_PATH",
    "DEFAULT_SELECTED_ID_VARIABLE",
    "Artifact",
    "Artifacts",
    "Case",
    "Catalog",
    "Cell",
    "Confidential",
    "Credential",
    "Environment",
    "Exclusion",
    "Harness",
    "LintConfiguration",
    "Profile",
    "RuleConfiguration",
    "RuleLevel",
    "RuleProfile",
    "SelectedId",
    "Suite",
]

DEFAULT_CATALOG_PATH = ".github/runner-e2e.yml"


@dataclass(frozen=True, kw_only=True)
class SelectedId:
    """How the selected cell reaches the harness.

    ``detection``: ``env`` (the target reads the variable), ``argv`` (an old target that knows only ``--id``),
    or ``auto`` (look for the variable's name in ``sources``, globs below the target's root).
    ``argv_fallback`` must be true before an id may ever stand on a command line.
    """

    variable: str = DEFAULT_SELECTED_ID_VARIABLE
    detection: Literal["env", "argv", "auto"] = "env"
    argv_fallback: bool = False
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Credential:
    """A provider's secret by the name of the variable that holds it. The value never stands in a catalog."""

    name: str
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Harness:
    """The trusted program that runs one cell.

    ``command`` is an argv without the id; ``directory`` and ``hide`` are relative to the target's root;
    ``environment`` holds literal values, ``pass_environment`` names variables handed through.
    """

    command: tuple[str, ...]
    directory: str = "."
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_environment: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """An executable by its path (absolute, or relative to the target's root) and the SHA-256 it must have, in hex."""

    path: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    """Executables that are launched by their content. ``trusted_launch_root`` is empty where there is none."""

    files: tuple[Artifact, ...] = ()
    trusted_launch_root: str = ""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Which agent runs, and the credential it is paid with (None: it needs none)."""

    name: str
    credential: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where the agent runs. ``external-sandbox`` is a host that isolates the agent itself."""

    name: str
    kind: Literal["local", "external-sandbox"] = "local"
    credential: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One task. ``timeout`` and ``expected_cost`` are those in force after defaults were applied."""

    name: str
    timeout: float
    expected_cost: float | None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Cases that belong together, with the profiles and environments they run in."""

    name: str
    profiles: tuple[str, ...]
    environments: tuple[str, ...]
    cases: Mapping[str, Case]
    manual_only: bool = False
    billable: bool = True
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """Cells that must not run; a dimension that is None matches every name."""

    suite: str | None = None
    profile: str | None = None
    environment: str | None = None
    case: str | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell with everything a run of it needs.

    ``credentials`` are the names that its profile and its environment are paid with, in this order.
    ``expected_cost`` is None where the catalog states none (unknown, never zero) and 0 where nothing is billed.
    ``definition_hash`` changes when what runs changes (see :mod:`runner_e2e.cells.definition`).
    """

    id: str
    suite: str
    profile: str
    environment: str
    case: str
    groups: tuple[str, ...]
    credentials: tuple[str, ...]
    timeout: float
    expected_cost: float | None
    manual_only: bool
    billable: bool
    definition_hash: str


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """A whole catalog.

    ``path`` is the file it was read from; ``places`` maps JSON Pointers (``/suites/chat/cases/greeting``; a case
    by its whole name) to where they stand. A file that only configures the lint has no suite. ``max_parallel``
    limits the jobs of a matrix that run at once (None: GitHub decides). ``network`` is what agents reach at most.
    """

    path: str
    harness: Harness
    selected_id: SelectedId
    confidential: Confidential
    credentials: Mapping[str, Credential]
    profiles: Mapping[str, Profile]
    environments: Mapping[str, Environment]
    suites: Mapping[str, Suite]
    groups: Mapping[str, str]
    exclusions: tuple[Exclusion, ...]
    grace: float
    retries: int
    plain_ids: bool
    places: Mapping[str, Place]
    max_parallel: int | None = None
    artifacts: Artifacts = Artifacts()
    lint: LintConfiguration = field(default_factory=LintConfiguration)
    network: Network = OPEN_NETWORK
