"""What the verbs of a campaign share: the ledger, the connection with its budget of calls, and the client."""

from __future__ import annotations

import functools
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.cli.github_options import api_url
from runner_e2e.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState

__all__ = [
    "UNFINISHED",
    "ask",
    "campaign_argument",
    "campaign_keys_in",
    "ledger_option",
    "opened",
    "outcome_status",
    "run_address",
]

Result = TypeVar("Result")

UNFINISHED = 5
"""The status of a campaign that is not at its end: runs are under way, or a person must decide."""


def ledger_option(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--ledger``; it receives ``ledger_path``, the file of the ledger."""

    @functools.wraps(function)
    def with_path(*args: Any, ledger_path: Path | None, **given: Any) -> Result:
        from runner_e2e.dispatch.ledger import default_path

        return function(*args, ledger_path=ledger_path or default_path(os.environ), **given)

    return click.option(
        "--ledger",
        "ledger_path",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The ledger. Default: RUNNER_E2E_LEDGER, else runner-e2e/ledger.sqlite in the state directory.",
    )(with_path)


campaign_argument = click.argument("campaign", metavar="CAMPAIGN")
"""The id of a campaign, or enough of its beginning or end."""


@contextmanager
def opened(path: Path) -> Iterator[Ledger]:
    """The ledger in *path*. Raises :class:`~runner_e2e.dispatch.ledger_errors.LedgerError`."""
    from runner_e2e.dispatch.ledger import open_ledger

    with open_ledger(path, now=time.time) as ledger:
        yield ledger


def ask(facts: str, question: str, *, refusal: str) -> None:
    """Asks a person. Raises :class:`~runner_e2e.errors.RefusedError` with *refusal* after a no, and
    :class:`~runner_e2e.errors.UsageError` where there is nobody to be asked.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"there is no terminal to ask on: {question}", why=facts, fix="add --yes")
    click.echo(facts, err=True)
    if not click.confirm(question, err=True):
        raise RefusedError(refusal, why="the answer was no", fix="nothing needs to be done; answer y to go on")


def campaign_keys_in(variable: str) -> tuple[bytes, ...]:
    """The campaign keys of the environment, the newest first; empty where there are none."""
    from runner_e2e.cells.handles import campaign_keys

    return campaign_keys(os.environ, variable=variable)


def run_address(repository: str, run: int | None) -> str:
    """The page of a run, empty where it has none that can be opened."""
    from runner_e2e.remote.origin import site_of

    root = api_url()
    if run is None or not root.startswith("https://"):
        return ""
    return f"{site_of(root)}/{repository}/actions/runs/{run}"


def outcome_status(ledger: Ledger, campaign: CampaignState) -> int:
    """0 where every cell passed, 1 where the campaign is over and one did not, :data:`UNFINISHED` before that."""
    if campaign.totals.number("settled", "cancelled") < campaign.totals.shards:
        return UNFINISHED
    return int(any(cell.verdict != "passed" for cell in ledger.cells(campaign.id)))
