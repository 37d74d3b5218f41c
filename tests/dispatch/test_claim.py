"""Of everything that carries one nonce, one attempt of one run may pay, whatever the network does."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.dispatch.claim import (
    CLAIMS,
    RERUNS,
    Claim,
    authorise,
    burn,
    check_claim,
    claim_of,
    find_holder,
    nonce_of,
    take_claim,
)
from runner_e2e.dispatch.records import Account, RunRecord, read_run
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.github_double.server import Server

    from runner_e2e.dispatch.github_api import GitHubApi

NONCE = "20261130t120000z-0123456789abcdef"
FIRST = Claim(nonce=NONCE, run=900, attempt=1)


@pytest.fixture
def commit(double: Server) -> str:
    return double.state.refs["refs/heads/main"]


def holder_of(api: GitHubApi, claim: Claim = FIRST) -> Claim | None:
    found = find_holder(api, f"{CLAIMS}/{claim.name}")
    return found.claim if found else None


def test_the_first_one_gets_it(api: GitHubApi, commit: str) -> None:
    take_claim(api, FIRST, commit=commit)
    take_claim(api, FIRST, commit=commit)  # the same attempt: a job that is started twice
    with pytest.raises(RefusedError, match=r"run 900, attempt 1, has claimed"):
        take_claim(api, replace(FIRST, run=901), commit=commit)
    assert holder_of(api) == FIRST


def test_two_at_once(double: Server, connect: Callable[..., GitHubApi], commit: str) -> None:
    for number in range(10):
        got: list[int] = []
        start = threading.Barrier(4)

        def one(run: int, nonce: str = f"n{number}", got: list[int] = got, start: threading.Barrier = start) -> None:
            api = connect()
            start.wait()
            try:
                take_claim(api, Claim(nonce=nonce, run=run, attempt=1), commit=commit)
            except RefusedError:
                return
            got.append(run)

        threads = [threading.Thread(target=one, args=(run,)) for run in (1, 2, 3, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1
        assert holder_of(connect(), Claim(nonce=f"n{number}", run=0, attempt=1)) == Claim(
            nonce=f"n{number}", run=got[0], attempt=1
        )


@pytest.mark.parametrize("fault", ["done-502", "done-hang-up", "done-cut", "lost-502", "lost-hang-up"])
def test_a_lost_reply_is_looked_up(double: Server, api: GitHubApi, commit: str, fault: str) -> None:
    double.faults.order(fault, "POST", "git/refs")
    double.faults.order(fault, "POST", "git/tags")
    take_claim(api, FIRST, commit=commit)
    assert double.faults.fired[fault] == 2
    assert holder_of(api) == FIRST


@pytest.mark.parametrize("fault", ["done-502", "done-hang-up"])
def test_a_lost_reply_is_not_taken_for_a_win(double: Server, api: GitHubApi, commit: str, fault: str) -> None:
    take_claim(api, replace(FIRST, run=901), commit=commit)
    double.faults.order(fault, "POST", "git/refs")
    with pytest.raises(RefusedError, match="run 901"):
        take_claim(api, FIRST, commit=commit)


def test_what_cannot_be_found_out_is_no_claim(double: Server, api: GitHubApi, commit: str) -> None:
    for _ in range(20):
        double.faults.order("lost-502", "POST", "git/refs")
    with pytest.raises(GitHubError, match="not known"):
        take_claim(api, FIRST, commit=commit)
    assert holder_of(api) is None


def test_a_refusal_of_the_server_is_told_from_a_held_claim(api: GitHubApi) -> None:
    with pytest.raises(GitHubError, match="422"):
        take_claim(api, FIRST, commit="f" * 40)


@pytest.mark.parametrize("what", ["commit", "foreign-tag"])
def test_a_ref_that_is_not_ours_is_held(double: Server, api: GitHubApi, commit: str, what: str) -> None:
    kept = {"tag": "x", "message": "hello", "object": commit, "type": "commit", "date": 0.0}
    double.state.refs[f"refs/{CLAIMS}/{NONCE}"] = commit if what == "commit" else double.state.store("tag", kept)
    with pytest.raises(RefusedError, match="something else"):
        take_claim(api, FIRST, commit=commit)


def test_a_later_attempt_needs_an_authorisation(double: Server, api: GitHubApi, commit: str) -> None:
    workflow = double.state.add_workflow(".github/workflows/paid.yml")
    run = double.state.start(workflow, "workflow_dispatch", "refs/heads/main", double.state.users["alice"], {})
    first = Claim(nonce=NONCE, run=run.id, attempt=1)
    second = replace(first, attempt=2)
    take_claim(api, first, commit=commit)
    with pytest.raises(RefusedError, match="nobody has authorised"):
        take_claim(api, second, commit=commit)
    record = read_run(api, run.id, 1)
    assert authorise(api, record, NONCE) == second
    assert authorise(api, record, NONCE) == second
    take_claim(api, second, commit=commit)
    assert find_holder(api, f"{RERUNS}/{second.name}") is not None
    with pytest.raises(RefusedError, match="nobody has authorised"):
        take_claim(api, replace(first, attempt=3), commit=commit)
    # The authorisation of one run is none for another.
    with pytest.raises(RefusedError, match="nobody has authorised"):
        take_claim(api, replace(second, run=run.id + 1), commit=commit)
    with pytest.raises(RefusedError, match="has claimed"):
        authorise(api, replace(record, id=run.id + 1), NONCE)


def test_a_burned_claim_is_nobody_s(double: Server, api: GitHubApi, commit: str) -> None:
    workflow = double.state.add_workflow(".github/workflows/paid.yml")
    run = double.state.start(workflow, "workflow_dispatch", "refs/heads/main", double.state.users["alice"], {})
    assert burn(api, NONCE, commit=commit).burned
    assert burn(api, NONCE, commit=commit).burned
    for attempt in (1, 2):
        with pytest.raises(RefusedError):
            take_claim(api, Claim(nonce=NONCE, run=run.id, attempt=attempt), commit=commit)
    with pytest.raises(RefusedError, match="given up by the client"):
        authorise(api, read_run(api, run.id, 1), NONCE)
    assert not [ref for ref in double.state.refs if RERUNS in ref]


def test_what_a_run_has_claimed_is_not_burned(api: GitHubApi, commit: str) -> None:
    take_claim(api, FIRST, commit=commit)
    found = burn(api, NONCE, commit=commit)
    assert (found.burned, found.claim) == (False, FIRST)


def test_run_and_client_at_once(connect: Callable[..., GitHubApi], commit: str) -> None:
    for number in range(10):
        claim = replace(FIRST, nonce=f"n{number}")
        paid: list[bool] = []
        start = threading.Barrier(2)

        def pay(claim: Claim = claim, paid: list[bool] = paid, start: threading.Barrier = start) -> None:
            api = connect()
            start.wait()
            try:
                take_claim(api, claim, commit=commit)
            except RefusedError:
                paid.append(False)
            else:
                paid.append(True)

        thread = threading.Thread(target=pay)
        thread.start()
        start.wait()
        burned = burn(connect(), claim.nonce, commit=commit).burned
        thread.join()
        assert paid == [not burned]


@pytest.mark.parametrize("fault", ["done-502", "done-hang-up", "done-cut", "lost-502", "lost-hang-up"])
def test_a_lost_reply_to_a_burning_is_looked_up(double: Server, api: GitHubApi, commit: str, fault: str) -> None:
    double.faults.order(fault, "POST", "git/refs")
    double.faults.order(fault, "POST", "git/tags")
    assert burn(api, NONCE, commit=commit).burned
    assert double.faults.fired[fault] == 2


@pytest.mark.parametrize("fault", ["limit-403", "limit-429", "limit-429-bare"])
def test_a_limit_of_the_server_is_waited_for(double: Server, api: GitHubApi, commit: str, fault: str) -> None:
    before = double.state.clock.now()
    double.faults.order(fault, "POST", "git/refs")
    double.faults.order(fault, "POST", "git/tags")
    take_claim(api, FIRST, commit=commit)
    assert double.faults.fired == {fault: 2}
    assert double.state.clock.now() - before >= {"limit-403": 6, "limit-429": 4, "limit-429-bare": 120}[fault]


@pytest.mark.parametrize("fault", ["forbidden", "conflict", "limit-hour", "moved-elsewhere"])
def test_a_refusal_is_no_claim_and_is_told(double: Server, api: GitHubApi, commit: str, fault: str) -> None:
    for path in ("git/tags", "git/refs"):
        double.faults.order(fault, "POST", path)
        with pytest.raises(GitHubError) as caught:
            take_claim(api, FIRST, commit=commit)
        assert caught.value.problem.fix
    assert holder_of(api) is None


def test_a_replica_that_is_behind(double: Server, api: GitHubApi, commit: str) -> None:
    take_claim(api, replace(FIRST, run=901), commit=commit)
    for skip in (0, 0, 0):
        double.faults.order("stale-404", "GET", "git/ref/", skip=skip)
    with pytest.raises(RefusedError, match="run 901"):
        take_claim(api, FIRST, commit=commit)
    assert double.faults.fired == {"stale-404": 3}


def test_a_replica_that_never_has_what_was_created(double: Server, api: GitHubApi, commit: str) -> None:
    for _ in range(20):
        double.faults.order("stale-404", "GET", "git/ref/")
    with pytest.raises(GitHubError):
        take_claim(api, FIRST, commit=commit)


@pytest.mark.parametrize(
    "message",
    ["", "null", "[]", "7", '{"nonce": 1}', '{"nonce": "x", "run": true, "attempt": 1}', "[" * 5000,
     '{"nonce": "20261130t120000z-0123456789abcdef", "run": 900, "attempt": "1"}',
     '{"nonce": "20261130t120000z-0123456789abcdef", "run": 900.0, "attempt": 1}',
     '{"nonce": "20261130t120000z-0123456789abcdef", "run": 900, "attempt": 2}', "x" * 100_000],
)  # fmt: skip
def test_a_tag_that_somebody_else_wrote(double: Server, api: GitHubApi, commit: str, message: str) -> None:
    kept = {"tag": "x", "message": message, "object": commit, "type": "commit", "date": 0.0}
    double.state.refs[f"refs/{CLAIMS}/{NONCE}"] = double.state.store("tag", kept)
    with pytest.raises(RefusedError, match="has claimed"):
        take_claim(api, FIRST, commit=commit)


@pytest.mark.parametrize("what", ["commit", "tag-of-another", "garbage"])
def test_an_authorisation_that_is_none(double: Server, api: GitHubApi, commit: str, what: str) -> None:
    second = replace(FIRST, attempt=2)
    messages = {"tag-of-another": f'{{"nonce": "{NONCE}", "run": 901, "attempt": 2}}', "garbage": "x"}
    kept = {"tag": "x", "message": messages.get(what, ""), "object": commit, "type": "commit", "date": 0.0}
    name = commit if what == "commit" else double.state.store("tag", kept)
    double.state.refs[f"refs/{RERUNS}/{second.name}"] = name
    with pytest.raises(RefusedError, match="nobody has authorised"):
        take_claim(api, second, commit=commit)


def run_record(**changes: Any) -> RunRecord:
    alice = Account(id=11, login="alice", kind="User")
    return replace(
        RunRecord(
            id=900, attempt=1, event="workflow_dispatch", status="in_progress", path=".github/workflows/p.yml",
            head_branch="main", head_sha="a" * 40, repository="octo/evals", repository_id=5, head_repository_id=5,
            title="Paid", created_at="2026-11-30T12:00:00Z",
            actor=alice, triggering_actor=alice,
        ),
        **changes,
    )  # fmt: skip


@pytest.mark.parametrize(
    "nonce",
    ["manual-901", "schedule-901", f"{NONCE}-2", f"{NONCE}/../x", f"x {NONCE}", NONCE.upper(), "0" * 40, "*", "\x00",
     NONCE.replace("2", "\uff12"), NONCE.replace("2026", "\u0662\u0660\u0662\u0666"),
     "20261399t120000z-0123456789abcdef"],
)  # fmt: skip
def test_a_nonce_that_nobody_makes(nonce: str) -> None:
    with pytest.raises(RefusedError, match="no valid form"):
        claim_of(run_record(), nonce)


def test_the_claim_of_a_run() -> None:
    assert claim_of(run_record(), NONCE) == FIRST
    assert claim_of(run_record(attempt=3), NONCE).name == f"{NONCE}-3"
    assert claim_of(run_record(event="schedule"), NONCE).nonce == "schedule-900"
    assert claim_of(run_record(), "").nonce == "manual-900"
    for text in ("soon", "2026-11-30T12:00:00", ""):
        with pytest.raises(GitHubError, match="for a time"):
            claim_of(run_record(created_at=text), NONCE)


@pytest.mark.parametrize("title", ["", " ", "Paid 901", "Paid schedule-900", f"Paid {NONCE}-2", f"Paid {NONCE}x"])
def test_a_name_without_a_nonce(title: str) -> None:
    with pytest.raises(RefusedError, match="ends with no nonce"):
        nonce_of(run_record(title=title))


def test_the_nonce_in_a_name() -> None:
    assert nonce_of(run_record(title=f"Paid {NONCE}")) == NONCE
    assert nonce_of(run_record(title="Paid 900")) == "manual-900"
    assert nonce_of(run_record(title=f"Paid {NONCE}", event="schedule")) == "schedule-900"


@given(st.integers(1, 10**12), st.integers(1, 50), st.integers(1, 10**12), st.integers(1, 50))
def test_no_two_claims_have_one_name(run: int, attempt: int, other: int, other_attempt: int) -> None:
    """Whatever the kind of their nonces, two claims share a name only where they are one."""
    names: dict[str, Claim] = {}
    for number, time in ((run, attempt), (other, other_attempt)):
        for record, nonce in (
            (run_record(id=number, attempt=time), NONCE[:-1] + str(number % 10)),
            (run_record(id=number, attempt=time), ""),
            (run_record(id=number, attempt=time, event="schedule"), ""),
        ):
            claim = claim_of(record, nonce)
            held = names.setdefault(claim.name, claim)
            assert (held.nonce, held.attempt) == (claim.nonce, claim.attempt)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no claim"),
        ("null", "no claim"),
        (f"{NONCE}:900", "no claim"),
        (f"{NONCE}:900:1:2", "no claim"),
        (f"{NONCE}:\u0669\u0660\u0660:1", "no claim"),
        (f"{NONCE}:0900:1", "no claim"),
        (f"{NONCE}:900:1\n{NONCE}:901:1", "no claim"),
        (f"{NONCE}:900:{'1' * 5000}", "no claim"),
        (f"{NONCE}:900:2", "attempt 2"),
        (f"{NONCE}:901:1", "run 901"),
    ],
)
def test_a_job_without_the_claim_of_its_attempt(text: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        check_claim(text, run="900", attempt="1")


def test_a_job_with_its_claim() -> None:
    assert check_claim(f"{FIRST}\n", run="900", attempt="1") == FIRST
