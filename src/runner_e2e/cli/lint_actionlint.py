"""Whether actionlint's findings are in the report too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.checkers import Checker

__all__ = ["actionlint_options", "chosen_actionlint"]

Command = TypeVar("Command", bound="Callable[..., object]")


def actionlint_options(command: Command) -> Command:
    """Gives a command ``--actionlint`` (a path or None), ``--no-actionlint`` and ``--shellcheck`` (flags)."""
    program = click.option(
        "--actionlint", metavar="PROGRAM", type=click.Path(path_type=Path),
        help="The actionlint whose findings are to be in the report too; by default the one on PATH, if any.",
    )  # fmt: skip
    without = click.option("--no-actionlint", is_flag=True, help="Do not start actionlint.")
    shellcheck = click.option("--shellcheck", is_flag=True, help="Let actionlint give every script to shellcheck.")
    return program(without(shellcheck(command)))


def chosen_actionlint(program: Path | None, *, without: bool, shellcheck: bool) -> Checker | None:
    """What to hand to the linter for these options.

    Raises :class:`~runner_e2e.errors.UsageError` for options that exclude each other, and for a program that is not
    there.
    """
    if without:
        if program is not None or shellcheck:
            other = "--actionlint" if program is not None else "--shellcheck"
            raise UsageError(f"`--no-actionlint` and `{other}` exclude each other", fix="leave one of them out")
        return None
    from runner_e2e.lint.actionlint import Actionlint

    return Actionlint.chosen(program, current=Path.cwd(), shellcheck=shellcheck)
