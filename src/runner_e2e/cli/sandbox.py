"""``runner-e2e sandbox``: run a command in the sandbox."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner_e2e.sandbox.arguments import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.sandbox.layouts import Layout

__all__ = ["sandbox"]


@click.group()
def sandbox() -> None:
    """Hide paths from a process tree, show its own beneath them, and prove that the walls hold."""


def launch_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options of a launch, from the table that the quick entry script reads too."""
    for option in reversed(OPTIONS):
        if option.value:
            shape = click.option(
                option.name, option.key, metavar=option.value, help=option.help, multiple=option.repeats
            )
        else:
            shape = click.option(option.name, option.key, is_flag=True, help=option.help)
        command = shape(command)
    return command


def read_yaml_layout(path: str) -> Layout:
    """Reads a layout that a user wrote as YAML; the process that holds the walls reads only JSON."""
    from runner_e2e.errors import ConfigurationError, Place
    from runner_e2e.sandbox.layouts import layout_of
    from runner_e2e.yaml_positions import compose_file, plain

    try:
        return layout_of(plain(compose_file(Path(path))), path=path)
    except OSError as error:
        raise ConfigurationError(
            "the layout cannot be read",
            why=error.strerror or str(error),
            fix="give --layout a readable file",
            place=Place(path=path),
        ) from error


class WrapperCommand(click.Command):
    """A command that runs another program: its own usage errors are 125, because 2 may be that program's status."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses as always; shows a usage error and ends with 125."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.show()
            ctx.exit(125)


@sandbox.command("exec", cls=WrapperCommand, context_settings={"allow_interspersed_args": False})
@launch_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def execute(command: tuple[str, ...], **options: str | bool | tuple[str, ...] | None) -> int:
    """Run COMMAND with everything hidden that the policy and the options name; pass its status on.

    Write the command after `--`. 125: the sandbox could not be set up or refuses the paths; 126: COMMAND cannot be
    executed; 127: there is no COMMAND; 128+n: it was ended by signal n.
    """
    from runner_e2e import gha
    from runner_e2e.errors import RunnerE2EError
    from runner_e2e.sandbox.arguments import request_of
    from runner_e2e.sandbox.command import execute as run
    from runner_e2e.sandbox.command import failure_status

    values: dict[str, tuple[str, ...]] = {}
    for key, value in options.items():
        if isinstance(value, tuple):
            values[key] = value
        elif isinstance(value, str):
            values[key] = (value,)
        elif value:
            values[key] = ("",)
    try:
        request = request_of(command, values)
        if request.layout.endswith((".yml", ".yaml")):
            request = request.replace(known_layout=read_yaml_layout(request.layout))
        also = [os.fspath(path) for path in gha.runner_files()]
        return run(request, also_hide=also, log=lambda line: click.echo(line, err=True))
    except RunnerE2EError as error:
        click.echo(f"runner-e2e: {error}", err=True)
        return failure_status(error.exit_code)
