"""Clients with one mistake each, such as somebody might make: the schedules must tell every one from the client.

A mutant is installed in a process of its own, before it does anything. *seeds* are schedules that catch it.
"""

from __future__ import annotations

import fcntl
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from runner_e2e.dispatch import attachment, client_looking, client_sending, client_settling, shared_ledger
from runner_e2e.dispatch.attachment import Attach, Burn, Unpaid
from runner_e2e.dispatch.github_api import GitHubApi, UnknownOutcomeError
from runner_e2e.dispatch.ledger import Ledger
from runner_e2e.dispatch.shared_ledger import SharedLedger

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from runner_e2e.dispatch.attachment import Decision, Origin, Seen, Sought
    from runner_e2e.dispatch.claim import Holder
    from runner_e2e.dispatch.client_context import Context
    from runner_e2e.dispatch.ledger_records import ShardState
    from runner_e2e.dispatch.records import RunRecord

__all__ = ["MUTANTS", "Mutant"]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A client with one *mistake*, which *install* makes in this process. *seeds* are schedules that show it."""

    mistake: str
    install: Callable[[], None]
    seeds: tuple[int, ...]


MUTANTS: dict[str, Mutant] = {}


def mutant(mistake: str, *seeds: int) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Registers a mutant under the name of the function that installs it."""

    def register(install: Callable[[], None]) -> Callable[[], None]:
        MUTANTS[install.__name__.replace("_", "-")] = Mutant(mistake=mistake, install=install, seeds=seeds)
        return install

    return register


def swap(where: object, name: str, made: Callable[[Any], Any]) -> None:
    """Puts what *made* makes of the thing called *name* in its place."""
    setattr(where, name, made(getattr(where, name)))


def replaced(where: object, name: str, value: object) -> None:
    """Puts *value* in place of the thing called *name*."""
    setattr(where, name, value)


def decide_by(decision: Callable[[Sought, Seen, Origin], Decision | None]) -> None:
    """Asks *decision* first; None leaves it to the client."""
    swap(client_looking, "decide", lambda decide: lambda *seen: decision(*seen) or decide(*seen))


def ours(sought: Sought, seen: Seen, origin: Origin) -> list[RunRecord]:
    """The runs of ours, the oldest first."""
    found = [run for run in seen.runs if not attachment.foreign_because(run, sought, origin)]
    return sorted(found, key=lambda run: run.id)


def attach(run: RunRecord) -> Attach:
    """To follow *run*, whoever holds the claim."""
    return Attach(run=run.id, attempt=run.attempt, record=run)


# Sending


@mutant("sends a dispatch again that got no reply", 4, 1)
def retry_a_post() -> None:
    def made(send: Any) -> Any:
        def send_twice(*arguments: Any, **settings: Any) -> Any:
            try:
                return send(*arguments, **settings)
            except UnknownOutcomeError:
                return send(*arguments, **settings)

        return send_twice

    swap(GitHubApi, "send", made)


@mutant("writes the intent when the dispatch has been sent", 31, 25, 29)
def intend_after_sending() -> None:
    intend = Ledger.intend

    def made(move: Any) -> Any:
        def moved(self: Ledger, shard: ShardState, to: str, **fields: Any) -> ShardState:
            if shard.state == "reserved" and to in {"sent", "unknown", "unpaid", "reserved"} and "nonce" not in fields:
                shard = intend(self, shard)
            return cast("ShardState", move(self, shard, to, **fields))

        return moved

    swap(Ledger, "move", made)
    replaced(Ledger, "intend", lambda _, shard: shard)


@mutant("takes a server's error for a refusal", 21, 28, 26)
def believe_an_error() -> None:
    def made(doubtful: Any) -> Any:
        def refused(context: Context, shard: ShardState, why: str) -> ShardState:
            if "the answer was 50" not in why:
                return cast("ShardState", doubtful(context, shard, why))
            context.shared.release([shard.key])
            return context.told(context.ledger.move(shard, "unpaid", note=why), "unpaid", why)

        return refused

    swap(client_sending, "_doubtful", made)


@mutant("sends with one nonce in every round", 2, 3)
def reuse_a_nonce() -> None:
    nonces: list[str] = []

    def made(new_nonce: Any) -> Any:
        def same(moment: datetime) -> str:
            nonces.append(nonces[0] if nonces else new_nonce(moment))
            return nonces[0]

        return same

    swap(client_sending, "new_nonce", made)


@mutant("sends before anything is reserved in the shared ledger", 0, 2)
def reserve_nothing() -> None:
    replaced(SharedLedger, "reserve", lambda *_, **__: None)


@mutant("reserves without a look at the caps", 23, 3)
def pass_the_caps() -> None:
    replaced(shared_ledger, "check_caps", lambda *_, **__: None)


@mutant("does not see that somebody else has started the campaign", 59, 93, 106, 145)
def ignore_another_owner() -> None:
    replaced(shared_ledger, "_check_owners", lambda *_: None)
    # A second wall, against copies of a ledger, would stop it too.
    replaced(shared_ledger, "_check_nonces", lambda *_: None)


