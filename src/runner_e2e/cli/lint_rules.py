"""Which rules the lint shows: options, the list of them, and what each is about."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.cli.table import Column, print_table
from runner_e2e.errors import UsageError
from runner_e2e.lint.selection import FOREIGN, PROFILES, Selection

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["explanation", "print_rules", "rule_options"]

Result = TypeVar("Result")


def rule_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--profile``, ``--select`` and ``--ignore``; it receives one ``selection``."""

    @functools.wraps(function)
    def with_selection(*arguments: Any, **given: Any) -> Result:
        selection = Selection(
            profile=given.pop("profile"), select=_rules(given.pop("select")), ignore=_rules(given.pop("ignore"))
        )
        return function(*arguments, selection=selection, **given)

    decorated: Callable[..., Result] = click.option(
        "--ignore", multiple=True, metavar="RULE", help="All but this rule. Repeatable, or with commas."
    )(with_selection)
    decorated = click.option(
        "--select",
        multiple=True,
        metavar="RULE",
        help="Only this rule, whatever the profile. Repeatable, or with commas.",
    )(decorated)
    return click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        help="Which rules; `--list-rules` shows them. Default: what the catalog says, else paid.",
    )(decorated)


def _rules(given: tuple[str, ...]) -> frozenset[str]:
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if not names:
        return frozenset()
    from runner_e2e.lint.selection import unknown_rule

    for name in names:
        remedy = unknown_rule(name)
        if remedy is not None:
            raise UsageError(f"there is no rule `{name}`", fix=f"{remedy} `--list-rules` shows all")
    return frozenset(names)


def print_rules() -> None:
    """Prints profiles and rules."""
    from runner_e2e.lint.rules import RULES

    click.echo("Profiles, each with the rules of those before it:\n")
    for name, text in PROFILES.items():
        click.echo(f"  {name:<13} {text}")
    click.echo()
    columns = [Column(title="rule", whole=True), Column(title="profile"), Column(title="level"), Column(title="fix")]
    rows = [
        (rule.id, rule.profile, rule.level, "yes" if rule.repair is not None else "", rule.summary) for rule in RULES
    ]
    print_table([*columns, Column(title="what it says")], rows)


def explanation(name: str) -> str:
    """What the rule *name* is about."""
    from runner_e2e.lint.render.descriptions import describe
    from runner_e2e.lint.rules import RULES

    if name.startswith(f"{FOREIGN}/"):
        about = describe(name)
        return f"{about.id}: {about.summary}\n\n{about.explanation}\n\nIts checks: {about.page}"
    found = next((rule for rule in RULES if rule.id == name), None)
    if found is None:
        raise UsageError(f"there is no rule `{name}`", fix=f"name one of: {', '.join(rule.id for rule in RULES)}")
    return f"{found.id}: {found.summary}\n\n{found.explanation}"
