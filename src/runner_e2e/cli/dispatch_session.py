"""What the verbs of a campaign share: the ledger, the connection with its budget of calls, and the client."""

from __future__ import annotations

import functools
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.cli.github_options import api_url, connect, find_token
from runner_e2e.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from runner_e2e.dispatch.call_budget import CallBudget
    from runner_e2e.dispatch.client import Client
    from runner_e2e.dispatch.client_events import Event
    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState

__all__ = [
    "UNFINISHED",
    "Settings",
    "act",
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

# A longer pause is left to the watching loop, which tells of it.
_PATIENCE_SECONDS = 30.0


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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a client is run and what is shown of it. *poll* is a fixed pause between two looks, in seconds."""

    token_variable: str | None
    keys: Sequence[bytes]
    poll: float | None = None
    quiet: bool = False
    as_json: bool = False


def act(ledger: Ledger, state: CampaignState, settings: Settings, action: Callable[[Client], object]) -> int:
    """Lets a client do *action* while a person follows it; says how the campaign stands then, and returns the status.

    Raises :class:`~runner_e2e.errors.UsageError` without a token, and what the client raises.
    """
    from runner_e2e.cli.dispatch_outcome import conclude
    from runner_e2e.cli.dispatch_progress import Departure, Left, Snapshots, follow
    from runner_e2e.dispatch.call_budget import CallBudget
    from runner_e2e.dispatch.client_events import Event

    departure, snapshots = Departure(), Snapshots(ledger)
    left = 0
    with departure.watched(), follow(quiet=settings.quiet) as progress:

        def say(event: Event) -> None:
            progress.show(event, lambda pause: snapshots.take(state.id, budget=budget, pause=pause))
            departure.check()

        budget = CallBudget(
            ledger,
            token=find_token(settings.token_variable),
            url=api_url(),
            wait=departure.wait,
            say=lambda text: say(Event(at=time.time(), kind="waiting", text=text)),
            patience=_PATIENCE_SECONDS,
        )
        try:
            action(_client(ledger, state.repository, settings, budget, say=say, wait=departure.wait))
        except Left as leaving:
            left = leaving.number
    status = conclude(ledger, state.id, as_json=settings.as_json)
    return 128 + left if left else status


def _client(
    ledger: Ledger,
    repository: str,
    settings: Settings,
    budget: CallBudget,
    *,
    say: Callable[[Event], None],
    wait: Callable[[float], None],
) -> Client:
    from runner_e2e.dispatch.client import Client
    from runner_e2e.dispatch.client_events import Pace
    from runner_e2e.dispatch.conditional import ConditionalReader
    from runner_e2e.dispatch.shared_ledger import SharedLedger

    api = connect(repository, settings.token_variable, limits=budget.limits())
    return Client(
        ledger=ledger,
        shared=SharedLedger(api),
        api=api,
        reader=ConditionalReader(api, ledger),
        keys=settings.keys,
        now=time.time,
        wait=wait,
        say=say,
        pace=Pace(first=settings.poll, longest=settings.poll) if settings.poll else None,
    )


def ask(facts: str, question: str, *, refusal: str) -> None:
    """Asks a person. Raises :class:`~runner_e2e.errors.RefusedError` with *refusal* after a no, and
    :class:`~runner_e2e.errors.UsageError` where there is nobody to be asked.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"there is no terminal to ask on: {question}", why=facts, fix="add --yes")
    click.echo(facts, err=True)
    if not click.confirm(question, err=True):
        raise RefusedError(refusal, why="the answer was no")


def campaign_keys_in(variable: str) -> tuple[bytes, ...]:
    """The campaign keys of the environment, the newest first; empty where there are none."""
    from runner_e2e.cells.handles import campaign_keys

    return campaign_keys(os.environ, variable=variable)


def run_address(repository: str, run: int | None) -> str:
    """The page of a run, empty where it has none that can be opened."""
    root = api_url()
    if run is None or not root.startswith("https://"):
        return ""
    site = "https://github.com" if root == "https://api.github.com" else root.removesuffix("/api/v3")
    return f"{site}/{repository}/actions/runs/{run}"


def outcome_status(ledger: Ledger, campaign: CampaignState) -> int:
    """0 where every cell passed, 1 where the campaign is over and one did not, :data:`UNFINISHED` before that."""
    if campaign.totals.number("settled", "cancelled") < campaign.totals.shards:
        return UNFINISHED
    return int(any(cell.verdict != "passed" for cell in ledger.cells(campaign.id)))
