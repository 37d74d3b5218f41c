"""Before anything is sent: is the repository the one that was planned for, and will its workflow take the dispatch?

Everything that would make GitHub refuse each dispatch, or let a run end before it pays, is found out here, once.
"""

from __future__ import annotations

import email.utils
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.answers import problem_of, server_text
from runner_e2e.dispatch.attachment import CLOCK_SKEW, Identity
from runner_e2e.dispatch.definition import MOST_INPUTS, dispatch_problems, find_definition
from runner_e2e.dispatch.records import value_of
from runner_e2e.errors import Problem, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from runner_e2e.dispatch.answers import Answer
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = [
    "MOST_CHARACTERS",
    "Readiness",
    "Request",
    "check_inputs",
    "check_same_number",
    "check_same_repository",
    "preflight",
    "read_identity",
]

MOST_CHARACTERS: Final = 65_535
"""Of all inputs of one dispatch together. https://docs.github.com/en/actions/reference/limits"""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be sent: *workflow* is the file's name, *inputs* are those that every dispatch carries, by name.

    *repository_id* is the number of the repository that the campaign was started in, None before the first start.
    """

    repository: str
    workflow: str
    inputs: tuple[str, ...]
    repository_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """What was found: *branch* is the default branch, on which the gate wants the definition; *path* the workflow's."""

    repository_id: int
    branch: str
    path: str


def preflight(api: GitHubApi, request: Request, *, now: Callable[[], float]) -> Readiness:
    """Checks everything that would stop every dispatch. *now* tells this machine's time in seconds since the epoch.

    Raises :class:`~runner_e2e.errors.RefusedError` with every reason, and :class:`~runner_e2e.errors.GitHubError` where
    GitHub does not say what is needed.
    """
    answer = api.get("")
    number, branch = value_of(answer.data, int, "id"), value_of(answer.data, str, "default_branch")
    check_same_repository(request, number, value_of(answer.data, str, "full_name"))
    problems = [*_time(answer, now()), *_repository(answer.data), *_actions(api)]
    found = find_definition(api, request.workflow, branch)
    problems += dispatch_problems(
        found, name=request.workflow, repository=request.repository, branch=branch, inputs=request.inputs
    )
    if problems:
        raise RefusedError.of(problems)
    return Readiness(repository_id=number, branch=branch, path=found.path if found else "")


def check_same_repository(request: Request, number: int, full_name: str) -> None:
    """Raises :class:`~runner_e2e.errors.RefusedError` where the repository was renamed, transferred or replaced."""
    if request.repository_id is not None:
        check_same_number(request.repository, number, request.repository_id)
    if full_name.lower() != request.repository.lower():
        raise RefusedError(
            f"{request.repository} is called {full_name} now",
            why="it was renamed or transferred, and sealed selections are bound to the name",
            fix=f"watch what was sent to its end, then plan the rest anew with --repo {full_name}",
        )


def check_same_number(name: str, number: int, before: int) -> None:
    """Raises :class:`~runner_e2e.errors.RefusedError` where the repository *name* is not the one that it was."""
    if number != before:
        raise RefusedError(
            f"{name} is another repository than the one that the campaign was started in",
            why=f"its id is {number} and was {before}: the old one was renamed or deleted",
            fix="look at what became of the old one; plan a new campaign for this one",
        )


def check_inputs(inputs: Mapping[str, str]) -> None:
    """Raises :class:`~runner_e2e.errors.RefusedError` for inputs that GitHub would not take."""
    size = sum(len(name) + len(value) for name, value in inputs.items())
    if len(inputs) > MOST_INPUTS:
        raise RefusedError(
            f"the dispatch has {len(inputs)} inputs",
            why=f"GitHub takes {MOST_INPUTS}",
            fix="remove some from the workflow",
        )
    if size > MOST_CHARACTERS:
        longest = max(inputs, key=lambda name: len(inputs[name]))
        raise RefusedError(
            f"the inputs of the dispatch have {size:,} characters",
            why=f"GitHub takes {MOST_CHARACTERS:,}; `{longest}` alone has {len(inputs[longest]):,}",
            fix="plan fewer cells a shard, or shorter ids",
        )


def read_identity(api: GitHubApi) -> Identity:
    """Whose token it is; of a token of an app GitHub does not say. Raises :class:`~runner_e2e.errors.GitHubError`."""
    answer = api.get("/user", accept={403})
    if answer.status == 200:
        return Identity(id=value_of(answer.data, int, "id"), login=value_of(answer.data, str, "login"))
    # Another refusal proves nothing, and our own runs would be taken for those of strangers.
    if "not accessible by integration" not in server_text(answer).lower():
        raise problem_of(answer)
    return Identity(id=None)


def _time(answer: Answer, now: float) -> Iterator[Problem]:
    """A nonce holds the time, and a run compares it with GitHub's."""
    try:
        there = email.utils.parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (TypeError, ValueError, OverflowError):
        return
    if abs(now - there) > CLOCK_SKEW:
        ahead = "ahead of" if now > there else "behind"
        yield Problem(
            what=f"the clock of this machine is {abs(now - there) / 60:.0f} minutes {ahead} GitHub's",
            why="runs would hold the nonces of this campaign to be stale, or made in the future",
            fix="set the clock",
        )


def _repository(data: object) -> Iterator[Problem]:
    if isinstance(data, dict) and (data.get("archived") is True or data.get("disabled") is True):
        yield Problem(
            what="the repository is archived or disabled", why="Actions does not run there", fix="unarchive it"
        )


def _actions(api: GitHubApi) -> Iterator[Problem]:
    """Whether Actions is enabled; few tokens may see that, and the others learn it from the first dispatch."""
    answer = api.get("actions/permissions", accept={403, 404})
    if answer.status == 200 and not value_of(answer.data, bool, "enabled"):
        yield Problem(
            what="Actions is disabled in this repository",
            fix="enable it: Settings > Actions > General, or ask an owner",
        )
