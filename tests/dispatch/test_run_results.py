"""A run that has ended, asked over HTTP: what its cells cost, and what its jobs tell of cells without a record."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.dispatch.kept_results import archive, handle, keep, record, start_run
from tests.github_double import routes, server
from tests.github_double.state import Attempt, Job

from runner_e2e.dispatch.campaign import PlannedCell
from runner_e2e.dispatch.outcomes import PAID_STEP
from runner_e2e.dispatch.run_results import job_states, outcomes_of_run
from runner_e2e.errors import GitHubError
from runner_e2e.yaml_positions import Mapping, Scalar, Sequence, compose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.github_double.routes import Reply
    from tests.github_double.server import Server
    from tests.github_double.state import Run, State

    from runner_e2e.dispatch.github_api import GitHubApi

CENTS = 10_000
TEMPLATE = Path(__file__).resolve().parents[2] / "workflows-templates" / "paid-campaign.yml"


def cells(number: int) -> list[PlannedCell]:
    return [PlannedCell(handle=handle(n), expected=50 * CENTS, reserved=100 * CENTS) for n in range(number)]


def entry(number: int, **changes: Any) -> tuple[str, bytes]:
    return f"result-{handle(number)}/result.json", record(number, **changes)


def step(name: str, conclusion: str | None, status: str = "completed") -> dict[str, Any]:
    return {"name": name, "number": 1, "status": status, "conclusion": conclusion}


def add_job(double: Server, run: Run, name: str, **changes: Any) -> Job:
    made = Job(
        id=double.state.number(), name=name, attempt=run.last.number,
        **{"status": "completed", "conclusion": "failure", "completed_at": 1.0, "runner": 7, **changes},
    )  # fmt: skip
    run.last.jobs.append(made)
    return made


def test_jobs_are_listed_only_for_a_cell_without_a_record(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    kept = keep(double, run, archive([entry(0), entry(1)]))
    _, joined = outcomes_of_run(api, run.id, cells(2))
    assert (joined.actual, joined.kept, joined.problems) == (50 * CENTS, 0, ())
    assert not double.requests("GET", "/jobs")
    kept.content = archive([entry(0)])
    add_job(double, run, handle(1))
    _, joined = outcomes_of_run(api, run.id, cells(2))
    assert (joined.actual, joined.kept) == (25 * CENTS, 100 * CENTS)
    assert len(double.requests("GET", "/jobs")) == 1


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"conclusion": "skipped", "runner": None}, ("not_run", 0, 0)),
        ({"conclusion": "cancelled", "runner": None}, ("not_run", 0, 0)),
        ({"conclusion": "cancelled", "runner": 0}, ("not_run", 0, 0)),
        ({"steps": [step("Gate", "failure"), step(PAID_STEP, "skipped")]}, ("not_run", 0, 0)),
        ({"steps": [step("Gate", "success"), step(PAID_STEP, "failure")]}, ("failed", None, 100 * CENTS)),
        ({"steps": [step("Gate", "success"), step(PAID_STEP, "success")]}, ("failed", None, 100 * CENTS)),
        ({"steps": [step("Gate", "success"), step(PAID_STEP, None, "in_progress")]}, ("failed", None, 100 * CENTS)),
        ({"steps": [step("Gate", "success"), step(PAID_STEP, None, "queued")]}, ("failed", None, 100 * CENTS)),
        ({"steps": [step("Gate", "success")]}, ("failed", None, 100 * CENTS)),
        ({"steps": [], "runner": 7}, ("failed", None, 100 * CENTS)),
        ({"steps": [step("Gate", "success")], "runner": None}, ("failed", None, 100 * CENTS)),
        # A job that GitHub says to go on in a run that it says has ended.
        ({"status": "in_progress", "conclusion": None, "steps": [step(PAID_STEP, "skipped")]},
         ("failed", None, 100 * CENTS)),
        ({"status": "queued", "conclusion": None, "runner": None}, ("failed", None, 100 * CENTS)),
    ],
)  # fmt: skip
def test_what_a_job_tells(
    double: Server, api: GitHubApi, changes: dict[str, Any], state: tuple[str, int | None, int]
) -> None:
    run = start_run(double)
    add_job(double, run, "Gate", conclusion="success")
    add_job(double, run, handle(0), **changes)
    results, joined = outcomes_of_run(api, run.id, cells(1))
    (cell,) = joined.cells
    assert (results.state, cell.verdict, cell.actual, cell.kept) == ("missing", *state)


def texts(node: object) -> Iterator[str]:
    if isinstance(node, Scalar):
        yield node.value
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from texts(item)
    elif isinstance(node, Mapping):
        for _, value in node.pairs:
            yield from texts(value)


def test_the_paid_step_is_named_so_in_the_template() -> None:
    """Whether a job came to its paid step is told by that name."""
    root = compose(TEMPLATE.read_text(), path=TEMPLATE.name)
    assert isinstance(root, Mapping)
    jobs = root.get("jobs")
    assert isinstance(jobs, Mapping)
    job = jobs.get("cells")
    assert isinstance(job, Mapping)
    steps = job.get("steps")
    assert isinstance(steps, Sequence)
    paying = [
        step for step in steps.items if isinstance(step, Mapping) and any("secrets." in text for text in texts(step))
    ]
    names = [name.value for step in paying if isinstance(name := step.get("name"), Scalar)]
    assert names == [PAID_STEP]
    name = job.get("name")
    assert isinstance(name, Scalar)
    assert name.value == "${{ matrix.handle }}"
    others = re.findall(r"(?m)^  \w+:\n    name: (\w+)$", TEMPLATE.read_text())
    assert {"Gate", "Plan", "Claim", "Results"} <= set(others)


def test_all_jobs_of_a_large_run(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    for number in range(256):
        add_job(double, run, handle(number), conclusion="success")
    jobs = job_states(api, run.id)
    assert jobs is not None
    assert [job.handle for job in jobs] == [handle(n) for n in range(256)]
    assert len(double.log) == 3


def test_a_job_of_the_run_asks_before_it_has_ended_itself(double: Server, api: GitHubApi) -> None:
    """That its cells have ended is still needed: a cell that goes on can pay."""
    run = start_run(double)
    cell = add_job(double, run, handle(1), status="in_progress", conclusion=None)
    add_job(double, run, "Results", status="in_progress", conclusion=None)
    assert job_states(api, run.id) is None
    assert job_states(api, run.id, inside=True) is None
    cell.status, cell.conclusion = "completed", "success"
    assert job_states(api, run.id) is None
    assert job_states(api, run.id, inside=True) is not None


def test_a_list_without_the_job_that_asks_is_older_than_it(double: Server, api: GitHubApi) -> None:
    """The cell's job, which comes before, can be missing there too, and is no proof that nothing was paid."""
    run = start_run(double)
    for name in ("Gate", "Plan", "Claim"):
        add_job(double, run, name, conclusion="success")
    assert job_states(api, run.id) is not None
    assert job_states(api, run.id, inside=True) is None


