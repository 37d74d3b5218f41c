"""Many who reserve at once, and networks that lose replies: the caps hold, and nothing is kept twice or lost."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.github_double.crash import CrashError, crashing
from tests.github_double.turns import Task

from runner_e2e.dispatch.github_api import GitHubApi, Limits
from runner_e2e.dispatch.money import BudgetError
from runner_e2e.dispatch.shared_ledger import BRANCH, Entry, SharedLedger
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.github_double.server import Server

DOLLAR = 1_000_000
CAP = 10 * DOLLAR
# What a change gets over by itself.
OVERCOME = ("lost-502", "lost-hang-up", "done-502", "done-500", "done-hang-up", "done-cut", "limit-403", "limit-429",
            "limit-429-bare", "late-list", "duplicate")  # fmt: skip
# What may end it with an error, since GitHub says something that is not so.
OTHERS = ("html", "forbidden", "conflict", "invalid", "stale-404", "stale-304", "moved-elsewhere", "limit-hour")


def entry(number: int, reserved: int = DOLLAR, **changes: Any) -> Entry:
    given: dict[str, Any] = {
        "key": f"run-{number}", "campaign": f"run-{number}", "owner": f"run-{number}", "nonce": f"n{number}",
        "cells": 1, "reserved": reserved,
    }  # fmt: skip
    return Entry(**{**given, **changes})


def kept(double: Server) -> list[Entry]:
    """What lies in all files of the ledger, read past the code under test."""
    files = double.state.files(BRANCH)
    names = sorted(name for name in files if name[:2] == "20")
    read = [json.loads(double.state.objects[files[name]]["content"]) for name in names]
    return [Entry(**each) for document in read for each in document["entries"]]


@pytest.fixture
def quick(double: Server) -> Server:
    double.validating = False
    return double


def client(double: Server, limits: Limits | None = None) -> SharedLedger:
    limits = limits or Limits(wait=double.state.clock.sleep)
    return SharedLedger(
        GitHubApi(repository="octo/evals", token="token-of-alice", url=double.url, limits=limits, timeout=60)
    )


def interleaved(double: Server, seed: int, work: list[Callable[[SharedLedger], None]]) -> None:
    """Gives turns to clients, one request each, in an order that *seed* decides, until all are done."""
    tasks: list[Task] = []
    for each in work:

        def do(each: Callable[[SharedLedger], None] = each, number: int = len(tasks)) -> None:
            def pause() -> None:
                tasks[number].pause()

            def wait(seconds: float) -> None:
                double.state.clock.sleep(seconds)
                pause()

            each(client(double, Limits(before=lambda _: pause(), wait=wait)))

        tasks.append(Task(do))
    order = random.Random(seed)
    while left := [task for task in tasks if not task.done]:
        order.choice(left).turn()


@pytest.mark.parametrize("seed", range(8))
def test_who_reserve_at_once_never_pass_the_cap(quick: Server, seed: int) -> None:
    client(quick).set_caps(day=CAP)
    got: list[int] = []

    def reserve(number: int) -> Callable[[SharedLedger], None]:
        def work(ledger: SharedLedger) -> None:
            try:
                ledger.reserve([entry(number, 3 * DOLLAR)])
            except BudgetError:
                return
            got.append(number)

        return work

    interleaved(quick, seed, [reserve(number) for number in range(6)])
    # Three fit, and three get in: nobody is refused for what somebody else only tried.
    assert len(got) == 3
    assert sorted(each.key for each in kept(quick)) == sorted(f"run-{number}" for number in got)


@pytest.mark.parametrize("seed", range(8))
def test_all_kinds_of_changes_at_once_lose_none(quick: Server, seed: int) -> None:
    first = client(quick)
    first.reserve([entry(number) for number in range(4)])
    work: list[Callable[[SharedLedger], None]] = [
        lambda ledger: ledger.settle([("run-0", 5, 70)]),
        lambda ledger: ledger.release(["run-1"]),
        lambda ledger: ledger.renew({"run-2": "m2"}),
        lambda ledger: ledger.reserve([entry(8)]),
        lambda ledger: ledger.reserve([entry(9)]),
        lambda ledger: ledger.settle([("run-3", None, 73)]),
    ]
    interleaved(quick, seed, work)
    found = {each.key: (each.state, each.charged, each.nonce, each.run) for each in kept(quick)}
    assert found == {
        "run-0": ("settled", 5, "n0", 70), "run-1": ("released", None, "n1", None),
        "run-2": ("reserved", None, "m2", None), "run-3": ("reserved", None, "n3", 73),
        "run-8": ("reserved", None, "n8", None), "run-9": ("reserved", None, "n9", None),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_the_ledger_is_made_once(quick: Server, seed: int) -> None:
    interleaved(quick, seed, [lambda ledger, n=n: ledger.reserve([entry(n)]) for n in range(4)])  # type: ignore[misc]
    assert len(kept(quick)) == 4
    roots = [each for each in quick.state.objects.values() if each["kind"] == "commit" and not each["parents"]]
    sha = quick.state.refs[f"refs/heads/{BRANCH}"]
    while quick.state.objects[sha]["parents"]:
        (sha,) = quick.state.objects[sha]["parents"]
    assert quick.state.objects[sha]["message"] == "Begin the ledger"
    assert roots


@pytest.mark.parametrize("seed", range(6))
def test_twins_of_one_nonce_reserve_once(quick: Server, seed: int) -> None:
    client(quick).set_caps(day=CAP)
    got: list[str] = []

    def work(number: int) -> Callable[[SharedLedger], None]:
        def reserve(ledger: SharedLedger) -> None:
            stands = ledger.reserve_for_nonce(entry(number, nonce="one"))
            assert stands is not None
            got.append(stands.key)

        return reserve

    interleaved(quick, seed, [work(number) for number in range(3)])
    assert len(set(got)) == len(kept(quick)) == 1


@pytest.mark.parametrize("seed", range(4))
def test_two_operators_with_one_campaign(quick: Server, seed: int) -> None:
    ends: list[str] = []

    def work(owner: str) -> Callable[[SharedLedger], None]:
        def reserve(ledger: SharedLedger) -> None:
            shards = [entry(n, key=f"c-1/{n}/1", campaign="c-1", owner=owner, nonce=f"{owner}{n}") for n in range(2)]
            try:
                ledger.reserve(shards)
            except RefusedError:
                ends.append("refused")
            else:
                ends.append(owner)

        return reserve

    interleaved(quick, seed, [work("alice/1"), work("bob/2")])
    assert sorted(ends)[1] == "refused"
    assert {each.owner for each in kept(quick)} == {min(ends)}


# One of each kind of change, the first on a ledger that is not there yet.
CHANGES: tuple[Callable[[SharedLedger], object], ...] = (
    lambda ledger: ledger.reserve([entry(1), entry(2), entry(3)]),
    lambda ledger: ledger.set_caps(day=CAP),
    lambda ledger: ledger.renew({"run-1": "m1"}),
    lambda ledger: ledger.reserve([entry(2, nonce="m2"), entry(4)]),
    lambda ledger: ledger.settle([("run-1", 5, 71), ("run-2", None, 72)]),
    lambda ledger: ledger.release(["run-3"]),
    lambda ledger: ledger.reserve_for_nonce(entry(5)),
)


class Steps:
    """The changes one after the other: the refs before each, what lies in the ledger after it, and its requests."""

    def __init__(self, double: Server) -> None:
        self.double = double
        self.before: list[dict[str, str]] = []
        self.after: list[list[Entry]] = []
        self.requests: list[int] = []
        for change in CHANGES:
            # Objects are never changed, so the refs are all of a state.
            self.before.append(dict(double.state.refs))
            made = len(double.log)
            change(client(double))
            self.requests.append(len(double.log) - made)
            self.after.append(kept(double))

    def each_request(self) -> Iterator[tuple[int, int]]:
        """Step and request (from 0) for every request that there is, each on the state before its step."""
        for step, requests in enumerate(self.requests):
            for number in range(requests):
                self.double.state.refs = dict(self.before[step])
                yield step, number


def test_what_the_steps_come_to(quick: Server) -> None:
    steps = Steps(quick)
    assert [(each.key, each.state, each.charged, each.nonce, each.run) for each in steps.after[-1]] == [
        ("run-1", "settled", 5, "m1", 71),
        ("run-2", "reserved", None, "m2", 72),
        ("run-3", "released", None, "n3", None),
        ("run-4", "reserved", None, "n4", None),
        ("run-5", "reserved", None, "n5", None),
    ]  # fmt: skip
    # Look, read caps and month where they are new, write; the first one makes the branch as well.
    assert steps.requests[0] == 8
    assert max(steps.requests[1:]) <= 7
    assert sum(steps.requests) < 40


@pytest.mark.parametrize("fault", OVERCOME)
def test_a_fault_at_every_request_changes_nothing(quick: Server, fault: str) -> None:
    steps = Steps(quick)
    for step, number in steps.each_request():
        quick.faults.order(fault, "", "", skip=number)
        CHANGES[step](client(quick))
        assert kept(quick) == steps.after[step], (step, number)
    assert quick.faults.fired == {fault: sum(steps.requests)}


@pytest.mark.parametrize("fault", OTHERS)
def test_a_fault_that_misleads_ends_clearly_and_the_same_again_is_right(quick: Server, fault: str) -> None:
    steps = Steps(quick)
    ended = 0
    for step, number in steps.each_request():
        quick.faults.order(fault, "", "", skip=number)
        try:
            CHANGES[step](client(quick))
        except (GitHubError, RefusedError):
            ended += 1
            CHANGES[step](client(quick))
        assert kept(quick) == steps.after[step], (step, number)
    assert quick.faults.fired == {fault: sum(steps.requests)}
    assert ended


@pytest.mark.parametrize("sent", [False, True])
def test_after_a_crash_at_any_request_the_same_again_is_right(quick: Server, sent: bool) -> None:
    steps = Steps(quick)
    for step, number in steps.each_request():
        with pytest.raises(CrashError):
            CHANGES[step](client(quick, crashing(Limits(wait=quick.state.clock.sleep), at=number + 1, sent=sent)))
        CHANGES[step](client(quick))
        assert kept(quick) == steps.after[step], (step, number)


@pytest.mark.parametrize("seed", range(6))
def test_a_storm(quick: Server, seed: int) -> None:
    client(quick).set_caps(day=CAP)
    quick.faults.at_random(seed, 0.15, OVERCOME)
    got: list[int] = []

    def reserve(number: int) -> Callable[[SharedLedger], None]:
        def work(ledger: SharedLedger) -> None:
            try:
                ledger.reserve([entry(number, 3 * DOLLAR)])
            except (BudgetError, GitHubError):
                return
            got.append(number)

        return work

    interleaved(quick, seed, [reserve(number) for number in range(6)])
    assert sum(quick.faults.fired.values()) > 2
    found = {each.key for each in kept(quick)}
    assert {f"run-{number}" for number in got} <= found
    assert sum(each.reserved or 0 for each in kept(quick)) <= CAP


def test_a_branch_that_rules_protect(quick: Server) -> None:
    ledger = client(quick)
    ledger.reserve([entry(1)])
    quick.state.write_protected[BRANCH] = (
        "Repository rule violations found\n\nChanges must be made through a pull request."
    )
    before = len(quick.log)
    with pytest.raises(GitHubError, match="rules of the repository protect the branch runner-e2e-ledger") as caught:
        ledger.reserve([entry(2)])
    assert "Changes must be made through a pull request" in caught.value.problem.why
    assert len(quick.log) - before == 3  # no try is repeated
    assert [each.key for each in kept(quick)] == ["run-1"]


@pytest.mark.parametrize("status", [404, 409, 422])
def test_a_refusal_that_is_no_conflict_does_not_go_on_for_ever(quick: Server, status: int) -> None:
    ledger = client(quick)
    ledger.reserve([entry(1)])
    name = {404: "stale-404", 409: "conflict", 422: "invalid"}[status]
    for _ in range(20):
        quick.faults.order(name, "PUT", "contents")
    before = len(quick.log)
    with pytest.raises(GitHubError, match=rf"does not take a change of the branch {BRANCH} \({status}\)"):
        ledger.reserve([entry(2)])
    assert len(quick.log) - before < 20


def test_a_token_that_may_only_read(quick: Server) -> None:
    ledger = client(quick)
    ledger.reserve([entry(1)])
    quick.faults.order("forbidden", "PUT", "contents")
    with pytest.raises(GitHubError, match=r"\(403\)") as caught:
        ledger.reserve([entry(2)])
    assert "contents: write" in caught.value.problem.fix


def test_a_limit_of_an_hour_is_told_as_one(quick: Server) -> None:
    ledger = client(quick)
    ledger.reserve([entry(1)])
    quick.faults.order("limit-hour", "PUT", "contents")
    with pytest.raises(GitHubError, match="limits the calls of this token"):
        ledger.reserve([entry(2)])


def test_the_month_changes_between_two_tries(quick: Server) -> None:
    """The reply of the first try is lost, and the second one is made in December: it stands in November, once."""
    ledger = client(quick)
    ledger.set_caps(month=CAP)
    quick.state.clock.sleep(86_400 - (quick.state.clock.now() % 86_400) - 1)  # the last second of November
    quick.faults.order("done-502", "PUT", "2026-11")
    ledger.reserve([entry(1)])
    quick.state.clock.sleep(1)
    ledger.reserve([entry(2)])
    ledger.renew({"run-1": "m1", "run-2": "m2"})
    ledger.settle([("run-1", 1, 71), ("run-2", 2, 72)])
    assert [(each.day, each.nonce, each.charged) for each in kept(quick)] == [
        ("2026-11-30", "m1", 1), ("2026-12-01", "m2", 2),
    ]  # fmt: skip
