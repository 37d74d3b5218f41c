"""The client against a real server: what is repeated, what never is, and what every failure says."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from tests.github_double import server
from tests.github_double.patience import give_up_at_once
from tests.github_double.routes import Reply

from runner_e2e.dispatch.github_api import GitHubApi, Limits, UnknownOutcomeError
from runner_e2e.dispatch.records import read_repository, read_run
from runner_e2e.errors import GitHubError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.github_double.server import Server

    from runner_e2e.dispatch.answers import Answer

DISPATCHES = "actions/workflows/paid.yml/dispatches"


@pytest.fixture(autouse=True)
def workflow(double: Server) -> None:
    double.state.add_workflow(".github/workflows/paid.yml", inputs={"nonce": True}, run_name="Paid ${{ inputs.nonce }}")


def dispatch(api: GitHubApi) -> Answer:
    return api.send("POST", DISPATCHES, {"ref": "main", "inputs": {"nonce": "n"}, "return_run_details": True})


def test_reads_records(api: GitHubApi) -> None:
    assert read_repository(api).default_branch == "main"
    number = dispatch(api).data["workflow_run_id"]  # type: ignore[index]
    run = read_run(api, number, 1)
    assert (run.id, run.attempt, run.event, run.path) == (number, 1, "workflow_dispatch", ".github/workflows/paid.yml")
    assert (run.actor.id, run.triggering_actor.login, run.head_branch) == (11, "alice", "main")
    assert run.title == "Paid n"


@pytest.mark.parametrize(
    "fault", ["lost-502", "lost-hang-up", "done-502", "done-hang-up", "done-cut", "limit-429", "limit-403"]
)
def test_a_read_is_repeated(double: Server, api: GitHubApi, fault: str) -> None:
    double.faults.order(fault, "GET", "^/repos/octo/evals$")
    double.faults.order(fault, "GET", "^/repos/octo/evals$")
    assert read_repository(api).id == 5
    assert double.faults.fired[fault] == 2
    assert len(double.requests("GET")) == 3


def test_a_read_gives_up(double: Server, api: GitHubApi) -> None:
    for _ in range(3):
        double.faults.order("lost-502", "GET", "evals")
    with pytest.raises(GitHubError, match="502"):
        read_repository(api)
    assert len(double.log) == 3


@pytest.mark.parametrize(
    "fault", ["lost-502", "lost-hang-up", "done-502", "done-500", "done-hang-up", "done-cut", "html"]
)
def test_a_write_is_sent_once_and_its_outcome_is_not_guessed(double: Server, api: GitHubApi, fault: str) -> None:
    double.faults.order(fault, "POST", "dispatches")
    with pytest.raises(UnknownOutcomeError, match="not known"):
        dispatch(api)
    assert len(double.requests("POST", "dispatches")) == 1
    assert len(double.state.runs) == int(fault.startswith("done"))


@pytest.mark.parametrize("fault", ["limit-403", "limit-429", "limit-429-bare"])
def test_a_refused_write_is_known_not_to_be_done(double: Server, api: GitHubApi, fault: str) -> None:
    double.faults.order(fault, "POST", "dispatches")
    with pytest.raises(GitHubError, match="limits the calls") as caught:
        dispatch(api)
    assert not isinstance(caught.value, UnknownOutcomeError)
    assert not double.state.runs


def test_a_late_reply_to_a_write_is_unknown(connect: Callable[..., GitHubApi], double: Server) -> None:
    api = connect(timeout=1)
    with double.lock, pytest.raises(UnknownOutcomeError):  # the server takes the request and does not answer
        dispatch(api)
    double.settle()
    assert len(double.requests("POST")) == 1


def answer_with(monkeypatch: pytest.MonkeyPatch, *replies: Reply) -> None:
    """The server's next answers, whatever it is asked; the last one stays."""
    left = list(replies)
    monkeypatch.setattr(server, "answer", lambda *_: left.pop(0) if len(left) > 1 else left[0])


