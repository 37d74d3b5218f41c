"""The client against a real server: what is repeated, what never is, and what every failure says."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

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
    assert len(double.requests("POST")) == 1


def test_a_redirected_write_is_not_followed(
    connect: Callable[..., GitHubApi], double: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.github_double import server
    from tests.github_double.routes import Reply

    moved = Reply(
        status=301, data={"message": "Moved Permanently"}, headers={"Location": f"{double.url}/repositories/5"}
    )
    monkeypatch.setattr(server, "answer", lambda *_: moved)
    with pytest.raises(GitHubError, match="308") as caught:
        dispatch(connect())
    assert not isinstance(caught.value, UnknownOutcomeError)
    assert len(double.log) == 1


def test_nothing_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    waits: list[float] = []
    api = GitHubApi(repository="o/r", token="t", url=f"http://127.0.0.1:{port}", limits=Limits(wait=waits.append))
    with pytest.raises(GitHubError, match="cannot be reached"):
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
        ({"repository": "octo"}, "no repository"),
        ({"repository": "octo/../x"}, "no repository"),
        ({"repository": "octo/evals/x"}, "no repository"),
        ({"url": "ftp://x"}, "no URL"),
        ({"url": "http://github.example"}, "token in clear"),
    ],
)
def test_bad_settings(connect: Callable[..., GitHubApi], changes: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        connect(**changes)


def test_an_unchanged_answer_costs_nothing(api: GitHubApi) -> None:
    first = api.get("")
    assert api.get("", etag=first.etag).status == 304


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
