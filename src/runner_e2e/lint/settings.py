"""What a repository says about its lint: the sections ``lint`` and ``confidential`` of its catalog, or the defaults."""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.cells.lint_model import Confidential
from runner_e2e.errors import ConfigurationError, Place, Problem
from runner_e2e.lint.files import exists_at, locate
from runner_e2e.lint.globs import Globs
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.rule_settings import RuleSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.cells.model import Catalog
    from runner_e2e.yaml_positions import Plain

__all__ = ["CATALOG", "Names", "Settings", "is_paid", "read_settings", "unknown_rules"]

CATALOG = ".github/runner-e2e.yml"
"""Where a repository keeps its catalog, whose ``lint`` and ``confidential`` sections the lint reads."""

# A workflow is paid when it says so in a comment, or when it uses this action.
_PAID = re.compile(r"^\s*#\s*runner-e2e:\s*paid\b|\buses:\s*[\"']?[\w.-]+/runner-e2e-action@", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names whose values are confidential, all compared without case.

    *inputs* of a dispatch or a call, *paid_inputs* in paid workflows only, keys of a *matrix*, *environment*
    variables.
    """

    inputs: frozenset[str] = frozenset(Confidential().inputs)
    paid_inputs: frozenset[str] = frozenset({"id"})
    matrix: frozenset[str] = frozenset(Confidential().matrix)
    environment: frozenset[str] = field(default=frozenset(Confidential().environment))

    def inputs_of(self, text: str) -> frozenset[str]:
        """Confidential inputs (lower case) of the workflow or action whose file holds *text*."""
        names = self.inputs | self.paid_inputs if is_paid(text) else self.inputs
        return frozenset(name.lower() for name in names)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one repository. Globs match paths relative to its root.

    ``provider_secrets`` are names in upper case: GitHub compares names of secrets without case. ``paid_workflows``
    may use them; where it is empty, any workflow may. ``actions`` has its own models of actions, by name.
    """

    names: Names = Names()
    provider_secrets: frozenset[str] = frozenset()
    paid_workflows: Globs = field(default_factory=Globs)
    rules: RuleSettings = field(default_factory=RuleSettings)
    actions: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    rule_places: Mapping[str, Place] = field(default_factory=dict)


def is_paid(text: str) -> bool:
    """Whether a workflow is marked paid: a comment ``# runner-e2e: paid``, or a step that uses this action."""
    return "runner-e2e" in text and _PAID.search(text) is not None


def read_settings(root: Path, *, shown: str = CATALOG) -> Settings:
    """The settings of the repository at *root*: those of its catalog, which messages call *shown*, else the defaults.

    Raises :class:`~runner_e2e.errors.ConfigurationError` when there is a catalog that is not valid.
    """
    found = locate(str(root.resolve()), CATALOG)
    if found is None:
        if exists_at(str(root), CATALOG):
            raise ConfigurationError(
                "the catalog is no file of this repository",
                why="it is a folder, or a symbolic link that leads out of the repository",
                fix="put the file itself there",
                place=Place(path=shown),
            )
        return Settings()
    path = Path(found)
    from runner_e2e.cells.catalog import parse_catalog
    from runner_e2e.yaml_positions import decode

    try:
        text = decode(path.read_bytes(), path=shown)
    except OSError as error:
        raise ConfigurationError(
            "the catalog cannot be read",
            why=error.strerror or str(error),
            fix="make it readable",
            place=Place(path=shown),
        ) from error
    return _settings(parse_catalog(text, path=shown, cells=False))


def _settings(catalog: Catalog) -> Settings:
    lint, confidential = catalog.lint, catalog.confidential
    secrets = catalog.credentials if lint.provider_secrets is None else lint.provider_secrets
    return Settings(
        names=Names(
            inputs=frozenset(confidential.inputs),
            matrix=frozenset(confidential.matrix),
            environment=frozenset(confidential.environment),
        ),
        provider_secrets=frozenset(name.upper() for name in secrets),
        paid_workflows=Globs(lint.paid_workflows),
        rules=RuleSettings(profile=lint.profile, ignore=Globs(lint.ignore), by_id=lint.rules),
        actions=_checked(lint.actions, catalog),
        rule_places={name: catalog.places[f"/lint/rules/{name}"] for name in lint.rules},
    )


def _checked(actions: Mapping[str, Mapping[str, Plain]], catalog: Catalog) -> Mapping[str, Mapping[str, Plain]]:
    """The models of actions; raises ConfigurationError with every mistake in them."""
    if not actions:
        return {}
    from runner_e2e.cells.wording import quote
    from runner_e2e.lint.action_models import check_entry

    problems = tuple(
        Problem(
            what=f"the model of the action {quote(name)} is wrong: {wrong}",
            fix="see docs/lint-actions.md",
            place=catalog.places[f"/lint/actions/{name}"],
        )
        for name, model in actions.items()
        for wrong in check_entry(model)
    )
    if problems:
        raise ConfigurationError.of(problems)
    return actions


def unknown_rules(settings: Settings, remedy_of: Callable[[str], str | None]) -> tuple[Problem, ...]:
    """What is wrong with a catalog that configures rules that do not exist; *remedy_of* is None for one that does."""
    from runner_e2e.cells.wording import quote

    return tuple(
        Problem(
            what=f"unknown rule {quote(name)}",
            why="`runner-e2e lint --list-rules` shows those there are",
            fix=remedy,
            place=settings.rule_places[name],
        )
        for name in settings.rules.by_id
        if (remedy := remedy_of(name)) is not None
    )