def moved(place: str, status: int = 301) -> Reply:
    return Reply(status=status, data={"message": "Moved Permanently"}, headers={"Location": place})


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirected_write_is_not_followed(
    api: GitHubApi, double: Server, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    answer_with(monkeypatch, moved(f"{double.url}/repositories/5", status))
    with pytest.raises(GitHubError, match="308" if status == 301 else str(status)) as caught:
        dispatch(api)
    assert not isinstance(caught.value, UnknownOutcomeError)
    assert len(double.log) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("place", ["/repositories/5?x=1", "{url}/repositories/5?x=1"])
def test_a_moved_repository_is_read_at_its_new_place(
    api: GitHubApi, double: Server, monkeypatch: pytest.MonkeyPatch, status: int, place: str
) -> None:
    answer_with(monkeypatch, moved(place.format(url=double.url), status), Reply(data={"id": 5}))
    assert api.get("").data == {"id": 5}
    assert [(entry.path, entry.query.get("x")) for entry in double.log] == [
        ("/repos/octo/evals", None), ("/repositories/5", "1")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "place",
    ["https://evil.example/x", "//evil.example/x", "http://localhost:{port}/x", "http://127.0.0.1:1/x", "ftp://x/y",
     "http://[::1", "http://127.0.0.1:99999/x", "http://user@127.0.0.1:1/x"],
)  # fmt: skip
def test_the_token_goes_to_no_other_server(
    api: GitHubApi, double: Server, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    answer_with(monkeypatch, moved(place.format(port=double.url.rpartition(":")[2])))
    with pytest.raises(GitHubError, match=r"another server|cannot be read"):
        api.get("")
    assert len(double.log) == 1


def test_a_redirect_in_a_circle_ends(api: GitHubApi, double: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, moved("/repos/octo/evals"))
    with pytest.raises(GitHubError, match="308"):
        api.get("")
    assert len(double.log) == 4


def test_a_read_that_is_never_ready_ends(api: GitHubApi, double: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, Reply(status=202, data={}))
    with pytest.raises(GitHubError, match="503"):
        api.get("")
    assert len(double.log) == 3


@pytest.mark.parametrize(
    "headers",
    [
        {"X-RateLimit-Remaining": "many", "X-RateLimit-Limit": "x"},
        {"X-RateLimit-Remaining": "1", "X-RateLimit-Limit": "1", "X-RateLimit-Reset": "soon"},
    ],
)
def test_headers_that_are_no_numbers(api: GitHubApi, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]) -> None:
    answer_with(monkeypatch, Reply(data={"id": 5}, headers=headers))
    with pytest.raises(GitHubError, match="cannot be read"):
        api.get("")
    with pytest.raises(UnknownOutcomeError):
        dispatch(api)


@pytest.mark.parametrize("value", ["\xb2", "9" * 500, "-5", "1e9", "NaN", "Thu, 99 Jan 1970"])
def test_a_pause_that_is_no_number(api: GitHubApi, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    answer_with(monkeypatch, Reply(status=429, data={}, headers={"Retry-After": value}))
    with pytest.raises(GitHubError, match="limits the calls"):
        api.get("")


@pytest.mark.parametrize("data", [[], "x", 7, None, {"id": "5"}, {"id": True, "default_branch": None}])
def test_a_record_of_another_shape(api: GitHubApi, monkeypatch: pytest.MonkeyPatch, data: object) -> None:
    answer_with(monkeypatch, Reply(data=data))
    with pytest.raises(GitHubError, match=r"no usable `(id|full_name)`"):
        read_repository(api)
    with pytest.raises(GitHubError):
        read_run(api, 1, 1)


def test_a_server_that_hangs(connect: Callable[..., GitHubApi], double: Server) -> None:
    api = give_up_at_once(connect(), double)
    double.faults.order("lost-hang", "GET", "")
    double.faults.order("done-hang", "POST", "dispatches")
    assert read_repository(api).id == 5
    with pytest.raises(UnknownOutcomeError):
        dispatch(api)
    assert len(double.state.runs) == 1
    assert double.faults.fired == {"lost-hang": 1, "done-hang": 1}


def test_nothing_listens() -> None:
    waits: list[float] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else gets the port meanwhile
        place = f"http://127.0.0.1:{taken.getsockname()[1]}"
        api = GitHubApi(repository="o/r", token="t", url=place, limits=Limits(wait=waits.append))
        with pytest.raises(GitHubError, match=r"cannot be reached \(GET /repos/o/r\)"):
            read_repository(api)
        assert waits == [1.0, 4.0]
        with pytest.raises(GitHubError, match="cannot be reached") as caught:
            dispatch(api)
    assert not isinstance(caught.value, UnknownOutcomeError)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"token": "wrong"}, "401"), ({"repository": "octo/other"}, "404")],
)
def test_who_may_not_read(connect: Callable[..., GitHubApi], changes: dict[str, str], said: str) -> None:
    with pytest.raises(GitHubError, match=said):
        read_repository(connect(**changes))


