"""Which run a shard belongs to: a pure decision over what GitHub shows.

Of a dispatch whose reply was lost nobody knows whether it made no run, one, or several. Two things are certain. The
run that *holds the claim* is the one that pays, and not the oldest, nor the one that a reply named. And while nobody
holds the claim nothing has been paid, so the client can take it for nobody (burn it), and then nothing ever will be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from runner_e2e.cells.sealed import is_nonce
from runner_e2e.dispatch.records import moment_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runner_e2e.dispatch.claim import Holder
    from runner_e2e.dispatch.records import RunRecord

__all__ = [
    "CLAIMS_LAST",
    "CLOCK_SKEW",
    "GRACE_ANSWERED",
    "GRACE_UNKNOWN",
    "Ask",
    "Attach",
    "Burn",
    "Decision",
    "Identity",
    "Look",
    "Origin",
    "Seen",
    "Sought",
    "Unpaid",
    "Wait",
    "decide",
    "foreign_because",
    "twins",
]

GRACE_UNKNOWN: Final = 600.0
"""Seconds after an intent during which a run may still appear that nobody confirmed.

GitHub lists a run seconds after its dispatch, minutes when it is in trouble. An end that comes too early costs no
money, since the claim is burned first; it costs a run that would have done the work.
"""

GRACE_ANSWERED: Final = 1_800.0
"""The same where GitHub said that it took the dispatch: then there is a run, and the list is late."""

CLAIMS_LAST: Final = 35 * 86_400.0
"""Seconds for which a claim is sure to stand: `dispatch cleanup` removes none that is younger than 40 days."""

CLOCK_SKEW: Final = 600.0
"""Seconds by which the clock of this machine may be ahead of GitHub's; :func:`check_nonce` allows as much."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Whose token it is. *id* is None where GitHub does not tell: a token of an app, whose runs a bot starts."""

    id: int | None
    login: str = ""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What our runs have in common: who sends them, of which workflow (the file's name), on which branch, where."""

    identity: Identity
    workflow: str
    branch: str
    repository_id: int


@dataclass(frozen=True, kw_only=True)
class Sought:
    """A shard that has no run yet. Times are seconds since the epoch.

    *answered*: GitHub said that it took the dispatch. *hinted* is the run that its answer named: perhaps a twin.
    """

    nonce: str
    intended_at: float
    answered: bool = False
    hinted: int | None = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What GitHub shows for one nonce: *runs* that carry it or were read for it, the *holder* of its claim.

    *gone* are the runs that GitHub says do not exist, for long enough to be believed.
    """

    runs: tuple[RunRecord, ...]
    holder: Holder | None
    now: float
    gone: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Attach:
    """*run* holds the claim; *record* is None where it was deleted."""

    run: int
    attempt: int
    record: RunRecord | None


@dataclass(frozen=True, kw_only=True)
class Look:
    """Run *run* must be read before anything can be said."""

    run: int


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Nothing is decided before *until* (seconds since the epoch); None: until one of *runs* goes on."""

    why: str
    until: float | None = None
    runs: tuple[RunRecord, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Burn:
    """Nobody holds the claim and nobody is about to: take it for nobody, and see who has it then."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Unpaid:
    """The claim is burned: nothing was paid under the nonce, and nothing can be."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What GitHub shows fits no course of events that we know: a person must look."""

    why: str


Decision: TypeAlias = Attach | Look | Wait | Burn | Unpaid | Ask


def decide(sought: Sought, seen: Seen, origin: Origin) -> Decision:
    """What follows for the shard of *sought* from what is *seen*."""
    if seen.holder is not None:
        return _held(sought, seen, seen.holder, origin)
    ours = [run for run in seen.runs if not foreign_because(run, sought, origin)]
    if seen.now - sought.intended_at > CLAIMS_LAST:
        return _long_ago(ours)
    # A run that is started again has ended before; its new attempt needs a claim that it makes first, or ends.
    going = tuple(run for run in ours if run.status != "completed" and run.attempt == 1)
    if going:
        return Wait(why=f"run {going[0].id} is {going[0].status} and has not claimed yet", runs=going)
    if ours:
        return Burn(why=f"run {ours[0].id} ended before its claim, so it paid nothing")
    if sought.hinted is not None and sought.hinted not in seen.gone and not _known(sought.hinted, seen):
        return Look(run=sought.hinted)
    end = sought.intended_at + (GRACE_ANSWERED if sought.answered else GRACE_UNKNOWN)
    if seen.now < end:
        return Wait(why="no run with its nonce has appeared yet", until=end)
    return Burn(why="no run with its nonce has appeared")


def _long_ago(ours: Sequence[RunRecord]) -> Decision:
    """The claim may have been removed, so that nobody holds it proves nothing. What the one run did, its jobs tell."""
    if len(ours) == 1:
        return Attach(run=ours[0].id, attempt=ours[0].attempt, record=ours[0])
    return Ask(why=f"it was sent so long ago that its claim may be removed, and {len(ours)} runs carry its nonce")


def _held(sought: Sought, seen: Seen, holder: Holder, origin: Origin) -> Decision:
    """The claim exists: who holds it pays."""
    if holder.burned:
        return Unpaid(why="its claim was burned: nothing was paid under it, and nothing can be")
    claim = holder.claim
    if claim is None or claim.nonce != sought.nonce:
        return Ask(why=f"the claim of {sought.nonce} points to {holder.sha[:12]}, which is no tag of runner-e2e")
    if claim.run in seen.gone:
        return Attach(run=claim.run, attempt=claim.attempt, record=None)
    record = next((run for run in seen.runs if run.id == claim.run), None)
    if record is None:
        return Look(run=claim.run)
    if not is_nonce(_last_word(record)):
        # The workflow names its runs otherwise by now; the claim says the same as the name would.
        record = replace(record, title="")
    reason = foreign_because(record, sought, origin)
    if reason:
        return Ask(why=f"run {claim.run} has claimed {sought.nonce}, and is not ours: {reason}")
    return Attach(run=claim.run, attempt=claim.attempt, record=record)


def foreign_because(run: RunRecord, sought: Sought, origin: Origin) -> str:
    """Why *run* cannot come from our dispatch; empty where it can.

    A nonce is public as soon as a run carries it, so it alone proves nothing. The run that GitHub's answer to our
    dispatch named is ours, whatever became of tokens, branches and names since.
    """
    if run.id == sought.hinted:
        return ""
    if run.event != "workflow_dispatch":
        return f"it was started by `{run.event}`"
    if not origin.repository_id == run.repository_id == run.head_repository_id:
        return "it belongs to another repository"
    if run.path.rpartition("/")[2] != origin.workflow:
        return f"it is a run of {run.path[:100]!r}"
    if run.head_branch != origin.branch:
        return f"its definition is that of {run.head_branch[:100]!r}"
    identity = origin.identity
    if run.actor.id != identity.id if identity.id is not None else run.actor.kind != "Bot":
        return f"{run.actor.login} (id {run.actor.id}) started it"
    if moment_of(run.created_at).timestamp() < sought.intended_at - CLOCK_SKEW:
        return "it is older than the dispatch"
    # Servers before 3.7 tell no title; then the claim's tag alone binds the run to the nonce.
    if run.title and _last_word(run) != sought.nonce:
        return "its name does not end with the nonce"
    return ""


def twins(runs: Iterable[RunRecord], sought: Sought, origin: Origin, *, holder: int) -> tuple[RunRecord, ...]:
    """The runs of ours that carry the nonce although run *holder* has claimed it, and that are not over."""
    return tuple(
        run
        for run in runs
        # Without a title it is not known to carry the nonce: it can be the run of another shard.
        if run.id != holder and run.title and run.status != "completed" and not foreign_because(run, sought, origin)
    )


def _last_word(run: RunRecord) -> str:
    return run.title.rpartition(" ")[2]


def _known(run: int, seen: Seen) -> bool:
    return any(each.id == run for each in seen.runs)
