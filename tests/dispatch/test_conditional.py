"""Reads that cost nothing where nothing changed, and never answer with what is not so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.github_double import server

from runner_e2e.dispatch.conditional import ConditionalReader, MemoryAnswers, Shape
from runner_e2e.dispatch.ledger import open_ledger
from runner_e2e.dispatch.ledger_records import Remembered
from runner_e2e.dispatch.records import value_of
from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.github_double.routes import Reply
    from tests.github_double.server import Server

    from runner_e2e.dispatch.github_api import GitHubApi


@pytest.fixture
def store() -> MemoryAnswers:
    return MemoryAnswers()


@pytest.fixture
def reader(api: GitHubApi, store: MemoryAnswers) -> ConditionalReader:
    return ConditionalReader(api, store)


def statuses(double: Server) -> list[int]:
    return [entry.status for entry in double.log]


def runs(double: Server, number: int) -> None:
    workflow = double.state.workflows[0] if double.state.workflows else double.state.add_workflow("paid.yml")
    for _ in range(number):
        double.state.start(workflow, "schedule", "refs/heads/main", double.state.users["alice"], {})


def seen(double: Server, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What goes over the wire: the double decides about 304 after it has logged the request."""
    found: list[int] = []
    real = server._Handler._conditional

    def conditional(self: server._Handler, reply: Reply) -> Reply:
        reply = real(self, reply)
        found.append(reply.status)
        return reply

    monkeypatch.setattr(server._Handler, "_conditional", conditional)
    return found


def test_the_second_reading_costs_nothing(
    double: Server, reader: ConditionalReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = seen(double, monkeypatch)
    first, second = reader.get(""), reader.get("")
    assert (first.changed, second.changed, wire) == (True, False, [200, 304])
    assert first.data == second.data
    double.state.default_branch = "trunk"
    third = reader.get("")
    assert (third.changed, value_of(third.data, str, "default_branch"), wire[-1]) == (True, "trunk", 200)


def test_another_process_asks_by_what_the_first_remembered(
    double: Server, api: GitHubApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = seen(double, monkeypatch)
    for changed in (True, False):
        with open_ledger(tmp_path / "ledger.sqlite", now=double.state.clock.now) as ledger:
            assert ConditionalReader(api, ledger).get("").changed is changed
    assert wire == [200, 304]


def test_each_question_is_remembered_by_itself(double: Server, reader: ConditionalReader) -> None:
    runs(double, 3)
    double.state.runs[next(iter(double.state.runs))].event = "push"
    every = reader.pages("actions/runs", "workflow_runs")
    pushed = reader.pages("actions/runs", "workflow_runs", {"event": "push"})
    assert (len(every.items), len(pushed.items)) == (3, 1)


def test_another_server_or_repository_is_another_question(
    double: Server, connect: Callable[..., GitHubApi], store: MemoryAnswers
) -> None:
    for changes in ({}, {"url": f"{double.url}/api/v3"}):
        assert ConditionalReader(connect(**changes), store).get("").changed
    assert len(store.answers) == 2


def test_a_shape_keeps_what_is_needed(double: Server, reader: ConditionalReader, store: MemoryAnswers) -> None:
    shape = Shape(name="branch/1", of=lambda data: value_of(data, str, "default_branch"))
    assert [reader.get("", shape=shape).data for _ in range(2)] == ["main", "main"]
    assert [answer.body for answer in store.answers.values()] == ['"main"']
    other = Shape(name="branch/2", of=lambda data: [value_of(data, str, "default_branch")])
    assert reader.get("", shape=other).data == ["main"]


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000])
def test_a_damaged_memory_is_not_used(
    double: Server, reader: ConditionalReader, store: MemoryAnswers, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    reader.get("")
    ((key, known),) = store.answers.items()
    store.answers[key] = Remembered(etag=known.etag, body=body)
    wire = seen(double, monkeypatch)
    assert value_of(reader.get("").data, int, "id") == 5
    assert wire == [200]


def test_an_error_is_not_remembered(double: Server, reader: ConditionalReader, store: MemoryAnswers) -> None:
    assert reader.get("git/ref/heads/none", accept={404}).status == 404
    assert not store.answers
    reader.get("")
    double.faults.order("stale-404", "GET", "evals$")
    gone = reader.get("", accept={404})
    assert (gone.status, gone.changed) == (404, True)
    assert reader.get("").changed is False
    with pytest.raises(GitHubError, match="404"):
        reader.get("git/ref/heads/none")


def test_304_without_a_question(double: Server, reader: ConditionalReader) -> None:
    double.faults.order("stale-304", "GET", "evals$")
    with pytest.raises(GitHubError, match="304 to a question without a condition"):
        reader.get("")


def test_an_answer_without_an_etag(
    reader: ConditionalReader, store: MemoryAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server._Handler, "_conditional", lambda _, reply: reply)
    assert [reader.get("").changed for _ in range(2)] == [True, True]
    assert not store.answers


def test_pages(double: Server, reader: ConditionalReader, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(double, 230)
    wire = seen(double, monkeypatch)
    item = Shape(name="id", of=lambda run: {"id": value_of(run, int, "id")})
    listings = [reader.pages("actions/runs", "workflow_runs", item=item) for _ in range(2)]
    assert [len(each.items) for each in listings] == [230, 230]
    assert [each.changed for each in listings] == [True, False]
    assert wire == [200, 200, 200, 304, 304, 304]
    runs(double, 1)
    assert len(reader.pages("actions/runs", "workflow_runs", item=item).items) == 231
    assert len(reader.pages("actions/runs", "workflow_runs", item=item, most=2).items) == 200


def test_an_object_that_moves_to_the_next_page_meanwhile_comes_once(double: Server, reader: ConditionalReader) -> None:
    runs(double, 100)
    double.after = lambda entry: runs(double, 1) if entry.query.get("page") == "1" else None
    items = reader.pages("actions/runs", "workflow_runs").items
    assert len(items) == len({value_of(item, int, "id") for item in items}) == 100


def test_a_list_of_another_form(double: Server, reader: ConditionalReader) -> None:
    runs(double, 1)
    with pytest.raises(GitHubError, match="without a list"):
        reader.pages("actions/runs", "other")
    with pytest.raises(GitHubError, match="without a list"):
        reader.pages("", "")


def test_a_list_without_pages(double: Server, reader: ConditionalReader) -> None:
    sha = double.state.refs["refs/heads/main"]
    for number in range(250):
        double.state.create_ref(f"refs/x/{number:03}", sha)
    assert len(reader.pages("git/matching-refs/x", "").items) == 250
    assert len(reader.pages("git/matching-refs/x/00", "").items) == 10


def test_what_is_remembered_is_json(reader: ConditionalReader, store: MemoryAnswers) -> None:
    reader.get("")
    assert json.loads(next(iter(store.answers.values())).body)["id"] == 5
