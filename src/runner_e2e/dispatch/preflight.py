"""Before anything is sent: is the repository the one that was planned for, and will its workflow take the dispatch?

Everything that would make GitHub refuse each dispatch, or let a run end before it pays, is found out here, once.
"""

from __future__ import annotations

import base64
import binascii
import email.utils
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.answers import problem_of, server_text
from runner_e2e.dispatch.attachment import CLOCK_SKEW, Identity
from runner_e2e.dispatch.github_api import segment
from runner_e2e.dispatch.records import value_of
from runner_e2e.errors import ConfigurationError, Problem, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from runner_e2e.dispatch.answers import Answer
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.lint.workflow import Workflow

__all__ = [
    "MOST_CHARACTERS",
    "MOST_INPUTS",
    "Readiness",
    "Request",
    "check_inputs",
    "check_same_number",
    "check_same_repository",
    "may_claim",
    "preflight",
    "read_identity",
]

MOST_INPUTS: Final = 25
MOST_CHARACTERS: Final = 65_535
"""Of all inputs of one dispatch together. https://docs.github.com/en/actions/reference/limits"""

_TEMPLATE: Final = "take it from workflows-templates/paid-campaign.yml"


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
    path = ""
    found = api.get(f"actions/workflows/{segment(request.workflow)}", accept={404})
    if found.status == 404:
        problems.append(
            Problem(
                what=f"{request.repository} has no workflow {request.workflow}",
                why=f"it is not on {branch}, or the token does not have the permission actions: write",
                fix="copy workflows-templates/paid-campaign.yml to .github/workflows and push it",
            )
        )
    else:
        path = value_of(found.data, str, "path")
        state = value_of(found.data, str, "state")
        if state != "active":
            problems.append(
                Problem(
                    what=f"the workflow {request.workflow} is disabled (`{state}`)",
                    why="GitHub disables schedules of quiet repositories after 60 days, or a person did",
                    fix=f"gh workflow enable {request.workflow} --repo {request.repository}",
                )
            )
        problems += _definition(api, path, branch, request)
    if problems:
        raise RefusedError.of(problems)
    return Readiness(repository_id=number, branch=branch, path=path)


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


def _definition(api: GitHubApi, path: str, branch: str, request: Request) -> Iterator[Problem]:
    """The definition takes our inputs, needs no others, and names its runs by the nonce."""
    try:
        workflow = _read(api, path, branch)
    except ConfigurationError as error:
        yield Problem(what=f"{path} is no valid workflow", why=error.problem.what, fix=f"runner-e2e lint {path}")
        return
    if "workflow_dispatch" not in workflow.triggers:
        yield Problem(what=f"{path} has no trigger `workflow_dispatch`", why="nothing can be sent to it", fix=_TEMPLATE)
        return
    declared = {each.name: each for each in workflow.inputs("workflow_dispatch")}
    missing = [name for name in request.inputs if name not in declared]
    if missing:
        yield Problem(
            what=f"{path} on {branch} does not have the input {', '.join(missing)}",
            why="GitHub refuses a dispatch with an input that the workflow does not declare",
            fix=_TEMPLATE,
        )
    if len(declared) > MOST_INPUTS:
        yield Problem(what=f"{path} has {len(declared)} inputs", why=f"GitHub takes {MOST_INPUTS}", fix="remove some")
    for name, each in declared.items():
        if name not in request.inputs and each.text("required") == "true" and not each.text("default"):
            yield Problem(
                what=f"{path} requires the input {name[:60]!r}",
                why="a campaign gives nonce, selection and target alone",
                fix="give it a default",
            )
    if not may_claim(workflow):
        yield Problem(
            what=f"{path} on {branch} has no step with `command: claim`",
            why="a run without the claim would pay for a dispatch that arrives twice as often as it arrives",
            fix=_TEMPLATE,
        )
    if "inputs.nonce" not in workflow.text("run-name"):
        yield Problem(
            what=f"the run-name of {path} does not end with the nonce",
            why="a run whose dispatch got no reply could not be found again",
            fix="run-name: Paid campaign ${{ inputs.nonce || github.run_id }}",
        )


def may_claim(workflow: Workflow) -> bool:
    """Whether a step takes the claim, as far as this file tells: what it calls in other files may."""
    from runner_e2e.lint.workflow import Block

    steps = [step for job in workflow.jobs for step in job.steps]
    return (
        any(job.uses is not None for job in workflow.jobs)
        or any(step.uses is not None and step.uses.value.startswith("./") for step in steps)
        or any(Block(step.arguments).text("command") == "claim" for step in steps)
    )


def _read(api: GitHubApi, path: str, branch: str) -> Workflow:
    from runner_e2e.lint.workflow import Workflow
    from runner_e2e.yaml_positions import compose

    encoded = value_of(api.get(f"contents/{segment(path)}", {"ref": branch}).data, str, "content")
    try:
        text = base64.b64decode(encoded).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ConfigurationError(f"{path} is not UTF-8") from None
    return Workflow(compose(text, path=path))
