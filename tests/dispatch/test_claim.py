"""Of everything that carries one nonce, one attempt of one run may pay, whatever the network does."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from runner_e2e.dispatch.claim import CLAIMS, RERUNS, Claim, authorise, check_claim, find_holder, take_claim
from runner_e2e.dispatch.records import read_run
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
    with pytest.raises(RefusedError, match="is authorised for"):
        authorise(api, replace(record, id=run.id + 1), NONCE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no claim"),
        ("null", "no claim"),
        (f"{NONCE}:900", "no claim"),
        (f"{NONCE}:900:1:2", "no claim"),
        (f"{NONCE}:900:2", "attempt 2"),
        (f"{NONCE}:901:1", "run 901"),
    ],
)
def test_a_job_without_the_claim_of_its_attempt(text: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        check_claim(text, run="900", attempt="1")


def test_a_job_with_its_claim() -> None:
    assert check_claim(f"{FIRST}\n", run="900", attempt="1") == FIRST
