"""What a person can do about a shard in each state, and why something else cannot be done: tables without any deed.

Every text names the verbs of ``runner-e2e dispatch`` that help, so that no answer ends in a state nobody can act on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from runner_e2e.dispatch.shard_states import IN_DOUBT
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from runner_e2e.dispatch.ledger_records import ShardState
    from runner_e2e.dispatch.shard_states import State

__all__ = ["ADVICE", "WHY_NOT", "Advice", "Choice", "Refusal", "advice_for", "chosen", "nothing_left"]

Choice: TypeAlias = Literal["send-again", "give-up"]
"""What a person can ask of one shard, as an option of ``resolve``."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """*text* says in words what each of *verbs* would do, the most likely first.

    A verb that is about single shards ends with its option; the index follows it.
    """

    text: str
    verbs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why something cannot be done with a shard, and what can be: ``{campaign}`` and ``{index}`` stand for its own."""

    why: str
    fix: str


ADVICE: Final[Mapping[State, Advice]] = {
    "planned": Advice(text="`resume` reserves and sends it", verbs=("resume",)),
    "reserved": Advice(text="`resume` sends it", verbs=("resume",)),
    "sending": Advice(text="`watch` finds out what became of it", verbs=("watch",)),
    "sent": Advice(text="`watch` follows it", verbs=("watch",)),
    "unknown": Advice(
        text="`watch` looks for its run for a while, `resolve` decides at once", verbs=("watch", "resolve")
    ),
    "running": Advice(text="`watch` follows it", verbs=("watch",)),
    "ended": Advice(text="`watch` joins them", verbs=("watch",)),
    "settled": Advice(text="`results` lists its cells", verbs=("results",)),
    "unpaid": Advice(
        text="`resolve --send-again` pays for it after all, `cancel` ends the campaign without it",
        verbs=("resolve --send-again",),
    ),
    "stuck": Advice(
        text="look there; `resolve` decides anew, `resolve --give-up` ends it and keeps its reservation",
        verbs=("resolve", "resolve --give-up"),
    ),
    "cancelled": Advice(text="a new campaign can pay for it (`plan`)"),
}

_LEFT_ALONE: Final = Advice(
    text="`resolve` leaves it alone, since it may claim and pay at any moment: `watch` follows it, "
    "`cancel` stops the campaign",
    verbs=("watch", "cancel"),
)
_BEING_CANCELLED: Final = Advice(text="the campaign was cancelled, and `watch` ends it", verbs=("watch",))

_IN_FLIGHT: Final = Refusal(
    why="its request may have arrived; a second one could be paid for as well",
    fix="`runner-e2e dispatch resolve {campaign}` decides that first",
)
_WAITING: Final = Refusal(why="nothing of it was sent yet", fix="`runner-e2e dispatch resume {campaign}` sends it")
_UNSENT: Final = Refusal(
    why="nothing was paid for it, so nothing of it is unknown",
    fix="`runner-e2e dispatch cancel {campaign}` ends the campaign, without it",
)
_KNOWABLE: Final = Refusal(
    why="what became of it can be found out", fix="`runner-e2e dispatch resolve {campaign}` decides it"
)
_AT_ITS_END: Final = Refusal(why="it is at its end", fix="`runner-e2e dispatch results {campaign}` lists its cells")
_FOLLOWED: Final = "`runner-e2e dispatch watch {campaign}` follows it, `cancel` stops the campaign"
_JOINED: Final = "`runner-e2e dispatch watch {campaign}` joins its results"

WHY_NOT: Final[Mapping[Choice, Mapping[State, Refusal]]] = {
    "send-again": {
        "planned": _WAITING,
        "reserved": _WAITING,
        "sending": _IN_FLIGHT,
        "sent": Refusal(why="GitHub took its request, and its run may claim and pay at any moment", fix=_FOLLOWED),
        "unknown": _IN_FLIGHT,
        "running": Refusal(why="its run holds the claim, and may have paid", fix=_FOLLOWED),
        "ended": Refusal(why="its run held the claim, and may have paid", fix=_JOINED),
        "settled": Refusal(
            why="it was paid for",
            fix="plan a new campaign of what did not pass: "
            "`runner-e2e dispatch results {campaign} --failed --ids` names it",
        ),
        "stuck": Refusal(
            why="whether it was paid for is not known",
            fix="look at what `runner-e2e dispatch status {campaign}` says of it; then `resolve {campaign}` decides "
            "anew, or `--give-up {index}` ends it",
        ),
        "cancelled": Refusal(why="it was given up", fix="plan a new campaign"),
    },
    "give-up": {
        "planned": _UNSENT,
        "reserved": _UNSENT,
        "sending": _KNOWABLE,
        "sent": Refusal(why="its run may claim and pay at any moment", fix=_FOLLOWED),
        "unknown": _KNOWABLE,
        "running": Refusal(why="what its run costs will be known", fix=_FOLLOWED),
        "ended": Refusal(why="what its run has cost can be known", fix=_JOINED),
        "settled": _AT_ITS_END,
        "unpaid": _UNSENT,
        "cancelled": _AT_ITS_END,
    },
}
"""For each choice the states in which it is refused; it is taken in the one that is left."""


def advice_for(state: State, *, verb: str = "", cancelling: bool = False) -> Advice:
    """What can be done about a shard in *state* after *verb* was; *cancelling*: the campaign was asked to end."""
    if cancelling and state in {"planned", "reserved", "unpaid"}:
        return _BEING_CANCELLED
    if verb == "resolve" and state == "sent":
        return _LEFT_ALONE
    return ADVICE[state]


def chosen(
    campaign: str,
    shards: Sequence[ShardState],
    indices: Collection[int],
    choice: Choice,
    *,
    yet: Collection[State] = (),
) -> tuple[ShardState, ...]:
    """Those of *shards* (of *campaign*) with *indices*, where *choice* can be done with all of them.

    Raises :class:`~runner_e2e.errors.UsageError` where one does not exist, and where it is in another state that is
    not in *yet*: those in which it is not certain so far.
    """
    known = {shard.index: shard for shard in shards}
    refused = WHY_NOT[choice]
    for index in sorted(set(indices)):
        if index not in known:
            raise UsageError(
                f"shard {index} of {campaign} does not exist",
                why=f"it has the shards 0 to {len(known) - 1}" if len(known) > 1 else "it has the shard 0 alone",
                fix=f"`runner-e2e dispatch status {campaign}` shows them",
            )
        state = known[index].state
        if state in refused and state not in yet:
            refusal = refused[state]
            raise UsageError(
                f"shard {index} of {campaign} is {state}, and --{choice} is refused",
                why=refusal.why,
                fix=refusal.fix.format(campaign=campaign, index=index),
            )
    return tuple(known[index] for index in sorted(set(indices)))


def nothing_left(verb: str, states: Collection[State]) -> str:
    """Why *verb* has nothing to do for shards in *states*; empty where it has."""
    found = set(states)
    if verb == "resolve":
        return "" if found & {*IN_DOUBT, "stuck"} else "nothing is in doubt and nothing waits for a decision"
    if verb == "resume":
        return "" if found & {"planned", "reserved"} else "nothing waits to be sent"
    if verb == "cancel":
        return "" if found - {"settled", "cancelled"} else "nothing is left to cancel"
    # To watch, and to start, which watches.
    if found - {"settled", "cancelled", "unpaid", "stuck"}:
        return ""
    return "nothing goes on by itself" if found & {"unpaid", "stuck"} else "it is at its end"
