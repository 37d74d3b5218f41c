"""``runner-e2e codex``: how Codex is started so that planning can read and not write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.codex.profile import Host

__all__ = ["codex"]


@click.group()
def codex() -> None:
    """Start Codex so that planning can read and not write."""


def host_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that describe the host; what they do not say, the environment does."""
    many = {"multiple": True, "metavar": "PATH"}
    for option in (
        click.option("--pass-env", "passed_variables", multiple=True, metavar="NAME", help="Let commands see NAME."),
        click.option("--deny", "denied", help="Deny PATH explicitly (custom policies).", **many),  # type: ignore[arg-type]
        click.option("--protect", "protected", help="Keep PATH read-only within a --write.", **many),  # type: ignore[arg-type]
        click.option("--write", "writable", help="Let Codex write in PATH.", **many),  # type: ignore[arg-type]
        click.option("--read", "readable", help="Let Codex read PATH.", **many),  # type: ignore[arg-type]
        click.option("--activity", metavar="PATH", help="Grant what the activity channel at PATH needs."),
        click.option("--package", metavar="PATH", help="The directory of Codex's own programs."),
        click.option("--codex-home", metavar="PATH", help="CODEX_HOME of the launch.  [default: from the environment]"),
        click.option("--network/--no-network", default=None, help="In an external sandbox: let the network through."),
        click.option("--external-sandbox/--local", default=None, help="The host isolates the agent itself."),
        click.option("--planning", is_flag=True, help="Use the profile that cannot write."),
    ):
        command = option(command)
    return command


@codex.command("args", short_help="Print the launch arguments.")
@host_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option("-0", "--null", "as_null", is_flag=True, help="End each argument with a NUL.")
def arguments(*, planning: bool, as_json: bool, as_null: bool, **settings: Any) -> None:
    """Print the arguments that go before `app-server`, one a line.

    Whether the host is an external sandbox, and whether it has a network, is taken from
    PAPERCLIP_RUNNER_EXTERNAL_SANDBOX and PAPERCLIP_RUNNER_NETWORK_ACCESS unless an option says so.
    """
    import json

    from runner_e2e.codex.profile import launch_arguments

    words = launch_arguments(_host(settings), planning=planning)
    if as_json:
        click.echo(json.dumps(words))
    else:
        end = "\0" if as_null else "\n"
        click.echo("".join(word + end for word in words), nl=False)


@codex.command("context", short_help="Print what a session records of its permissions.")
@host_options
def context(*, planning: bool, **settings: Any) -> None:
    """Print, as JSON, what a session records of its permissions."""
    import json

    from runner_e2e.codex.profile import session_context

    click.echo(json.dumps(session_context(_host(settings), planning=planning)))


@codex.command("request", short_help="Print the parameters of a request to the app-server.")
@click.argument("method", type=click.Choice(["thread/start", "turn/start"]))
@host_options
@click.option("--directory", metavar="DIR", help="thread/start: the workspace.  [default: here]")
@click.option("--thread", metavar="ID", help="turn/start: the thread.")
@click.option("--text", metavar="TEXT", help="turn/start: what the agent is told.")
@click.option("--model", metavar="NAME", help="turn/start: the model.")
def request(
    method: str,
    *,
    planning: bool,
    directory: str | None,
    thread: str | None,
    text: str | None,
    model: str | None,
    **settings: Any,
) -> None:
    """Print the parameters of a request to Codex's app-server, as JSON."""
    import json

    from runner_e2e.codex.requests import thread_start, turn_start
    from runner_e2e.errors import UsageError

    host = _host(settings)
    if method == "thread/start":
        parameters = thread_start(host, planning=planning, directory=str(Path(directory or ".").resolve()))
    elif thread is None or text is None or model is None:
        raise UsageError("turn/start needs --thread, --text and --model", fix="give all three")
    else:
        parameters = turn_start(host, planning=planning, thread=thread, text=text, model=model)
    click.echo(json.dumps(parameters))


@codex.command(
    "identity",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Print the identity of a launch.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def identity(arguments: tuple[str, ...]) -> None:
    """Print the identity of a launch with ARGUMENTS: the same for every set of profile rules.

    Write the arguments after `--`. A session may be resumed by a launch of the same identity.
    """
    from runner_e2e.codex.identity import launch_identity

    click.echo(launch_identity(arguments))


def _host(settings: dict[str, Any]) -> Host:
    from runner_e2e.codex.activity import activity_grants
    from runner_e2e.codex.profile import host_of

    activity = settings.pop("activity")
    if activity is not None:
        for name, paths in activity_grants(Path(activity)).items():
            settings[name] = (*settings[name], *paths)
    return host_of(os.environ, **settings)
