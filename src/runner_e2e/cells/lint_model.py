"""The nouns of a catalog that the lint needs: a lint loads them, and nothing of the cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.yaml_positions import Plain

__all__ = [
    "DEFAULT_SELECTED_ID_VARIABLE",
    "Confidential",
    "LintConfiguration",
    "RuleConfiguration",
    "RuleLevel",
    "RuleProfile",
]

DEFAULT_SELECTED_ID_VARIABLE = "PAPERCLIP_RUNNER_E2E_SELECTED_ID"

RuleLevel = Literal["off", "note", "warning", "error"]
RuleProfile = Literal["confidential", "paid", "all"]


@dataclass(frozen=True, kw_only=True)
class Confidential:
    """Names whose values must reach no command line and no public surface."""

    inputs: tuple[str, ...] = ("selected-id", "selected_id")
    matrix: tuple[str, ...] = ()
    environment: tuple[str, ...] = (DEFAULT_SELECTED_ID_VARIABLE,)


@dataclass(frozen=True, kw_only=True)
class RuleConfiguration:
    """What a repository says about one rule: its level (None: the rule's own), and globs of files it leaves alone."""

    level: RuleLevel | None = None
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LintConfiguration:
    """How a repository wants to be linted.

    ``provider_secrets`` are names of secrets that money is spent with (None: the catalog's credentials);
    ``paid_workflows`` globs of the workflows that may use them (empty: any); ``ignore`` globs of files that are not
    linted; ``rules`` is by the id of a rule, ``actions`` has models of actions by their names. Globs are relative to
    the root of the repository.
    """

    provider_secrets: tuple[str, ...] | None = None
    paid_workflows: tuple[str, ...] = ()
    profile: RuleProfile | None = None
    ignore: tuple[str, ...] = ()
    rules: Mapping[str, RuleConfiguration] = field(default_factory=dict)
    actions: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
