"""What a run that has ended did and cost: its records, and for cells without one its jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.downloads import fetch_results, fetch_single_results
from runner_e2e.dispatch.outcomes import PAID_STEP, JobState, join
from runner_e2e.dispatch.records import moment_of, value_of
from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from runner_e2e.dispatch.downloads import Results
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.outcomes import Expected, Joined

__all__ = ["job_states", "outcomes_of_run"]

# 300 jobs of 50 attempts are 150 pages.
_MOST_PAGES: Final = 200
_PAUSE: Final = 5.0


def outcomes_of_run(
    api: GitHubApi, run: int, expected: Sequence[Expected], *, only_attempt: int | None = None
) -> tuple[Results, Joined]:
    """Fetches what *run* kept and says what became of the cells it was to pay for.

    *only_attempt* leaves out what later attempts of the run did, where their cost counts elsewhere. Two requests where
    every cell has a record, a few more where not, and one for each cell whose job kept a record that the run's last job
    did not take up. Raises :class:`~runner_e2e.errors.GitHubError` where it should be tried again later.
    """
    before = _start(api, run, only_attempt + 1) if only_attempt else None
    results = fetch_results(api, run, before=before)
    joined = join(expected, results.records)
    problems = results.problems
    if joined.without_record:
        jobs = job_states(api, run, only_attempt=only_attempt)
        if results.gone and jobs is not None:
            raise GitHubError(f"GitHub has jobs of run {run} and says that there is no such run", fix="try again")
        if jobs is None:
            problems = (*problems, f"GitHub does not tell what the jobs of run {run} did")
        joined = join(expected, results.records, jobs)
        unknown = [cell.handle for cell in joined.cells if cell.kept and cell.handle in joined.without_record]
        if unknown and results.state in {"missing", "refused"}:
            single = fetch_single_results(api, run, unknown, before=before)
            problems = (*problems, *single.problems)
            joined = join(expected, (*results.records, *single.records), jobs)
    return results, replace(joined, problems=(*problems, *joined.problems))


def _start(api: GitHubApi, run: int, attempt: int) -> datetime | None:
    """When an attempt was started; None where there is no such attempt."""
    answer = api.get(f"actions/runs/{run}/attempts/{attempt}", accept={404, 410})
    return moment_of(value_of(answer.data, str, "run_started_at")) if answer.status == 200 else None


def job_states(
    api: GitHubApi, run: int, *, only_attempt: int | None = None, inside: bool = False, since: datetime | None = None
) -> tuple[JobState, ...] | None:
    """All jobs of all attempts of a *run* that has ended, or of one of its attempts.

    *inside*: a job of the run asks, after all jobs that pay; it has not ended itself. *since* leaves out what began
    before: a partial rerun lists the jobs that it took over, as they were. None where GitHub does not have the run any
    more. None too where it twice lists fewer jobs than it counts, or one that has not ended, as a replica
    does that is behind: nothing can be told then from a job that is missing or does not seem to have begun. Raises
    :class:`~runner_e2e.errors.GitHubError`.
    """
    path, which = f"actions/runs/{run}/jobs", {"filter": "all"}
    if only_attempt:
        path, which = f"actions/runs/{run}/attempts/{only_attempt}/jobs", {}
    for pause in (_PAUSE, None):
        jobs = api.whole_list(path, "jobs", which, most=_MOST_PAGES)
        if jobs is None:
            return None
        states = tuple(map(_state, jobs.items))
        going = [state for state, job in zip(states, jobs.items, strict=True) if job.get("status") != "completed"]
        # The job that asks is among those that go on; where none does, the list is older than it.
        expected = bool(going) and not any(state.handle for state in going) if inside else not going
        if jobs.complete and expected:
            fresh = [since is None or _start_of(job) >= since for job in jobs.items]
            return tuple(state for state, each in zip(states, fresh, strict=True) if each)
        if pause is not None:
            api.limits.wait(pause)
    return None


def _start_of(job: dict[str, object]) -> datetime:
    """When a job began; what is not known may be after everything."""
    started = job.get("started_at")
    return moment_of(started) if isinstance(started, str) else datetime.max.replace(tzinfo=UTC)


def _state(job: dict[str, object]) -> JobState:
    listed = job.get("steps")
    steps = [step for step in listed if isinstance(step, dict)] if isinstance(listed, list) else []
    # What has not ended may have begun and paid since.
    going = job.get("status") != "completed"
    began = going or (job.get("conclusion") != "skipped" and bool(steps or job.get("runner_id")))
    paid = "unknown" if going else _paid(steps)
    return JobState(name=value_of(job, str, "name"), began=began, paid=paid if began else "no")


def _paid(steps: Sequence[dict[str, object]]) -> Literal["yes", "no", "unknown"]:
    """Whether the paid step was started.

    A step that was not reached is ``skipped``. A runner that was lost reports no more, so what is missing says nothing.
    """
    conclusion = next((step.get("conclusion") for step in steps if step.get("name") == PAID_STEP), None)
    if not conclusion:
        return "unknown"
    return "no" if conclusion == "skipped" else "yes"
