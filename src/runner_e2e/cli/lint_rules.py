"""Which rules the lint shows: options, the list of them, and what each is about."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.errors import UsageError
from runner_e2e.lint.selection import DEFAULT_PROFILE, FOREIGN, PROFILES, Selection

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["explanation", "print_rules", "rule_options"]

Result = TypeVar("Result")


def rule_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--profile``, ``--select`` and ``--ignore``; it receives one ``selection``."""

    @functools.wraps(function)
    def with_selection(*arguments: Any, **given: Any) -> Result:
        selection = Selection(
            profile=given.pop("profile"),
            select=_rules("--select", given.pop("select")),
            ignore=_rules("--ignore", given.pop("ignore")),
        )
        if selection.select and all(selection.ignores(rule) for rule in selection.select):
            raise UsageError("`--ignore` takes away all that `--select` names", fix="leave one of them out")
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


def _rules(option: str, given: tuple[str, ...]) -> frozenset[str]:
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if given and not names:
        raise UsageError(f"`{option}` names no rule", fix="name one, or leave the option out")
    for name in names:
        _check(name)
    return frozenset(names)


def _check(name: str) -> None:
    """Raises :class:`~runner_e2e.errors.UsageError` for a name that is no rule."""
    from runner_e2e.cells.wording import quote
    from runner_e2e.lint.selection import unknown_rule

    remedy = unknown_rule(name)
    if remedy is not None:
        raise UsageError(f"there is no rule {quote(name)}", why="`--list-rules` shows those there are", fix=remedy)


def print_rules() -> None:
    """Prints the profiles, and below each what its rules say, folded to the width of the terminal."""
    import shutil
    import textwrap

    from runner_e2e.lint.rules import RULES

    click.echo("Profiles, each with the rules of those before it:\n")
    for name, text in PROFILES.items():
        click.echo(f"  {name:<13} {text}{' (the default)' if name == DEFAULT_PROFILE else ''}")
    width = max(len(rule.id) for rule in RULES)
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for name in PROFILES:
        rows = [
            (f"{rule.id:<{width}}  {rule.level:<7}  {'yes' if rule.repair is not None else '':<3}  ", rule.summary)
            for rule in RULES
            if rule.profile == name
        ]
        if not rows:
            continue
        click.echo("\n" + click.style(f"{name.upper():<{width}}  LEVEL    FIX  WHAT IT SAYS", bold=True))
        for head, summary in rows:
            lines = textwrap.wrap(summary, max(room - len(head), 20))
            click.echo(head + f"\n{' ' * len(head)}".join(lines))


def explanation(name: str) -> str:
    """What the rule *name* is about."""
    from runner_e2e.lint.render.descriptions import describe
    from runner_e2e.lint.rules import RULES

    _check(name)
    if name.partition("/")[0] == FOREIGN:
        about = describe(name)
        return f"{about.id}: {about.summary}\n\n{about.explanation}\n\nIts checks: {about.page}"
    found = next(rule for rule in RULES if rule.id == name)
    return f"{found.id}: {found.summary}\n\n{found.explanation}"
