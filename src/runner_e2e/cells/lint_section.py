"""Reads the section ``lint`` of a catalog: its shape. Which rules there are, the lint knows itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from runner_e2e.cells.formats import ACTION, CREDENTIAL, GLOB, RULE
from runner_e2e.cells.model import LintConfiguration, RuleConfiguration, RuleLevel, RuleProfile
from runner_e2e.yaml_positions import Mapping, plain

if TYPE_CHECKING:
    from runner_e2e.cells.reading import Reader
    from runner_e2e.yaml_positions import Node, Plain

__all__ = ["read_lint_section"]

_KEYS = ("profile", "rules", "ignore", "provider-secrets", "paid-workflows", "actions")
_LEVELS = ("off", "note", "warning", "error")
_PROFILES = ("confidential", "paid", "all")


def read_lint_section(reader: Reader, node: Node | None) -> LintConfiguration:
    """The section at *node* (None: absent); what is wrong is reported to *reader* and left out."""
    if node is None:
        return LintConfiguration()
    section = reader.section(node, "/lint", _KEYS)
    profile = reader.choice(section.get("profile"), "/lint/profile", _PROFILES, default="")
    return LintConfiguration(
        profile=cast("RuleProfile", profile) if profile else None,
        rules=_rules(reader, section.get("rules")),
        ignore=reader.names(section.get("ignore"), "/lint/ignore", GLOB) or (),
        provider_secrets=reader.names(section.get("provider-secrets"), "/lint/provider-secrets", CREDENTIAL),
        paid_workflows=reader.names(section.get("paid-workflows"), "/lint/paid-workflows", GLOB) or (),
        actions=_actions(reader, section.get("actions")),
    )


def _rules(reader: Reader, node: Node | None) -> dict[str, RuleConfiguration]:
    """A level a rule, or a mapping with it and with the files that the rule leaves alone."""
    if node is None:
        return {}
    found = {}
    for name, value in reader.named(node, "/lint/rules", RULE).items():
        pointer = f"/lint/rules/{name}"
        if isinstance(value, Mapping):
            section = reader.section(value, pointer, ("level", "ignore"))
            level = reader.choice(section.get("level"), f"{pointer}/level", _LEVELS, default="")
            ignore = reader.names(section.get("ignore"), f"{pointer}/ignore", GLOB) or ()
        else:
            level, ignore = reader.choice(value, pointer, _LEVELS, default=""), ()
        found[name] = RuleConfiguration(level=cast("RuleLevel", level) if level else None, ignore=ignore)
    return found


def _actions(reader: Reader, node: Node | None) -> dict[str, dict[str, Plain]]:
    """A model an action: a mapping, whose keys the lint knows itself."""
    if node is None:
        return {}
    found = {}
    for name, value in reader.named(node, "/lint/actions", ACTION).items():
        model = plain(value)
        if isinstance(model, dict):
            found[name] = model
        else:
            reader.report(value, f"the model of the action {name} is no mapping", fix="see docs/lint-actions.md")
    return found
