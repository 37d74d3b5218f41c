"""Runs a client for a verb: it is shown what happens, it can be left, and in the end it is said how things stand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.dispatch_outcome import conclude
from runner_e2e.cli.dispatch_progress import Departure, Left, Snapshots, follow
from runner_e2e.cli.github_options import api_url, connect, find_token
from runner_e2e.dispatch.call_budget import CallBudget
from runner_e2e.dispatch.client import Client
from runner_e2e.dispatch.client_events import Event, Pace
from runner_e2e.dispatch.conditional import ConditionalReader
from runner_e2e.dispatch.shard_advice import nothing_left
from runner_e2e.dispatch.shared_ledger import SharedLedger
from runner_e2e.errors import RunnerE2EError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState

__all__ = ["Settings", "Warnings", "act"]

# A longer pause is left to the watching loop, which tells of it.
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a client is run and what is shown of it. *poll* is a fixed pause between two looks, in seconds."""

    token_variable: str | None
    keys: Sequence[bytes]
    poll: float | None = None
    quiet: bool = False
    as_json: bool = False


class Warnings:
    """Hands events on to *show*. A warning waits for the end of its round: an error may end that, and say the same.

    What comes again in the next rounds is said once.
    """

    def __init__(self, show: Callable[[Event], None]) -> None:
        self._show = show
        self._held: list[Event] = []
        self._last = ""

    def hear(self, event: Event) -> None:
        """Shows *event*, or holds it."""
        if event.kind == "warning":
            self._held.append(event)
            return
        if event.kind != "round":
            self.release()
        self._show(event)

    def drop(self, text: str) -> None:
        """Forgets what an error says, and shows the rest."""
        self._held = [event for event in self._held if event.text not in text]
        self.release()

    def release(self) -> None:
        """Shows what is held."""
        for event in self._held:
            if event.text != self._last:
                self._show(event)
            self._last = event.text
        self._held.clear()


def act(
    ledger: Ledger, state: CampaignState, settings: Settings, action: Callable[[Client], object], *, verb: str = ""
) -> int:
    """Lets a client do *action* while a person follows it; says how the campaign stands then, and returns the status.

    *verb* is what the person has entered: where it finds nothing to do, that is said. Raises
    :class:`~runner_e2e.errors.UsageError` without a token, and what the client raises.
    """
    idle = nothing_left(verb, [shard.state for shard in ledger.shards(state.id)]) if verb else ""
    if idle and not settings.quiet:
        click.echo(f"{state.id}: {idle}", err=True)
    departure, snapshots = Departure(), Snapshots(ledger)
    left = 0
    with departure.watched(), follow(quiet=settings.quiet) as progress:

        def show(event: Event) -> None:
            progress.show(event, lambda pause: snapshots.take(state.id, budget=budget, pause=pause))

        warnings = Warnings(show)

        def say(event: Event) -> None:
            warnings.hear(event)
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
        except RunnerE2EError as error:
            warnings.drop(str(error))
            raise
        finally:
            warnings.release()
    status = conclude(ledger, state.id, as_json=settings.as_json, verb=verb)
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