def test_a_page_of_a_proxy(double: Server, api: GitHubApi) -> None:
    double.faults.order("html", "GET", "evals")
    with pytest.raises(GitHubError, match="HTML"):
        read_repository(api)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"token": "  "}, "no token"),
        ({"token": "one two"}, "is none"),
        ({"token": "ghs_\u00e4"}, "is none"),
        ({"token": "x\nX-Evil: 1"}, "is none"),
        ({"token": "\udcff"}, "is none"),
        ({"repository": "octo/.."}, "no repository"),
        ({"repository": "octo/."}, "no repository"),
        ({"repository": "octo/\u00e4"}, "no repository"),
        ({"repository": "octo/evals\n"}, "no repository"),
        ({"repository": "octo"}, "no repository"),
        ({"repository": "octo/../x"}, "no repository"),
        ({"repository": "octo/evals/x"}, "no repository"),
        ({"url": "ftp://x"}, "no URL"),
        ({"url": "http://[::1"}, "no URL"),
        ({"url": "https://x:99999"}, "no URL"),
        ({"url": "https://user:secret@x"}, "no URL"),
        ({"url": "https://x/?y"}, "no URL"),
        ({"url": "https://github.ex\u00e4mple"}, "no URL"),
        ({"url": "https://"}, "no URL"),
        ({"url": "http://github.example"}, "token in clear"),
    ],
)
def test_bad_settings(connect: Callable[..., GitHubApi], changes: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        connect(**changes)


def test_an_unchanged_answer_costs_nothing(api: GitHubApi) -> None:
    first = api.get("")
    assert api.get("", etag=first.etag).status == 304


def test_names_of_managed_users_have_an_underscore(connect: Callable[..., GitHubApi]) -> None:
    assert connect(repository="alice_acme/evals").repository == "alice_acme/evals"


def test_a_list_without_pages(double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matching refs come all at once, whatever page is asked for."""
    for number in (100, 250):
        answer_with(monkeypatch, Reply(data=[{"ref": str(each)} for each in range(number)]))
        assert len(list(api.pages("git/matching-refs/x", ""))) == number
    assert len(double.log) == 3


def test_pages(double: Server, api: GitHubApi) -> None:
    workflow = double.state.workflows[0]
    for _ in range(230):
        double.state.start(workflow, "schedule", "refs/heads/main", double.state.users["alice"], {})
    assert len(list(api.pages("actions/runs", "workflow_runs"))) == 230
    assert len(list(api.pages("actions/runs", "workflow_runs", most=2))) == 200
    with pytest.raises(GitHubError, match="without a list"):
        list(api.pages("actions/runs", "other"))


def test_a_server_below_a_path(connect: Callable[..., GitHubApi], double: Server) -> None:
    assert read_repository(connect(url=f"{double.url}/api/v3/")).id == 5
