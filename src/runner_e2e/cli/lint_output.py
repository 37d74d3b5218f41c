"""Where the report of the lint goes, and how it is written."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.cli.lint_remote import Target
    from runner_e2e.lint.linter import Report

__all__ = ["output_options", "wants_colour", "write_report"]

_FORMATS = ("text", "json", "sarif", "github", "markdown")

Command = TypeVar("Command", bound="Callable[..., object]")


def output_options(command: Command) -> Command:
    """Gives a command the options ``--format`` (as *form*) and ``--output`` (a path or None)."""
    form = click.option(
        "--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True,
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
    from runner_e2e.lint.render import View, render
    from runner_e2e.lint.render.sources import inert
    from runner_e2e.lint.render.text import summary

    colour = output is None and form == "text" and wants_colour(os.environ, terminal=sys.stdout.isatty())
    blob = _blob_address() if form == "markdown" and not target.label else ""
    text = render(report, form, View(folder=target.current, label=target.label, colour=colour, blob=blob))
    if output is None:
        click.echo(inert(text) if form == "markdown" else text, nl=False, color=colour)
        return
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            f"cannot write {output}",
            why=error.strerror or str(error),
            fix="name a file in a folder that you may write to",
        ) from error
    click.echo(f"{summary(report)}; the report is in {output}")


def _blob_address() -> str:
    from runner_e2e import gha  # the other formats have no links

    return gha.blob_address()


def wants_colour(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to write colours: https://no-color.org first, then ``FORCE_COLOR``, then whether a terminal reads."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return terminal and environ.get("TERM") != "dumb"
