"""The shared ledger against a double of GitHub: who meets whom, what gets lost, what is damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from runner_e2e.dispatch.money import BudgetError
from runner_e2e.dispatch.shared_ledger import BRANCH, Caps, Entry, SharedLedger
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.github_double.server import Server

    from runner_e2e.dispatch.github_api import GitHubApi

REF = f"refs/heads/{BRANCH}"
DAY = 86_400.0
DOLLAR = 1_000_000


def entry(number: int = 0, **changes: Any) -> Entry:
    return replace(
        Entry(
            key=f"c-20261127t120000z-0123abcd/{number}/1", campaign="c-20261127t120000z-0123abcd", owner="alice/1f2e",
            nonce=f"n{number}", cells=2, reserved=3 * DOLLAR,
        ), **changes,
    )  # fmt: skip


@pytest.fixture
def ledger(api: GitHubApi) -> SharedLedger:
    return SharedLedger(api)


def file(double: Server, name: str) -> Any:
    """A file of the branch, as it lies there."""
    return json.loads(double.state.objects[double.state.files(BRANCH)[name]]["content"])


def month(double: Server, name: str = "2026-11.json") -> list[Entry]:
    """The entries that lie in a file."""
    return [Entry(**each) for each in file(double, name)["entries"]]


def test_what_is_not_there_has_no_caps_and_reading_makes_nothing(double: Server, ledger: SharedLedger) -> None:
    assert not ledger.exists()
    assert ledger.caps() == Caps()
    assert (ledger.spent("day"), ledger.spent("month")) == (0, 0)
    assert ledger.entries("c") == ()
    assert ledger.of_nonce("n") is None
    ledger.release(["unknown"])
    assert REF not in double.state.refs
    assert not double.requests("POST") + double.requests("PUT")


def test_the_first_reservation_makes_the_ledger_on_a_branch_of_its_own(double: Server, ledger: SharedLedger) -> None:
    ledger.reserve([entry(0), entry(1)])
    commits = []
    sha = double.state.refs[REF]
    while sha:
        commits.append(double.state.objects[sha])
        sha = next(iter(commits[-1]["parents"]), "")
    assert [each["message"] for each in commits] == [
        "Reserve $6.00 for c-20261127t120000z-0123abcd",
        "Begin the ledger",
    ]
    assert sorted(double.state.files(BRANCH)) == ["2026-11.json", "README.md", "caps.json"]
    assert month(double) == [entry(0, day="2026-11-30"), entry(1, day="2026-11-30")]
    assert file(double, "caps.json") == {"schema": "runner-e2e.caps/v1", "campaign": None, "day": None, "month": None}
    assert ledger.spent("day") == ledger.spent("month") == 6 * DOLLAR
    # The files of the default branch are untouched.
    assert sorted(double.state.files("main")) == ["README.md"]


def test_a_reservation_takes_few_requests(double: Server, ledger: SharedLedger) -> None:
    ledger.reserve([entry(0)])
    double.log.clear()
    ledger.reserve([entry(1)])
    assert [each.verb for each in double.log] == ["GET", "GET", "PUT"]


def test_what_stands_is_not_reserved_again(double: Server, ledger: SharedLedger, api: GitHubApi) -> None:
    ledger.set_caps(day=5 * DOLLAR)
    ledger.reserve([entry(0)])
    before = double.state.refs[REF]
    ledger.reserve([entry(0)])
    SharedLedger(api).reserve([entry(0)])  # after a crash
    assert double.state.refs[REF] == before


def test_the_caps_hold_and_say_the_arithmetic(double: Server, ledger: SharedLedger) -> None:
    ledger.set_caps(campaign=20 * DOLLAR, day=10 * DOLLAR, month=8 * DOLLAR)
    ledger.reserve([entry(0), entry(1)])
    ledger.settle([(entry(0).key, 4 * DOLLAR, 77)])
    before = double.state.refs[REF]
    with pytest.raises(BudgetError) as caught:
        ledger.reserve([entry(2), entry(3)])
    assert double.state.refs[REF] == before
    assert [each.what for each in caught.value.problems] == [
        "$6.00 more would pass the cap of 2026-11-30, $10.00",
        "$6.00 more would pass the cap of 2026-11, $8.00",
    ]
    assert caught.value.problem.why == "$4.00 spent + $3.00 reserved + $6.00 = $13.00, which is $3.00 more than it"
    with pytest.raises(BudgetError, match=r"the plan of c-20261127t120000z-0123abcd has, \$7\.50"):
        ledger.reserve([entry(2, reserved=DOLLAR)], max_cost=7_500_000)
    ledger.reserve([entry(2, reserved=DOLLAR)], max_cost=8 * DOLLAR)  # to the last cent
    with pytest.raises(BudgetError):
        ledger.reserve([entry(3, reserved=1)])


def test_unknown_is_never_taken_for_zero(ledger: SharedLedger) -> None:
    unknown = entry(9, campaign="run-9", key="run-9", reserved=None)
    ledger.reserve([unknown])  # without a cap it may
    ledger.set_caps(day=10 * DOLLAR)
    with pytest.raises(BudgetError, match="what this costs is not known"):
        ledger.reserve([entry(0, reserved=None)])
    with pytest.raises(BudgetError, match="nobody knows what 1 reservation under it will cost"):
        ledger.reserve([entry(0)])
    ledger.settle([("run-9", DOLLAR, 9)])
    ledger.reserve([entry(0)])
    assert ledger.spent("day") == 4 * DOLLAR


def test_two_operators_do_not_start_one_campaign(ledger: SharedLedger) -> None:
    ledger.reserve([entry(0)])
    with pytest.raises(RefusedError, match="alice/1f2e has started c-20261127t120000z-0123abcd already, on 2026-11-30"):
        ledger.reserve([entry(1, owner="bob/9c8b")])
    ledger.release([entry(0).key])
    ledger.reserve([entry(1, owner="bob/9c8b")])  # alice has given it up


def test_the_life_of_a_reservation(double: Server, ledger: SharedLedger) -> None:
    ledger.reserve([entry(0), entry(1), entry(2)])
    ledger.renew({entry(0).key: "m0"})
    ledger.reserve([entry(1, nonce="m1")])  # an older nonce that was never sent is taken over
    ledger.settle([(entry(0).key, 5 * DOLLAR, 77), (entry(1).key, None, 78)])
    ledger.settle([(entry(0).key, None, None)])  # who knows nothing changes nothing
    ledger.release([entry(2).key, "unknown"])
    assert month(double) == [
        entry(0, day="2026-11-30", nonce="m0", state="settled", charged=5 * DOLLAR, run=77),
        entry(1, day="2026-11-30", nonce="m1", run=78),
        entry(2, day="2026-11-30", state="released"),
    ]
    assert ledger.spent("day") == 8 * DOLLAR
    ledger.reserve([entry(2, nonce="again")])
    assert month(double)[2] == entry(2, day="2026-11-30", nonce="again")
    with pytest.raises(RefusedError, match=r"it has cost \$5\.00"):
        ledger.release([entry(0).key])
    with pytest.raises(RefusedError, match="it is settled under another nonce, by run 77"):
        ledger.reserve([entry(0, nonce="x")])
    with pytest.raises(RefusedError, match="nothing is reserved as c-1/0/1"):
        ledger.settle([("c-1/0/1", 1, 1)])


def test_a_reservation_counts_in_the_month_in_which_it_was_made(double: Server, ledger: SharedLedger) -> None:
    ledger.set_caps(campaign=7 * DOLLAR, month=4 * DOLLAR)
    ledger.reserve([entry(0)])
    double.state.clock.sleep(3 * DAY)  # the third of December
    with pytest.raises(BudgetError) as caught:
        ledger.reserve([entry(1, reserved=4 * DOLLAR + 1)])
    # Of the campaign 3 of 7 are taken, whatever the month; of December nothing.
    assert len(caught.value.problems) == 2
    assert caught.value.problem.why.startswith("$0.00 spent + $3.00 reserved + $4.000001")
    assert caught.value.problems[1].why.startswith("$0.00 spent + $0.00 reserved")
    ledger.reserve([entry(1, reserved=4 * DOLLAR)])
    ledger.reserve([entry(0)])  # stands, in November
    ledger.settle([(entry(0).key, DOLLAR, 5), (entry(1).key, 2 * DOLLAR, 6)])
    assert [(each.day, each.charged) for each in month(double)] == [("2026-11-30", DOLLAR)]
    assert [(each.day, each.charged) for each in month(double, "2026-12.json")] == [("2026-12-03", 2 * DOLLAR)]
    assert ledger.spent("month") == 2 * DOLLAR
    assert [each.charged for each in ledger.entries(entry(0).campaign)] == [DOLLAR, 2 * DOLLAR]


def test_the_day_is_that_of_github(double: Server, connect: Callable[..., GitHubApi]) -> None:
    ledger = SharedLedger(connect())
    ledger.set_caps(day=3 * DOLLAR)
    ledger.reserve([entry(0)])
    double.state.clock.sleep(DAY)
    ledger.reserve([entry(1)])
    assert [each.day for each in month(double)] == ["2026-11-30"]
    assert [each.day for each in month(double, "2026-12.json")] == ["2026-12-01"]


def test_a_file_of_more_than_a_megabyte(double: Server, ledger: SharedLedger, api: GitHubApi) -> None:
    many = [entry(number, key=f"run-{number}", nonce=f"n{number}") for number in range(6000)]
    ledger.reserve(many)
    assert len(double.state.objects[double.state.files(BRANCH)["2026-11.json"]]["content"]) > 1024 * 1024
    ledger.settle([("run-5999", 1, 1)])
    assert SharedLedger(api).of_nonce("n5999") == replace(many[-1], day="2026-11-30", state="settled", charged=1, run=1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\xff", "is not UTF-8"),
        (b"[]", "holds no JSON object"),
        (b'{"schema": "runner-e2e.shared-ledger/v2"}', "of another version"),
        (b'{"schema": "x"}', "not of the schema"),
        (b'{"schema": "runner-e2e.shared-ledger/v1", "month": "2026-10", "entries": []}', "another month"),
        (b'{"schema": "runner-e2e.shared-ledger/v1", "month": "2026-11", "entries": [], "more": 1}', "unknown field"),
        (b'{"schema": "runner-e2e.shared-ledger/v1", "month": "2026-11", "entries": [{}]}', "has no entries"),
    ],
)
def test_a_damaged_month_is_refused_and_left_alone(
    double: Server, ledger: SharedLedger, content: bytes, said: str
) -> None:
    ledger.reserve([entry(0)])
    sha = double.state.files(BRANCH)["2026-11.json"]
    double.state.write_file("2026-11.json", BRANCH, content, "by hand", sha)
    before = double.state.refs[REF]
    with pytest.raises(RefusedError, match=said) as caught:
        ledger.reserve([entry(1)])
    assert str(caught.value.problem.place) == f"{BRANCH}:2026-11.json"
    with pytest.raises(RefusedError):
        ledger.settle([(entry(0).key, 1, 1)])
    assert double.state.refs[REF] == before


@pytest.mark.parametrize(
    "change",
    [{"day": "2026-10-01"}, {"charged": 1}, {"state": "settled"}, {"reserved": -1}, {"reserved": 1.5}, {"cells": None},
     {"key": "a b"}, {"state": "gone"}, {"owner": ""}, {"more": 1}],
)  # fmt: skip
def test_a_damaged_entry_is_refused(double: Server, ledger: SharedLedger, change: dict[str, Any]) -> None:
    ledger.reserve([entry(0)])
    found = file(double, "2026-11.json")
    found["entries"][0] |= change
    sha = double.state.files(BRANCH)["2026-11.json"]
    double.state.write_file("2026-11.json", BRANCH, json.dumps(found).encode(), "by hand", sha)
    with pytest.raises(RefusedError, match=r"the shared ledger cannot be used: 2026-11\.json has"):
        ledger.spent("day")


def test_damaged_caps_are_no_caps_that_allow_everything(double: Server, ledger: SharedLedger) -> None:
    ledger.set_caps(day=1)
    sha = double.state.files(BRANCH)["caps.json"]
    double.state.write_file("caps.json", BRANCH, b"{", "by hand", sha)
    with pytest.raises(RefusedError, match=r"caps\.json is not JSON"):
        ledger.reserve([entry(0)])


def test_somebody_elses_branch_is_left_alone(double: Server, ledger: SharedLedger) -> None:
    double.state.refs[REF] = double.state.refs["refs/heads/main"]
    for act in (lambda: ledger.reserve([entry(0)]), lambda: ledger.set_caps(day=1), ledger.caps):
        with pytest.raises(RefusedError, match="is no ledger"):
            act()
    assert double.state.refs[REF] == double.state.refs["refs/heads/main"]


def test_a_tag_of_the_same_name_is_not_the_branch(double: Server, ledger: SharedLedger) -> None:
    double.state.refs[f"refs/tags/{BRANCH}"] = double.state.refs["refs/heads/main"]
    ledger.reserve([entry(0)])
    assert ledger.spent("day") == 3 * DOLLAR


def test_a_branch_that_seems_to_be_missing_is_looked_for(double: Server, ledger: SharedLedger) -> None:
    ledger.set_caps(day=1)
    double.faults.order("stale-404", "GET", "contents")
    with pytest.raises(BudgetError):
        ledger.reserve([entry(0)])
    assert double.faults.fired == {"stale-404": 1}
    for _ in range(5):
        double.faults.order("stale-404", "GET", "contents")
    with pytest.raises(GitHubError, match="exists and cannot be read"):
        ledger.caps()
