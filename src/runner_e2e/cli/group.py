"""The top-level group, its lazily loaded commands, and the one place where errors become text and exit codes."""

from __future__ import annotations

import importlib
import signal
import sys
from typing import TYPE_CHECKING

import click

from runner_e2e import __version__
from runner_e2e.cli.edge import guarded
from runner_e2e.errors import LaunchError, RefusedError, RunnerE2EError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMANDS", "LINUX_ONLY", "LazyGroup", "run"]

# Verb -> (module, attribute, one line of help). The line stands here so that `--help` loads no verb.
COMMANDS: Mapping[str, tuple[str, str, str]] = {
    "run": ("runner_e2e.cli.run", "run", "Run one cell, or selected cells on this machine."),
    "cells": ("runner_e2e.cli.cells", "cells", "Look at the cells of a catalog: list, matrix, explain."),
    "sandbox": ("runner_e2e.cli.sandbox", "sandbox", "Run a command with paths hidden from it."),
    "artifact": ("runner_e2e.cli.artifact", "artifact", "Launch executables whose content is known."),
    "codex": ("runner_e2e.cli.codex", "codex", "Start Codex so that planning can read and not write."),
    "grade": ("runner_e2e.cli.grade", "grade", "Turn what an agent did into a verdict with evidence."),
    "lint": ("runner_e2e.cli.lint", "lint", "Follow confidential values to every command line."),
    "gate": ("runner_e2e.cli.gate", "gate", "Decide whether a run may pay."),
    "dispatch": ("runner_e2e.cli.dispatch", "dispatch", "Pay for cells on GitHub Actions, each once."),
    "doctor": ("runner_e2e.cli.doctor", "doctor", "Check that a repository is ready to pay for cells."),
    "audit": ("runner_e2e.cli.audit", "audit", "Prove from the kernel where a confidential value went."),
}

# Their walls and records are the kernel's. The class gives the status; that of a wrapper is none of its program's.
LINUX_ONLY: Mapping[str, type[RunnerE2EError]] = {"run": RefusedError, "sandbox": LaunchError, "audit": LaunchError}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that one verb does not pay for another."""

    def __init__(self, *args: object, lazy: Mapping[str, tuple[str, str, str]], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table, which is the order in which a newcomer meets them."""
        del ctx
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports and returns one command, or None for an unknown name."""
        del ctx
        if cmd_name not in self.lazy:
            return None
        if cmd_name in LINUX_ONLY and sys.platform != "linux":
            raise LINUX_ONLY[cmd_name](
                f"runner-e2e {cmd_name} works on Linux alone", why=f"this is {sys.platform}", fix="run it on Linux"
            )
        module, attribute, _ = self.lazy[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.{attribute} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that *args* begin with. A name that is none is told with the nearest ones of the table."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=self.lazy, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands from the table alone."""
        del ctx
        if self.lazy:
            with formatter.section("Commands"):
                formatter.write_dl([(name, entry[2]) for name, entry in self.lazy.items()])


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="runner-e2e", message="%(prog)s %(version)s")
def runner_e2e() -> None:
    """Run paid agent evaluations so that the agent cannot learn its case, pay for each cell once, and prove both."""


def run(arguments: list[str]) -> int:
    """Runs the group; prints what went wrong as fact, cause and fix; returns the exit code."""
    try:
        return guarded(lambda: _result(arguments))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        return 128 + signal.SIGINT


def _result(arguments: list[str]) -> object:
    """What the command returns. click's own ``main`` takes a reader who left for a status of 1: findings."""
    try:
        with runner_e2e.make_context("runner-e2e", list(arguments)) as context:
            return runner_e2e.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