def test_a_list_that_is_shorter_than_it_says_tells_nothing_of_what_is_missing(
    double: Server, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that is behind; once more, and then nothing is concluded."""
    run = start_run(double)
    add_job(double, run, "Gate", conclusion="success")
    add_job(double, run, handle(0))
    short = 2

    def answer(state: State, asked: routes.Request) -> Reply:
        nonlocal short
        reply = routes.answer(state, asked)
        if asked.path.endswith("/jobs") and short:
            short -= 1
            reply.data["jobs"] = reply.data["jobs"][:1]
        return reply

    monkeypatch.setattr(server, "answer", answer)
    _, joined = outcomes_of_run(api, run.id, cells(1))
    assert (joined.cells[0].actual, joined.cells[0].kept) == (None, 100 * CENTS)
    assert "does not tell what the jobs" in joined.problems[0]
    short = 1
    jobs = job_states(api, run.id)
    assert jobs is not None
    assert [job.name for job in jobs] == ["Gate", handle(0)]


def test_a_run_that_was_deleted(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    keep(double, run, archive([entry(0)]))
    del double.state.runs[run.id]
    results, joined = outcomes_of_run(api, run.id, cells(1))
    assert results.state == "missing"
    assert (joined.cells[0].verdict, joined.cells[0].actual, joined.cells[0].kept) == ("failed", None, 100 * CENTS)


@pytest.mark.parametrize("fault", ["stale-404", "late-list"])
@pytest.mark.parametrize("path", ["artifacts$", "/jobs$", "/zip$"])
def test_a_replica_that_is_behind_decides_nothing(double: Server, api: GitHubApi, fault: str, path: str) -> None:
    """It is asked again, or what it lacks stays reserved: no cell that was paid for is said to be free."""
    run = start_run(double)
    keep(double, run, archive([entry(0)]))
    for number in range(2):
        add_job(double, run, handle(number), conclusion="success")
    for _ in range(1 + (fault == "late-list")):
        double.faults.order(fault, "GET", path)
    if "jobs" in path:
        double.faults.order(fault, "GET", path)
    try:
        _, joined = outcomes_of_run(api, run.id, cells(2))
    except GitHubError:
        _, joined = outcomes_of_run(api, run.id, cells(2))
    assert [(cell.actual, cell.kept) for cell in joined.cells] == [(25 * CENTS, 0), (None, 100 * CENTS)]


def test_jobs_of_a_run_that_is_said_to_be_gone(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    keep(double, run, archive([entry(0)]))
    add_job(double, run, handle(0), conclusion="success")
    for _ in range(2):
        double.faults.order("stale-404", "GET", "artifacts$")
    with pytest.raises(GitHubError, match="has jobs of run"):
        outcomes_of_run(api, run.id, cells(1))


def test_an_artifact_that_is_refused_decides_nothing(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    keep(double, run, archive([entry(0), entry(1)])[:-30])
    add_job(double, run, handle(0), conclusion="success", steps=[step(PAID_STEP, "success")])
    add_job(double, run, handle(1), steps=[step(PAID_STEP, "skipped")])
    results, joined = outcomes_of_run(api, run.id, cells(2))
    assert results.state == "refused"
    assert [(cell.actual, cell.kept) for cell in joined.cells] == [(None, 100 * CENTS), (0, 0)]
    assert "is not taken: it is no zip archive, or was cut off" in joined.problems[0]


@pytest.mark.parametrize("state", ["missing", "refused"])
def test_a_run_whose_last_job_did_not_put_results_together(double: Server, api: GitHubApi, state: str) -> None:
    """It was cancelled by force, or its machine was lost: what the cells' jobs kept each is still there."""
    run = start_run(double)
    for number in range(4):
        add_job(double, run, handle(number), conclusion="success")
    for number in range(3):
        keep(double, run, archive([("result.json", record(number))]), name=f"result-{handle(number)}")
    run.artifacts[1].content = archive([("result.json", record(0, cost=0.0))])  # one cell speaks for another
    run.artifacts[2].content = archive(
        (f"attempt-{attempt}/result.json", record(2, attempt=attempt, cost=attempt)) for attempt in (1, 2)
    )
    if state == "refused":
        keep(double, run, b"cut off")
    results, joined = outcomes_of_run(api, run.id, cells(4))
    assert results.state == state
    assert [(cell.actual, cell.kept) for cell in joined.cells] == [
        (25 * CENTS, 0), (None, 100 * CENTS), (300 * CENTS, 0), (None, 100 * CENTS)
    ]  # fmt: skip
    assert f"the record in it is one of {handle(0)}" in " ".join(joined.problems)
    assert len(double.requests("GET", "/zip")) == 3 + 2 * (state == "refused")


def test_a_later_attempt_counts_elsewhere(double: Server, api: GitHubApi) -> None:
    run = start_run(double)
    keep(double, run, archive([entry(0)]))
    add_job(double, run, handle(0), conclusion="success")
    add_job(double, run, handle(1), runner=None, conclusion="cancelled")
    double.state.clock.sleep(100)
    run.attempts.append(
        Attempt(
            number=2,
            triggering_actor=run.actor,
            started_at=double.state.clock.now(),
            status="completed",
            conclusion="success",
        )
    )
    add_job(double, run, handle(1), conclusion="success")
    double.state.clock.sleep(100)
    keep(double, run, archive([entry(0), entry(1)]))
    _, first = outcomes_of_run(api, run.id, cells(2), only_attempt=1)
    assert [(cell.verdict, cell.actual, cell.kept) for cell in first.cells] == [
        ("passed", 25 * CENTS, 0), ("not_run", 0, 0)
    ]  # fmt: skip
    _, both = outcomes_of_run(api, run.id, cells(2))
    assert [cell.verdict for cell in both.cells] == ["passed", "passed"]
    _, alone = outcomes_of_run(api, run.id, cells(2), only_attempt=2)
    assert alone.cells == both.cells


@pytest.mark.parametrize("fault", ["lost-502", "html", "done-cut"])
def test_trouble_is_told_so_that_it_is_tried_again(double: Server, api: GitHubApi, fault: str) -> None:
    run = start_run(double)
    for _ in range(3):
        double.faults.order(fault, "GET", "artifacts$")
    with pytest.raises(GitHubError):
        outcomes_of_run(api, run.id, cells(1))


def test_each_run_takes_two_calls(double: Server, api: GitHubApi) -> None:
    """So 10,000 cells, in 40 runs, take 80."""
    for first in (0, 250):
        run = start_run(double)
        keep(double, run, archive(entry(n) for n in range(first, first + 250)))
        _, joined = outcomes_of_run(api, run.id, cells(500)[first : first + 250])
        assert (joined.actual, joined.kept) == (250 * 25 * CENTS, 0)
    assert len([each for each in double.log if not each.path.startswith("/storage/")]) == 4
