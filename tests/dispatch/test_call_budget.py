"""The budget around real requests: what is waited for, what is refused before it is sent, what a kill leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.github_double import routes, server
from tests.github_double.routes import Reply

from runner_e2e.dispatch.call_budget import CallBudget, LimitedError, MemoryStore
from runner_e2e.dispatch.github_api import GitHubApi, UnknownOutcomeError
from runner_e2e.dispatch.ledger import open_ledger
from runner_e2e.errors import GitHubError, RunnerE2EError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.github_double.server import Server

TOKEN = "token-of-alice"
DISPATCHES = "actions/workflows/paid.yml/dispatches"


@pytest.fixture(autouse=True)
def workflow(double: Server) -> None:
    double.state.add_workflow(".github/workflows/paid.yml", inputs={"nonce": True}, run_name="Paid ${{ inputs.nonce }}")


class Client:
    """A client of the double with a budget; its waits move the double's clock and are counted."""

    def __init__(self, double: Server, store: Any, **changes: Any) -> None:
        self.waits: list[float] = []
        self.said: list[str] = []
        self.clock = double.state.clock

        def wait(seconds: float) -> None:
            self.waits.append(seconds)
            self.clock.sleep(seconds)

        self.budget = CallBudget(
            store, token=TOKEN, url=double.url,
            **{"now": self.clock.now, "wait": wait, "say": self.said.append, **changes},
        )  # fmt: skip
        self.api = GitHubApi(
            repository="octo/evals", token=TOKEN, url=double.url, timeout=60, limits=self.budget.limits()
        )

    def dispatch(self, nonce: str = "n") -> None:
        self.api.send("POST", DISPATCHES, {"ref": "main", "inputs": {"nonce": nonce}})


@pytest.fixture
def client(double: Server) -> Callable[..., Client]:
    store = MemoryStore()
    return lambda **changes: Client(double, changes.pop("store", store), **changes)


def limits(double: Server, monkeypatch: pytest.MonkeyPatch, *, limit: int = 1000, used: int = 0) -> list[int]:
    """Lets the double count calls as GitHub does: conditions that hold are free, the hour ends. Returns the count."""
    real, count, ends = routes.answer, [used], [double.state.clock.now() + 3600]

    def counted(state: Any, request: Any) -> Reply:
        now = state.clock.now()
        if now >= ends[0]:
            count[0], ends[0] = 0, now + 3600
        headers = {"X-RateLimit-Limit": str(limit), "X-RateLimit-Reset": str(int(ends[0]))}
        if count[0] >= limit:
            return Reply(status=403, data={"message": "API rate limit exceeded"},
                         headers={**headers, "X-RateLimit-Remaining": "0"})  # fmt: skip
        count[0] += "if-none-match" not in request.headers
        reply = real(state, request)
        reply.headers.update({**headers, "X-RateLimit-Remaining": str(limit - count[0])})
        return reply

    monkeypatch.setattr(server, "answer", counted)
    return count


@pytest.mark.parametrize(("fault", "seconds"), [("limit-403", 3), ("limit-429", 2), ("limit-429-bare", 60)])
def test_a_read_waits_for_a_limit_and_goes_on(
    double: Server, client: Callable[..., Client], fault: str, seconds: float
) -> None:
    one = client()
    double.faults.order(fault, "GET", "evals$")
    assert one.api.get("").status == 200
    assert sum(one.waits) == pytest.approx(seconds)
    assert len(double.log) == 2