@mutant("does not keep a second process out", 21, 13, 46)
def ignore_another_process() -> None:
    replaced(fcntl, "flock", lambda *_: None)


# Finding the run


@mutant("gives up what it does not see at once", 4, 15)
def forget_the_grace_window() -> None:
    replaced(attachment, "GRACE_UNKNOWN", 0.0)
    replaced(attachment, "GRACE_ANSWERED", 0.0)


@mutant("follows the oldest run that carries the nonce", 10, 5, 8)
def attach_to_the_oldest() -> None:
    decide_by(lambda *seen: attach(found[0]) if (found := ours(*seen)) else None)


@mutant("follows the newest run that carries the nonce, before anybody holds the claim", 5, 8)
def skip_the_claim() -> None:
    decide_by(lambda *seen: attach(found[-1]) if (found := ours(*seen)) else None)


@mutant("follows the run that the reply named, whoever holds the claim", 10, 5, 8)
def trust_the_hint() -> None:
    def hinted(sought: Sought, seen: Seen, _: Origin) -> Decision | None:
        return next((attach(run) for run in seen.runs if run.id == sought.hinted), None)

    decide_by(hinted)


@mutant("takes every run that carries the nonce for one of its own", 2, 10)
def match_by_title_alone() -> None:
    replaced(attachment, "foreign_because", lambda *_: "")


@mutant("takes a lost dispatch for unpaid without burning its claim", 24, 44)
def burn_nothing() -> None:
    def given_up(sought: Sought, seen: Seen, origin: Origin) -> Decision:
        decision = attachment.decide(sought, seen, origin)
        return Unpaid(why=decision.why) if isinstance(decision, Burn) else decision

    decide_by(given_up)


@mutant("takes a claim for burned without a look at who holds it", 157)
def burn_without_looking() -> None:
    def made(burn: Any) -> Any:
        def burned(*arguments: Any, **settings: Any) -> Holder:
            found: Holder = burn(*arguments, **settings)
            return replace(found, claim=None, burned=True)

        return burned

    swap(client_looking, "burn", made)


@mutant("burns the claim of a run that has not begun", 5, 0)
def burn_what_is_queued() -> None:
    def impatient(sought: Sought, seen: Seen, origin: Origin) -> Decision | None:
        waiting = seen.holder is None and any(run.status == "queued" for run in ours(sought, seen, origin))
        return Burn(why="it has not begun") if waiting else None

    decide_by(impatient)


@mutant("cancels all twins but the oldest before one of them has claimed", 5, 8, 29)
def cancel_twins_too_early() -> None:
    def made(is_unpaid: Any) -> Any:
        def cancelling(context: Any, shard: Any, runs: Any, origin: Any, *more: Any) -> bool:
            sought = client_looking._sought(shard)
            found = ours(sought, client_looking._seen(context, sought, runs), origin)
            client_looking.cancel_runs(context, [run.id for run in found[1:] if run.status != "completed"])
            return bool(is_unpaid(context, shard, runs, origin, *more))

        return cancelling

    swap(client_looking, "_is_unpaid", made)


# Settling


@mutant("gives back what is reserved for a dispatch of which nobody knows", 15, 7)
def release_the_unknown() -> None:
    def made(doubtful: Any) -> Any:
        def released(context: Context, shard: ShardState, why: str) -> ShardState:
            context.shared.release([shard.key])
            return cast("ShardState", doubtful(context, shard, why))

        return released

    swap(client_sending, "_doubtful", made)


@mutant("keeps what is reserved for what was not paid", 9, 10, 1)
def release_nothing() -> None:
    replaced(SharedLedger, "release", lambda *_, **__: None)


@mutant("settles a run that is not over", 2, 8)
def settle_before_the_end() -> None:
    def made(follow: Any) -> Any:
        def over(context: Context, shard: ShardState, runs: dict[int, RunRecord]) -> None:
            if shard.run in runs:
                runs = {**runs, shard.run: replace(runs[shard.run], status="completed")}
            follow(context, shard, runs)

        return over

    swap(client_looking, "_follow", made)
    replaced(client_settling, "RESULTS_GRACE", 0.0)


@mutant("takes a missing result for one that cost nothing", 6, 51)
def hold_the_unknown_for_nothing() -> None:
    def made(outcomes_of_run: Any) -> Any:
        def outcomes(*arguments: Any, **settings: Any) -> Any:
            results, joined = outcomes_of_run(*arguments, **settings)
            cells = tuple(replace(cell, actual=cell.actual or 0, kept=0) for cell in joined.cells)
            return results, replace(joined, cells=cells)

        return outcomes

    swap(client_settling, "outcomes_of_run", made)


@mutant("charges a run twice", 0, 1)
def charge_twice() -> None:
    def made(settle: Any) -> Any:
        def twice(self: SharedLedger, items: Any) -> None:
            settle(self, [(key, 2 * (charged or 0), run) for key, charged, run in items])

        return twice

    swap(SharedLedger, "settle", made)
