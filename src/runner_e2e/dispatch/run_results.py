"""What a run that has ended did and cost: its records, and for cells without one its jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.downloads import fetch_results
from runner_e2e.dispatch.outcomes import PAID_STEP, JobState, join
from runner_e2e.dispatch.records import value_of
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


def outcomes_of_run(api: GitHubApi, run: int, expected: Sequence[Expected]) -> tuple[Results, Joined]:
    """Fetches what *run* kept and says what became of the cells it was to pay for.

    Two or three requests where every cell has a record, up to four more where not. Raises
    :class:`~runner_e2e.errors.GitHubError` where it should be tried again later.
    """
    results = fetch_results(api, run)
    joined = join(expected, results.records)
    if joined.without_record:
        joined = join(expected, results.records, job_states(api, run))
    return results, replace(joined, problems=(*results.problems, *joined.problems))


def job_states(api: GitHubApi, run: int) -> tuple[JobState, ...] | None:
    """All jobs of all attempts of a *run* that has ended; None where GitHub does not have the run any more.

    Raises :class:`~runner_e2e.errors.GitHubError`, also for a list that does not end.
    """
    found: list[JobState] = []
    number = 0
    for page in range(1, _MOST_PAGES + 1):
        path = f"actions/runs/{run}/jobs"
        answer = api.get(path, {"filter": "all", "per_page": 100, "page": page}, accept={404, 410})
        if answer.status in {404, 410}:
            return None
        jobs = answer.data.get("jobs") if isinstance(answer.data, dict) else None
        if not isinstance(jobs, list):
            raise GitHubError(f"GitHub's API answered GET {answer.path} without a list", fix="try again")
        found += [_state(job) for job in jobs]
        number = value_of(answer.data, int, "total_count")
        if len(found) >= number or not jobs:
            break
    if len(found) < number:
        raise GitHubError(f"GitHub lists {len(found)} of the {number} jobs of run {run}", fix="try again")
    return tuple(found)


def _state(job: object) -> JobState:
    data = job if isinstance(job, dict) else {}
    steps = [step for step in data.get("steps") or () if isinstance(step, dict)]
    began = data.get("conclusion") != "skipped" and bool(steps or data.get("runner_id"))
    return JobState(name=value_of(job, str, "name"), began=began, paid=_paid(data, steps) if began else "no")


def _paid(job: dict[str, object], steps: Sequence[dict[str, object]]) -> Literal["yes", "no", "unknown"]:
    """Whether the paid step was started.

    A step that was not reached is ``skipped``. A runner that was lost reports no more, so what is missing says nothing.
    """
    step = next((step for step in steps if step.get("name") == PAID_STEP), None)
    if step is None or job.get("status") != "completed":
        return "unknown"
    if step.get("conclusion") == "skipped":
        return "no"
    return "yes" if step.get("conclusion") else "unknown"
