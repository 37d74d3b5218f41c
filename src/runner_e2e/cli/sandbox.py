"""``runner-e2e sandbox``: run a command in the sandbox."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner_e2e.sandbox.arguments import OPTIONS
from runner_e2e.sandbox.layouts import read_layout
from runner_e2e.sandbox.policy import LAYERS, WALLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.sandbox.layouts import Layout
    from runner_e2e.sandbox.probe import ProbeResult

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


@sandbox.command(
    "exec",
    cls=WrapperCommand,
    context_settings={"allow_interspersed_args": False},
    short_help="Run a command that cannot see what is hidden from it.",
)
@launch_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def execute(command: tuple[str, ...], **options: str | bool | tuple[str, ...] | None) -> int:
    """Run COMMAND with everything hidden that the policy and the options name; pass its status on.

    Write the command after `--`. 124: a limit ended it; 125: the sandbox could not be set up or refuses the paths;
    126: COMMAND cannot be executed; 127: there is no COMMAND; 128+n: it was ended by signal n.
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


@sandbox.command(
    "serve",
    cls=WrapperCommand,
    context_settings={"allow_interspersed_args": False},
    short_help="Run a harness for which launches stand ready.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def serve(command: tuple[str, ...]) -> int:
    """Run COMMAND, a harness, beside a server that keeps the next launch ready.

    Below it `scripts/agent_sandbox.py` asks the server, and takes half the time. The server ends with the harness.
    Write the command after `--`. 125: the server does not start; 126, 127: COMMAND cannot be executed, or is missing.
    """
    import sys

    from runner_e2e.errors import RunnerE2EError, UsageError
    from runner_e2e.sandbox.command import failure_status
    from runner_e2e.sandbox.fork_server import become_harness

    try:
        if not command:
            raise UsageError("no command is given", fix="write it after --, for example: -- node harness.js")
        become_harness(command, python=sys.executable)
    except RunnerE2EError as error:
        click.echo(f"runner-e2e: {error}", err=True)
        return failure_status(error.exit_code)


@sandbox.command("probe", short_help="Try on this host whether the walls hold.")
@click.option(
    "--layout", default="paperclip", metavar="NAME", show_default=True, help="Layout to try: a name or a file."
)
@click.option("--wall", type=click.Choice(WALLS), default="landlock", show_default=True, help="The wall to try.")
@click.option("--keep-user", is_flag=True, help="As root: keep the user, without capabilities.")
@click.option(
    "--require", multiple=True, type=click.Choice(list(LAYERS)), metavar="LAYER", help="Fail without this layer."
)
@click.option(
    "--without", multiple=True, type=click.Choice(list(LAYERS)), metavar="LAYER", help="Try without this layer."
)
@click.option("--network", multiple=True, metavar="REACH", help="Try with this network: none, loopback or hosts.")
@click.option("--log", "log_path", type=click.Path(path_type=Path), help="Append the result to this server log.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
@click.option("--explain", is_flag=True, help="Say for each check what was tried and what the kernel answered.")
@click.option("--ci", is_flag=True, help="End with status 1 when a check failed.")
def probe(**options: Any) -> int:
    """Try, on this host, everything that an agent could try, outside and inside the sandbox.

    Outside every attempt must succeed, or it proves nothing; inside none may.
    """
    import json

    from runner_e2e.sandbox.arguments import policy_of, request_of
    from runner_e2e.sandbox.probe import append_to_log, run_probe

    values = {name: options[name] for name in ("require", "without", "network")} | {"wall": [options["wall"]]}
    if options["keep_user"]:
        values["keep_user"] = [""]
    policy = policy_of(request_of(["probe"], values), {})
    name = options["layout"]
    layout = read_yaml_layout(name) if name.endswith((".yml", ".yaml")) else read_layout(name)
    result = run_probe(layout, policy=policy)
    if options["log_path"]:
        append_to_log(result, options["log_path"])
    if options["as_json"]:
        click.echo(json.dumps(result.to_document(), indent=2))
    else:
        show_probe(result, explain=options["explain"])
    return 1 if options["ci"] and result.failures else 0


def show_probe(result: ProbeResult, *, explain: bool) -> None:
    """Prints a probe for people: a line a check when asked for, then what matters."""
    if explain:
        for check in result.checks:
            click.echo(f"{check.verdict}: {check.name}: {check.tries}")
            click.echo(f"    outside: {check.outside}; inside: {check.inside}")
    good = sum(check.verdict == "ok" for check in result.checks)
    click.echo(f"{good} of {len(result.checks)} checks hold (layout {result.layout}, {result.seconds:.1f} s)")
    skipped = [check.name for check in result.checks if check.verdict == "not-applicable"]
    if skipped:
        click.echo(f"not applicable here: {', '.join(skipped)}")
    if result.limits:
        click.echo(f"open on this host, because a layer is missing: {', '.join(result.limits)}")
    click.echo(f"failures: {', '.join(result.failures) or 'none'}")
