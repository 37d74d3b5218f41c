"""Whether actionlint's findings are in the report too."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.checkers import Checker

__all__ = ["actionlint_options"]

Result = TypeVar("Result")


def actionlint_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--actionlint``, ``--no-actionlint`` and ``--shellcheck``; it receives one ``foreign``.

    That is a function which gives the checker to hand to the linter, or None; it raises
    :class:`~runner_e2e.errors.UsageError` for options that exclude each other and for a program that is not there,
    which where it is *needed* is one that nobody names, too.
    """

    @functools.wraps(function)
    def with_actionlint(*arguments: Any, **given: Any) -> Result:
        chosen = functools.partial(
            _chosen, given.pop("actionlint"), without=given.pop("no_actionlint"), shellcheck=given.pop("shellcheck")
        )
        return function(*arguments, foreign=chosen, **given)

    decorated: Callable[..., Result] = click.option(
        "--shellcheck", is_flag=True, help="Let actionlint give every script to shellcheck."
    )(with_actionlint)
    decorated = click.option("--no-actionlint", is_flag=True, help="Do not start actionlint.")(decorated)
    return click.option(
        "--actionlint",
        metavar="PROGRAM",
        type=click.Path(path_type=Path),
        help="The actionlint whose findings are in the report too. Default: the one on PATH, if any.",
    )(decorated)


def _chosen(program: Path | None, *, without: bool, shellcheck: bool, needed: bool) -> Checker | None:
    if without and needed:
        raise UsageError("`--no-actionlint` leaves nothing of what `--select` names", fix="leave one of them out")
    if without:
        if program is not None or shellcheck:
            other = "--actionlint" if program is not None else "--shellcheck"
            raise UsageError(f"`--no-actionlint` and `{other}` exclude each other", fix="leave one of them out")
        return None
    from runner_e2e.lint.actionlint import Actionlint

    return Actionlint.chosen(program, current=Path.cwd(), shellcheck=shellcheck, needed=needed)
