"""Which run a shard belongs to: every course of events that GitHub can show, as a table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.dispatch.attachment import (
    CLAIMS_LAST,
    CLOCK_SKEW,
    GRACE_ANSWERED,
    GRACE_UNKNOWN,
    Ask,
    Attach,
    Burn,
    Decision,
    Identity,
    Look,
    Origin,
    Seen,
    Sought,
    Unpaid,
    Wait,
    decide,
    foreign_because,
    twins,
)
from runner_e2e.dispatch.claim import Claim, Holder
from runner_e2e.dispatch.records import Account, RunRecord

NONCE = "20261130t040000z-0123456789abcdef"
SENT_AT = 1_796_011_200.0  # 2026-11-30 04:00 UTC
ALICE = Account(id=11, login="alice", kind="User")
BOB = Account(id=12, login="bob", kind="User")
ORIGIN = Origin(identity=Identity(id=11, login="alice"), workflow="paid-campaign.yml", branch="main", repository_id=5)
SOUGHT = Sought(nonce=NONCE, intended_at=SENT_AT)
ANSWERED = Sought(nonce=NONCE, intended_at=SENT_AT, answered=True)
HINTED = Sought(nonce=NONCE, intended_at=SENT_AT, answered=True, hinted=1)


def run(number: int = 1, status: str = "in_progress", **changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "id": number, "attempt": 1, "event": "workflow_dispatch", "status": status,
        "path": ".github/workflows/paid-campaign.yml", "head_branch": "main", "head_sha": "0" * 40,
        "repository": "octo/evals", "repository_id": 5, "head_repository_id": 5, "title": f"Paid campaign {NONCE}",
        "created_at": "2026-11-30T04:00:02Z", "actor": ALICE, "triggering_actor": ALICE,
    }  # fmt: skip
    return RunRecord(**{**values, **changes})


def claimed(number: int, attempt: int = 1, nonce: str = NONCE) -> Holder:
    return Holder(claim=Claim(nonce=nonce, run=number, attempt=attempt), sha="a" * 40)


BURNED = Holder(claim=None, sha="b" * 40, burned=True)
NO_TAG = Holder(claim=None, sha="c" * 40)


def kind(decision: Decision) -> tuple[object, ...]:
    """A decision without its words."""
    if isinstance(decision, Attach):
        return (Attach, decision.run)
    if isinstance(decision, Wait):
        return (Wait, decision.until, *[each.id for each in decision.runs])
    return (Look, decision.run) if isinstance(decision, Look) else (type(decision),)


@pytest.mark.parametrize(
    ("sought", "runs", "holder", "after", "expected"),
    [
        # Nobody holds the claim
        (SOUGHT, [], None, 0, (Wait, SENT_AT + GRACE_UNKNOWN)),
        (SOUGHT, [], None, GRACE_UNKNOWN - 1, (Wait, SENT_AT + GRACE_UNKNOWN)),
        (SOUGHT, [], None, GRACE_UNKNOWN, (Burn,)),
        (ANSWERED, [], None, GRACE_UNKNOWN, (Wait, SENT_AT + GRACE_ANSWERED)),
        (ANSWERED, [], None, GRACE_ANSWERED, (Burn,)),
        (HINTED, [], None, 0, (Look, 1)),
        (HINTED, [], None, GRACE_ANSWERED, (Look, 1)),
        (SOUGHT, [run(1, "queued")], None, 0, (Wait, None, 1)),
        # It may stand in the queue for a day; nothing is gained by burning its claim.
        (SOUGHT, [run(1, "queued")], None, 86_400, (Wait, None, 1)),
        (SOUGHT, [run(1, "completed")], None, 0, (Burn,)),
        (SOUGHT, [run(1, "completed"), run(2, "queued")], None, 86_400, (Wait, None, 2)),
        (HINTED, [run(1, "completed")], None, 0, (Burn,)),
        # A claim may have been removed by now.
        (SOUGHT, [], None, CLAIMS_LAST + 1, (Ask,)),
        (SOUGHT, [run(1, "completed")], None, CLAIMS_LAST + 1, (Attach, 1)),
        (SOUGHT, [run(1, "completed"), run(2, "completed")], None, CLAIMS_LAST + 1, (Ask,)),
        (SOUGHT, [], claimed(7), CLAIMS_LAST + 1, (Look, 7)),
        (SOUGHT, [], BURNED, CLAIMS_LAST + 1, (Unpaid,)),
        # A stranger's run with our nonce is not waited for.
        (SOUGHT, [run(3, actor=Account(id=66, login="mallory", kind="User"))], None, GRACE_UNKNOWN, (Burn,)),
        # Somebody holds it
        (SOUGHT, [run(1)], claimed(1), 0, (Attach, 1)),
        (SOUGHT, [run(1, "completed")], claimed(1), 0, (Attach, 1)),
        (SOUGHT, [run(1), run(2)], claimed(2), 0, (Attach, 2)),
        (SOUGHT, [run(1, "completed"), run(2)], claimed(2), 0, (Attach, 2)),
        # What the reply named is a twin.
        (HINTED, [run(1, "queued"), run(2)], claimed(2), 0, (Attach, 2)),
        (HINTED, [run(1, "queued")], claimed(2), 0, (Look, 2)),
        (SOUGHT, [], claimed(7), 86_400, (Look, 7)),
        (SOUGHT, [run(1)], BURNED, 0, (Unpaid,)),
        (SOUGHT, [], NO_TAG, 0, (Ask,)),
        (SOUGHT, [run(1)], claimed(1, nonce="20261130t040000z-ffffffffffffffff"), 0, (Ask,)),
        (SOUGHT, [run(1, event="schedule")], claimed(1), 0, (Ask,)),
        # The workflow names its runs otherwise since; the name of another shard's run says that it is none of this one.
        (SOUGHT, [run(1, title="Paid campaign of tonight")], claimed(1), 0, (Attach, 1)),
        (SOUGHT, [run(1, title=f"Paid campaign {NONCE[:-1]}0")], claimed(1), 0, (Ask,)),
        # GitHub's reply named it: it is ours, whatever token asks and whatever the default branch is called by now.
        (HINTED, [run(1, actor=BOB)], claimed(1), 0, (Attach, 1)),
        (HINTED, [run(1, head_branch="master", title="x")], claimed(1), 0, (Attach, 1)),
        (HINTED, [run(1, "waiting", actor=BOB)], None, 86_400, (Wait, None, 1)),
        (HINTED, [run(2, actor=BOB)], claimed(2), 0, (Ask,)),
        # Started again, which needs an authorisation, which takes the claim: without one it has ended for good.
        (SOUGHT, [run(1, "waiting", attempt=2)], None, 0, (Burn,)),
        (SOUGHT, [run(1, "waiting", attempt=2), run(2, "queued")], None, 0, (Wait, None, 2)),
        (SOUGHT, [run(1, "waiting", attempt=2)], claimed(1), 0, (Attach, 1)),
    ],
)  # fmt: skip
def test_every_course(
    sought: Sought, runs: list[RunRecord], holder: Holder | None, after: float, expected: tuple[object, ...]
) -> None:
    seen = Seen(runs=tuple(runs), holder=holder, now=SENT_AT + after)
    assert kind(decide(sought, seen, ORIGIN)) == expected


def test_a_run_that_is_gone() -> None:
    gone = frozenset({1})
    seen = Seen(runs=(), holder=claimed(1), now=SENT_AT, gone=gone)
    assert decide(SOUGHT, seen, ORIGIN) == Attach(run=1, attempt=1, record=None)
    seen = Seen(runs=(), holder=None, now=SENT_AT, gone=gone)
    assert kind(decide(HINTED, seen, ORIGIN)) == (Wait, SENT_AT + GRACE_ANSWERED)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, ""),
        ({"event": "schedule"}, "`schedule`"),
        ({"repository_id": 6}, "repository"),
        ({"head_repository_id": 6}, "repository"),
        ({"path": ".github/workflows/other.yml"}, "other.yml"),
        ({"head_branch": "feature"}, "feature"),
        ({"actor": Account(id=12, login="bob", kind="User")}, "bob (id 12)"),
        ({"created_at": "2026-11-30T03:49:59Z"}, "older"),
        ({"created_at": "2026-11-30T03:50:00Z"}, ""),
        ({"title": f"Paid campaign {NONCE} again"}, "name"),
        ({"title": ""}, ""),
    ],
)
def test_whose_run_it_is(changes: dict[str, Any], word: str) -> None:
    found = foreign_because(run(**changes), SOUGHT, ORIGIN)
    assert word in found
    assert bool(found) == bool(word)
    assert CLOCK_SKEW == 600


def test_the_twins_of_a_run() -> None:
    mallory = Account(id=66, login="mallory", kind="User")
    runs = [run(1), run(2), run(3, "queued"), run(4, "completed"), run(5, actor=mallory), run(6, title="")]
    assert [each.id for each in twins(runs, SOUGHT, ORIGIN, holder=2)] == [1, 3]


@pytest.mark.parametrize(("account", "ours"), [("Bot", True), ("User", False)])
def test_a_token_of_an_app_starts_runs_as_a_bot(account: str, ours: bool) -> None:
    origin = Origin(identity=Identity(id=None), workflow="paid-campaign.yml", branch="main", repository_id=5)
    one = run(actor=Account(id=99, login="some[bot]", kind=account))
    assert (foreign_because(one, SOUGHT, origin) == "") == ours


RUNS = st.builds(
    run,
    st.integers(1, 4),
    st.sampled_from(["queued", "in_progress", "completed", "waiting"]),
    event=st.sampled_from(["workflow_dispatch", "workflow_dispatch", "schedule"]),
)
HOLDERS = st.one_of(st.none(), st.just(BURNED), st.just(NO_TAG), st.integers(1, 6).map(claimed))


@given(
    sought=st.sampled_from([SOUGHT, ANSWERED, HINTED]),
    runs=st.lists(RUNS, max_size=4, unique_by=lambda each: each.id),
    holder=HOLDERS,
    after=st.floats(0, 4e6),
    gone=st.frozensets(st.integers(1, 6), max_size=2),
)
def test_what_may_never_follow(
    sought: Sought, runs: list[RunRecord], holder: Holder | None, after: float, gone: frozenset[int]
) -> None:
    seen = Seen(runs=tuple(runs), holder=holder, now=SENT_AT + after, gone=gone)
    decision = decide(sought, seen, ORIGIN)
    # Unpaid is only what was burned, and a run is only the one that holds the claim.
    assert isinstance(decision, Unpaid) == (holder == BURNED)
    if isinstance(decision, Attach) and after <= CLAIMS_LAST:
        assert holder is not None
        assert holder.claim is not None
        assert decision.run == holder.claim.run
    if isinstance(decision, Burn | Wait):
        assert holder is None
    if isinstance(decision, Burn):
        assert after <= CLAIMS_LAST
        assert all(foreign_because(each, sought, ORIGIN) or each.status == "completed" for each in runs)
    if isinstance(decision, Look):
        assert decision.run not in gone
        assert decision.run not in {each.id for each in runs}
