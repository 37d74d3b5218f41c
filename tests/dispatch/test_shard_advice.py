"""The tables of advice: complete, and naming only what there is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pytest

from runner_e2e.cli.dispatch import VERBS
from runner_e2e.dispatch.ledger_records import ShardState
from runner_e2e.dispatch.shard_advice import ADVICE, WHY_NOT, Choice, advice_for, chosen, nothing_left
from runner_e2e.dispatch.shard_states import FINAL, MOVES, STATES, State
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHOICES: tuple[Choice, ...] = get_args(Choice)
TAKEN: dict[Choice, State] = {"send-again": "unpaid", "give-up": "stuck"}
SHARD = ShardState(
    campaign="c-1", index=0, round=1, state="planned", version=1, nonce=None, sealed="", cells=1, expected=0,
    reserved=0, actual=None, kept=0, run=None, attempt=None, hinted_run=None, intended_at=None, sent_at=None,
    changed_at=0.0, note="",
)  # fmt: skip


def shards(*states: State) -> tuple[ShardState, ...]:
    return tuple(replace(SHARD, index=index, state=state) for index, state in enumerate(states))


def test_every_state_has_advice_and_refuses_all_but_one_choice() -> None:
    assert set(ADVICE) == set(STATES)
    assert {choice: set(STATES) - set(WHY_NOT[choice]) for choice in CHOICES} == {
        choice: {state} for choice, state in TAKEN.items()
    }


def test_what_is_not_at_its_end_has_a_verb_and_what_may_follow_has_one_too() -> None:
    for state in STATES:
        for verb in ("", "resolve", "watch"):
            for cancelling in (True, False):
                advice = advice_for(state, verb=verb, cancelling=cancelling)
                assert advice.text
                if MOVES[state]:
                    assert advice.verbs, state


def texts() -> Iterator[str]:
    for state in STATES:
        for verb in ("", "resolve"):
            advice = advice_for(state, verb=verb)
            yield advice.text
            yield from (f"`{each}`" for each in advice.verbs)
    for table in WHY_NOT.values():
        for refusal in table.values():
            yield refusal.fix


@pytest.mark.parametrize("text", sorted(set(texts())))
def test_only_verbs_and_options_that_there_are_are_named(text: str) -> None:
    for quoted in re.findall(r"`([^`]+)`", text):
        verb, *rest = quoted.removeprefix("runner-e2e dispatch ").split()
        if not verb.startswith("--"):
            assert verb in VERBS, quoted
        options = [word for word in (verb, *rest) if word.startswith("--")]
        assert set(options) <= {"--send-again", "--give-up", "--failed", "--ids"}, quoted


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("state", STATES)
def test_a_choice_is_taken_in_one_state_and_refused_with_a_reason_in_the_others(choice: Choice, state: State) -> None:
    given = shards("settled", state)
    if state == TAKEN[choice]:
        assert chosen("c-1", given, [1, 1], choice) == (given[1],)
        return
    with pytest.raises(UsageError, match=f"shard 1 of c-1 is {state}, and --{choice} is refused") as raised:
        chosen("c-1", given, [1], choice)
    assert raised.value.problem.why
    assert not re.search(r"[{}]", raised.value.problem.fix), "its names are filled in"
    assert chosen("c-1", given, [1], choice, yet={state}) == (given[1],)


def test_a_shard_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="shard 3 of c-1 does not exist") as raised:
        chosen("c-1", shards("unpaid", "unpaid"), [0, 3], "send-again")
    assert raised.value.problem.why == "it has the shards 0 to 1"
    with pytest.raises(UsageError) as raised:
        chosen("c-1", shards("unpaid"), [1], "send-again")
    assert raised.value.problem.why == "it has the shard 0 alone"


@pytest.mark.parametrize(
    ("verb", "busy"),
    [
        ("resolve", {"sending", "sent", "unknown", "stuck"}),
        ("resume", {"planned", "reserved"}),
        ("cancel", set(STATES) - {"settled", "cancelled"}),
        ("watch", set(STATES) - FINAL - {"stuck"}),
    ],
)
def test_a_verb_with_nothing_to_do_says_so(verb: str, busy: set[State]) -> None:
    for state in STATES:
        assert bool(nothing_left(verb, [state, "settled"])) == (state not in busy), state