def test_a_server_that_asks_for_a_long_pause_gets_it(
    double: Server, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = client()
    replies = [Reply(status=503, data={}, headers={"Retry-After": "300"}), Reply(data={"id": 5})]
    monkeypatch.setattr(server, "answer", lambda *_: replies.pop(0))
    assert one.api.get("").status == 200
    assert sum(one.waits) == pytest.approx(300)
    assert "answered 503 and asked for a pause" in one.said[0]


def test_a_limit_that_only_the_text_tells(
    double: Server, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = client()
    said = {"message": "You have exceeded a secondary rate limit and have been temporarily blocked"}
    replies = [Reply(status=403, data=said), Reply(data={"id": 5})]
    monkeypatch.setattr(server, "answer", lambda *_: replies.pop(0))
    with pytest.raises(GitHubError, match="limits the calls"):
        one.dispatch()
    assert one.waits == []
    assert one.api.get("").status == 200
    assert sum(one.waits) == pytest.approx(60)


def test_a_limit_that_one_client_met_is_waited_for_by_the_next(double: Server, client: Callable[..., Client]) -> None:
    """The pause is stored when the answer comes, not when it is over."""
    one, two = client(), client()
    double.faults.order("limit-429-bare", "POST", "dispatches")
    with pytest.raises(GitHubError, match="limits the calls"):
        one.dispatch()
    assert two.budget.rate().until == pytest.approx(double.state.clock.now() + 60)
    two.dispatch()
    assert sum(two.waits) == pytest.approx(60)
    assert "waiting 60 s: a secondary limit" in two.said[0]
    assert len(double.state.runs) == 1


def test_patience_ends_before_anything_is_sent(double: Server, client: Callable[..., Client]) -> None:
    one = client(patience=30)
    double.faults.order("limit-429-bare", "GET", "evals$")
    for do in (lambda: one.api.get(""), one.dispatch, lambda: one.api.limits.ready("POST")):
        with pytest.raises(LimitedError, match="no call with this token before 2026") as caught:
            do()
        assert not isinstance(caught.value, UnknownOutcomeError)
        assert caught.value.until == pytest.approx(double.state.clock.now() + 60)
    assert len(double.log) == 1
    assert one.waits == []


def test_waits_add_up_to_the_patience(double: Server, client: Callable[..., Client]) -> None:
    one = client(patience=200)
    for _ in range(2):
        double.faults.order("limit-429-bare", "GET", "evals$")
    assert one.api.get("").status == 200
    assert sum(one.waits) == pytest.approx(180)


def test_a_limit_that_never_ends_is_given_up(double: Server, client: Callable[..., Client]) -> None:
    one = client()
    for _ in range(9):
        double.faults.order("limit-429-bare", "GET", "evals$")
    with pytest.raises(GitHubError, match="limits the calls"):
        one.api.get("")
    assert len(double.log) == 3


def test_ready_counts_nothing(double: Server, client: Callable[..., Client]) -> None:
    one = client()
    for _ in range(500):
        one.api.limits.ready("POST")
    assert one.waits == []
    assert double.log == []


def test_writes_are_paced(double: Server, client: Callable[..., Client]) -> None:
    one = client()
    start = double.state.clock.now()
    for number in range(60):
        one.dispatch(f"n{number}")
    assert double.state.clock.now() - start == pytest.approx(40, abs=1)
    assert one.said == []


def test_reads_leave_a_tenth_of_the_hour(
    double: Server, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = limits(double, monkeypatch, limit=50)
    one = client()
    for _ in range(45):
        one.api.get("")
    assert (used, one.waits, one.budget.rate().remaining) == ([45], [], 5)
    one.dispatch()
    assert used == [46]
    one.api.get("")
    assert used == [1]
    assert sum(one.waits) == pytest.approx(3600, abs=1)
    assert "4 calls are left of 50" in one.said[0]


def test_what_nothing_changed_in_costs_nothing(
    double: Server, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = limits(double, monkeypatch)
    one = client()
    etag = one.api.get("").etag
    for _ in range(20):
        assert one.api.get("", etag=etag).status == 304
    assert used == [1]
    assert one.budget.rate().remaining == 999


def test_two_clients_share_one_budget(
    double: Server, client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = limits(double, monkeypatch, limit=100)
    one, two = client(), client()
    for _ in range(45):
        one.api.get("")
        two.api.get("")
    assert used == [90]
    with pytest.raises(LimitedError):
        client(patience=5).api.get("")
    assert used == [90]


def test_another_token_has_its_own(double: Server, client: Callable[..., Client]) -> None:
    store = MemoryStore()
    one = client(store=store)
    double.faults.order("limit-429-bare", "POST", "dispatches")
    with pytest.raises(GitHubError):
        one.dispatch()
    other = CallBudget(store, token="another", url=double.url, now=one.clock.now)
    assert not other.rate().until
    assert CallBudget(store, token=TOKEN, url="https://other.example", now=one.clock.now).rate().until == 0
    assert not any(TOKEN in each for each in (*store._texts, *store._texts.values()))


def test_a_clock_that_is_set_back_during_a_wait(double: Server, client: Callable[..., Client]) -> None:
    one = client()
    double.faults.order("limit-429-bare", "GET", "evals$")

    def wait(seconds: float) -> None:
        one.waits.append(seconds)
        one.clock.sleep(seconds)
        one.clock.seconds -= 86_400  # type: ignore[attr-defined]

    two = client(wait=wait)
    assert two.api.get("").status == 200
    assert sum(one.waits) == pytest.approx(60)


def test_a_clock_that_stands_still(double: Server, client: Callable[..., Client]) -> None:
    waits: list[float] = []
    one = client(wait=waits.append)
    double.faults.order("limit-429-bare", "GET", "evals$")
    assert one.api.get("").status == 200
    assert sum(waits) == pytest.approx(60)


class Broken:
    """A store that fails when it is told to."""

    def __init__(self) -> None:
        self.broken = False
        self.store = MemoryStore()

    def change_rate(self, token: str, change: Callable[[str], str]) -> None:
        if self.broken:
            raise RunnerE2EError("the ledger is locked")
        self.store.change_rate(token, change)


def test_an_answer_is_not_lost_where_the_limit_cannot_be_stored(double: Server, client: Callable[..., Client]) -> None:
    """A write was answered: its caller learns that. The next call says what is wrong, before it is sent."""
    broken = Broken()
    one = client(store=broken)
    double.faults.order("limit-429-bare", "POST", "dispatches")
    double.after = lambda _: setattr(broken, "broken", True)
    with pytest.raises(GitHubError, match="limits the calls"):
        one.dispatch()
    with pytest.raises(RunnerE2EError, match="the ledger is locked"):
        one.api.get("")
    assert len(double.log) == 1
    broken.broken = False
    assert one.api.get("").status == 200
    assert sum(one.waits) == pytest.approx(60)


WAITER = """
import sys, time
from pathlib import Path
from runner_e2e.dispatch.call_budget import CallBudget
from runner_e2e.dispatch.github_api import GitHubApi
from runner_e2e.dispatch.ledger import open_ledger

url, path = sys.argv[1:]
with open_ledger(Path(path), now=time.time) as ledger:
    say = lambda text: print(text, flush=True)
    budget = CallBudget(ledger, token="token-of-alice", url=url, say=say)
    GitHubApi(repository="octo/evals", token="token-of-alice", url=url, limits=budget.limits()).get("")
"""


def test_a_wait_survives_a_kill(double: Server, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    double.state.clock.seconds = time.time()  # type: ignore[attr-defined]
    double.faults.order("limit-429-bare", "GET", "evals$")
    command = [sys.executable, "-c", WAITER, double.url, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as waiting:
        assert waiting.stdout
        said = re.match(r"waiting (\d+) s: a secondary limit", waiting.stdout.readline())
        assert said
        assert 0 < int(said[1]) <= 60  # less by what it took from the answer to the next try
        waiting.send_signal(signal.SIGKILL)
    with open_ledger(path, now=time.time) as ledger:
        budget = CallBudget(ledger, token=TOKEN, url=double.url, patience=5)
        api = GitHubApi(repository="octo/evals", token=TOKEN, url=double.url, limits=budget.limits())
        with pytest.raises(LimitedError):
            api.get("")
    assert len(double.log) == 1
    assert TOKEN.encode() not in path.read_bytes()


SENDER = """
import sys, time
from pathlib import Path
from runner_e2e.dispatch.call_budget import CallBudget
from runner_e2e.dispatch.ledger import open_ledger

path, number = Path(sys.argv[1]), int(sys.argv[2])
clock = [1_796_000_000.0]  # does not move: what may be sent at once is what the bucket holds
with open_ledger(path, now=time.time, patience=60) as ledger:
    sent = 0
    limits = CallBudget(ledger, token="t", now=lambda: clock[0], patience=0).limits()
    try:
        while True:
            limits.before("POST")
            sent += 1
    except Exception as error:
        assert type(error).__name__ == "LimitedError", error
print(sent)
"""


def test_processes_do_not_take_the_same_calls(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, now=time.time):
        pass
    running = [
        subprocess.Popen([sys.executable, "-c", SENDER, str(path), str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(3)
    ]
    assert sum(int(each.communicate(timeout=120)[0]) for each in running) == 20
