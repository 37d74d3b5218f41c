"""The client of a campaign: it sends, finds its runs, watches them and settles what they cost.

A client can end at any point, and another one goes on from the ledger. Each cell is paid for once or not at all, and
of each the ledger says in the end which: no dispatch is sent a second time before it is proven that nothing was and
nothing can be paid for the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from runner_e2e.dispatch.call_budget import LimitedError
from runner_e2e.dispatch.client_context import Context
from runner_e2e.dispatch.client_events import Pace
from runner_e2e.dispatch.client_looking import cancel_runs, look
from runner_e2e.dispatch.client_sending import reserve_again, send_waiting
from runner_e2e.dispatch.client_settling import give_up, settle_ended
from runner_e2e.dispatch.ledger_errors import LedgerError
from runner_e2e.dispatch.ledger_moves import Move
from runner_e2e.dispatch.shard_advice import chosen
from runner_e2e.dispatch.shard_states import STATES, is_final
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from runner_e2e.dispatch.campaign import Campaign
    from runner_e2e.dispatch.client_events import Event
    from runner_e2e.dispatch.client_looking import Patience
    from runner_e2e.dispatch.conditional import ConditionalReader
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState, ShardState
    from runner_e2e.dispatch.shard_states import State
    from runner_e2e.dispatch.shared_ledger import SharedLedger

__all__ = ["Client"]

_REFUSED_PAUSE: Final = 300.0
"""Seconds until a watching client tries again to send what was refused."""

_MOST_FAILURES: Final = 12
"""Rounds in a row that GitHub did not answer; with pauses of a minute, an outage of ten."""


_Part: TypeAlias = "Callable[[CampaignState, Patience], None]"


@dataclass
class _Round:
    """What went wrong in a round: what keeps the rest from being sent, and what else failed first."""

    refused: RefusedError | None = None
    failed: GitHubError | RefusedError | None = None

    def check(self) -> None:
        """Raises what went wrong."""
        if error := self.failed or self.refused:
            raise error


class Client:
    """Runs the campaigns of one ledger in one repository.

    *keys* are the campaign keys, the newest first: selections are sealed anew under each nonce. *now* gives seconds
    since the epoch, *wait* sleeps for seconds, *say* is told what happens, all in the thread of the caller.

    Every method raises :class:`~runner_e2e.errors.RefusedError` where a rule says no (a cap, the repository, another
    client that runs the campaign), and :class:`~runner_e2e.errors.GitHubError` where GitHub cannot be asked. The ledger
    tells then how far it came, and calling the method again is always right.
    """

    def __init__(  # noqa: PLR0913 - everything that a test replaces
        self,
        *,
        ledger: Ledger,
        shared: SharedLedger,
        api: GitHubApi,
        reader: ConditionalReader,
        keys: Sequence[bytes],
        now: Callable[[], float],
        wait: Callable[[float], None],
        say: Callable[[Event], None] = lambda _: None,
        pace: Pace | None = None,
    ) -> None:
        self._ledger = ledger
        self._pace = pace or Pace()
        self._send_from = 0.0
        self._context = Context(
            ledger=ledger, shared=shared, api=api, reader=reader, keys=keys, now=now, wait=wait, say=say
        )

    def start(self, campaign: Campaign) -> CampaignState:
        """Reserves and sends *campaign*; returns when nothing of it waits to be sent. Again, it sends the rest."""
        self._ledger.add(campaign)
        return self.resume(campaign.id)

    def resume(self, campaign: str) -> CampaignState:
        """Sends what waits to be sent. What may have been sent is not: :meth:`watch` finds out what became of it."""
        with self._ledger.acting(campaign):
            send_waiting(self._context, self._ledger.campaign(campaign))
        return self._ledger.campaign(campaign)

    def step(self, campaign: str) -> CampaignState:
        """One round: sends what waits, looks for runs, settles what has ended."""
        with self._ledger.acting(campaign):
            self._round(campaign).check()
        return self._ledger.campaign(campaign)

    def watch(self, campaign: str) -> CampaignState:
        """Rounds until every shard is final, or only a person can go on (``stuck``)."""
        with self._ledger.acting(campaign):
            quiet, failures, until, why = 0, 0, 0.0, ""
            while self._is_open(campaign):
                if why:
                    self._pause(max(self._context.now() + self._pace.after(quiet), until), why)
                before, until, why = self._context.changes, 0.0, "next look"
                round_ = self._round(campaign)
                if round_.refused is not None and not self._is_open(campaign, but_not=("planned", "reserved")):
                    raise round_.refused
                if isinstance(round_.failed, LimitedError):
                    until, why = round_.failed.until, round_.failed.problem.what
                else:
                    failures = failures + 1 if round_.failed is not None else 0
                    if round_.failed is not None and failures >= _MOST_FAILURES:
                        raise round_.failed
                quiet = 0 if self._context.changes != before else quiet + 1
        return self._ledger.campaign(campaign)

    def resolve(
        self, campaign: str, *, send_again: Collection[int] = (), give_up_on: Collection[int] = ()
    ) -> CampaignState:
        """Decides now what a watching client waits for, or what waits for a person.

        *send_again* are unpaid shards (by index) to be sent once more; *give_up_on* are stuck ones to be ended with
        their cost unknown: they keep their reservation. Where neither is given, shards in doubt that no run is seen of
        are burned without a grace window. Raises :class:`~runner_e2e.errors.UsageError` for shards in other states.
        """
        with self._ledger.acting(campaign):
            state = self._ledger.campaign(campaign)
            for shard in chosen(campaign, self._ledger.shards(campaign), give_up_on, "give-up"):
                give_up(self._context, state, shard)
            again = [shard for shard in self._context.shards(campaign, "stuck") if shard.nonce]
            # Those whose claim a stranger holds will be stuck again, with the reason of today.
            self._ledger.move_all(Move(shard=shard, to="unknown", note=shard.note) for shard in again)
            # What was sent a moment ago is no matter of who names other shards.
            patience: Patience = "grace" if send_again or give_up_on else "none"
            self._round(campaign, patience=patience, parts=(self._look, self._settle)).check()
            if send_again:
                if state.cancel_asked_at is not None:
                    raise RefusedError(
                        f"{campaign} was cancelled", why="nothing of it is sent any more", fix="plan a new campaign"
                    )
                unpaid = chosen(campaign, self._ledger.shards(campaign), send_again, "send-again")
                reserve_again(self._context, state, unpaid)
                send_waiting(self._context, state)
        return self._ledger.campaign(campaign)

    def cancel(self, campaign: str) -> CampaignState:
        """Stops *campaign*: sends nothing more, burns the claims of what has not begun, and stops its runs.

        What was paid for is settled by :meth:`watch`, which goes on until all runs are over. Another client that runs
        the campaign does all of this in its next round; then :class:`~runner_e2e.errors.RefusedError` tells of it.
        """
        self._ledger.ask_to_cancel(campaign)
        return self.step(campaign)

    # One round

    def _round(self, campaign: str, *, patience: Patience = "grace", parts: Sequence[_Part] = ()) -> _Round:
        """Everything that can be done now. A part that fails does not keep the others from being done."""
        context = self._context
        if self._ledger.campaign(campaign).cancel_asked_at is not None:
            patience = "cancel"
        found = _Round()
        for part in parts or (self._send_or_cancel, self._look, self._settle):
            try:
                # Read anew: to send binds the repository's number to the campaign.
                part(self._ledger.campaign(campaign), patience)
            except LedgerError:
                raise
            except RefusedError as error:
                if part == self._send_or_cancel:
                    found.refused = error
                    self._send_from = context.now() + _REFUSED_PAUSE
                else:
                    found.failed = found.failed or error
                context.tell("warning", error.problem.what)
            except GitHubError as error:
                context.doubt()
                found.failed = found.failed or error
                context.tell("warning", error.problem.what)
        context.tell("round", f"{campaign}: {_described(self._ledger.shards(campaign))}")
        return found

    def _send_or_cancel(self, campaign: CampaignState, patience: Patience) -> None:
        context = self._context
        if patience != "cancel":
            if not 0 < self._send_from - context.now() <= _REFUSED_PAUSE:
                send_waiting(context, campaign)
            return
        waiting = context.shards(campaign.id, "planned", "reserved", "unpaid")
        # There first: what is released and still reserved here is reserved again before it could be sent. A shard that
        # was never changed cannot be reserved there.
        reserved = [shard.key for shard in waiting if shard.state != "unpaid" and shard.version > 1]
        if reserved and campaign.repository_id is not None:
            context.locate(campaign).shared.release(reserved, made=context.ledger.nonces(campaign.id))
        for shard in context.ledger.move_all(Move(shard=shard, to="cancelled", note=shard.note) for shard in waiting):
            context.told(shard, "cancelled", "cancelled; nothing was paid")

    def _look(self, campaign: CampaignState, patience: Patience) -> None:
        context = self._context
        look(context, campaign, patience)
        if patience == "cancel":
            # What its claim was burned for is unpaid now.
            self._send_or_cancel(campaign, patience)
            running = [(shard, shard.run) for shard in context.shards(campaign.id, "running") if shard.run]
            for shard, run in running:
                if run not in context.cancelled:
                    context.tell("stopping", f"shard {shard.index}: run {run} is asked to stop", shard=shard.index)
            cancel_runs(context, [run for _, run in running])

    def _settle(self, campaign: CampaignState, _: Patience) -> None:
        settle_ended(self._context, campaign)

    def _is_open(self, campaign: str, *, but_not: Collection[State] = ()) -> bool:
        """Whether anything can still change by itself, in the states *but_not* left out."""
        return any(
            not is_final(shard.state) and shard.state not in {"stuck", *but_not}
            for shard in self._ledger.shards(campaign)
        )

    def _pause(self, until: float, why: str) -> None:
        seconds = until - self._context.now()
        if seconds > 0:
            self._context.tell("waiting", why, until=until)
            self._context.wait(seconds)


def _described(shards: Sequence[ShardState]) -> str:
    """How many shards are in which state, in the order of the states."""
    numbers = {state: sum(shard.state == state for shard in shards) for state in STATES}
    return ", ".join(f"{number} {state}" for state, number in numbers.items() if number)
