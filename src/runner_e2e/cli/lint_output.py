"""Where the report of the lint goes, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from runner_e2e.cli.lint_run import FORMAT_DEFAULT, FORMATS, screen_text, written
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.cli.lint_remote import Target
    from runner_e2e.lint.linter import Report

__all__ = ["output_options", "write_report"]

Command = TypeVar("Command", bound="Callable[..., object]")


def output_options(command: Command) -> Command:
    """Gives a command the options ``--format`` (as *form*) and ``--output`` (a path or None)."""
    form = click.option(
        "--format", "form", type=click.Choice(FORMATS), default=FORMAT_DEFAULT, show_default=True,
        help="How to write the report: for a reader, for programs, for code scanning, as annotations of a job, or for "
        "the page of a run.",
    )  # fmt: skip
    output = click.option(
        "--output", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
        help="Write the report to a file, and only what it sums up to on the screen.",
    )  # fmt: skip
    return form(output(command))


def write_report(report: Report, form: str, output: Path | None, target: Target) -> None:
    """Writes *report* about *target* to the screen, or to *output* and its summary to the screen.

    Raises :class:`~runner_e2e.errors.UsageError` where the file cannot be written.
    """
    if output is None:
        text, colour = screen_text(report, form, target)
        click.echo(text, nl=False, color=colour)
        return
    from runner_e2e.lint.render.text import summary

    try:
        output.write_text(written(report, form, target), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            f"cannot write {output}",
            why=error.strerror or str(error),
            fix="name a file in a folder that you may write to",
        ) from error
    click.echo(f"{summary(report)}; the report is in {output}")
