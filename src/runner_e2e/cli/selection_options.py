"""Options that several verbs share: which catalog, which cells, and which key names them."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.cells.handles import DEFAULT_KEY_VARIABLE, parse_key
from runner_e2e.cells.model import DEFAULT_CATALOG_PATH
from runner_e2e.cells.selectors import Selection
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["campaign_key", "catalog_option", "key_option", "selection_options"]

Result = TypeVar("Result")

# Option, field of a selection, metavar, help: in the order of --help.
_SELECTORS = (
    ("--suite", "suites", "NAME", "Cells of this suite."),
    ("--group", "groups", "NAME", "Cells of this group."),
    ("--profile", "profiles", "NAME", "Cells with this profile."),
    ("--environment", "environments", "NAME", "Cells in this environment."),
    ("--case", "cases", "NAME", "Cells of this case, by its whole name."),
    ("--id", "ids", "ID", "This cell; excludes all other selectors."),
)


def selection_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command the repeatable selectors; it receives them as one ``selection``."""

    @functools.wraps(function)
    def with_selection(*args: Any, **given: Any) -> Result:
        names = {field: given.pop(field) for _, field, _, _ in _SELECTORS}
        return function(*args, selection=Selection(all=given.pop("every_cell"), **names), **given)

    flag = click.option("--all", "every_cell", is_flag=True, help="Every cell that is not manual-only.")
    decorated: Callable[..., Result] = flag(with_selection)
    for option, field, metavar, text in reversed(_SELECTORS):
        decorated = click.option(option, field, multiple=True, metavar=metavar, help=f"{text} Repeatable.")(decorated)
    return decorated


def catalog_option(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--catalog``; it receives ``catalog_path``."""
    return click.option(
        "--catalog",
        "catalog_path",
        type=click.Path(path_type=Path),
        default=Path(DEFAULT_CATALOG_PATH),
        show_default=True,
        metavar="PATH",
        help="The catalog to read.",
    )(function)


def key_option(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--key-env``; it receives the ``key_variable`` for :func:`campaign_key`."""
    return click.option(
        "--key-env",
        "key_variable",
        default=DEFAULT_KEY_VARIABLE,
        show_default=True,
        metavar="NAME",
        help="The variable that holds the campaign key (never the key itself).",
    )(function)


def campaign_key(variable: str) -> bytes | None:
    """Returns the key that the environment holds in *variable*, or None where it is missing or empty.

    Raises :class:`UsageError` when *variable* is no name of a variable, or holds no key.
    """
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
        # Perhaps the key itself: nothing of it is repeated.
        raise UsageError(
            "--key-env does not name a variable",
            why="a name has the characters A-Z, 0-9 and '_' only; a key on a command line can be read by everyone",
            fix=f"put the key into a variable and pass its name, like --key-env {DEFAULT_KEY_VARIABLE}",
        )
    text = os.environ.get(variable, "")
    return parse_key(text, variable=variable) if text.strip() else None
