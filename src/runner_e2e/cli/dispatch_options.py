"""Options that the verbs have in common which run the client of a campaign."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.cli.dispatch_session import campaign_keys_in, ledger_option
from runner_e2e.cli.github_options import token_option
from runner_e2e.cli.selection_options import key_option

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["client_options", "json_option", "quiet_option", "yes_option"]

Result = TypeVar("Result")

yes_option = click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal.")
quiet_option = click.option("--quiet", is_flag=True, help="No progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print the campaign as JSON on standard output.")


def client_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command the options of a client; it receives ``settings`` for :func:`act`, and ``ledger_path``."""

    @functools.wraps(function)
    def with_settings(
        *args: Any, token_variable: str | None, key_variable: str, quiet: bool, as_json: bool, **given: Any
    ) -> Result:
        from runner_e2e.cli.dispatch_client import Settings

        settings = Settings(
            token_variable=token_variable, keys=campaign_keys_in(key_variable), quiet=quiet, as_json=as_json
        )
        return function(*args, settings=settings, **given)

    command: Callable[..., Result] = with_settings
    for option in (json_option, quiet_option, ledger_option, key_option, token_option):
        command = option(command)
    return command
