"""Is a repository ready to pay for cells: what the templates need there, checked over GitHub's API, nothing changed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from runner_e2e.cells.handles import DEFAULT_KEY_VARIABLE
from runner_e2e.cells.wording import count
from runner_e2e.dispatch.answers import permission_hint
from runner_e2e.dispatch.definition import (
    CAMPAIGN_INPUTS,
    CELL_WORKFLOW,
    READY_WORKFLOWS,
    cell_problems,
    dispatch_problems,
    find_definition,
)
from runner_e2e.dispatch.gate import parse_allowlist
from runner_e2e.dispatch.github_api import segment
from runner_e2e.dispatch.money import usd
from runner_e2e.dispatch.records import RepositoryRecord, read_repository, value_of
from runner_e2e.dispatch.shared_ledger import BRANCH, SharedLedger
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runner_e2e.dispatch.answers import Answer
    from runner_e2e.dispatch.definition import Definition
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.errors import Problem

__all__ = ["Check", "Expected", "examine"]

State = Literal["ok", "warning", "failed", "unknown"]

_ACTIONS_BOT = 41_898_282  # the account of every GITHUB_TOKEN on github.com


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The names that are used. *workflows* are files that must be there; without any, one of the ready ones must be.

    *secrets* are those of the environment, by name, beside the campaign key's.
    """

    workflows: tuple[str, ...] = ()
    environment: str = "paid-evals"
    allowlist: str = "RUNNER_E2E_ALLOWLIST"
    secrets: tuple[str, ...] = ()
    campaign_key: str = DEFAULT_KEY_VARIABLE


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at. *fix* says what to do where it is not ``ok``; ``unknown``: it could not be seen."""

    name: str
    state: State
    what: str
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """What is examined. The definitions of the workflows are read once."""

    api: GitHubApi
    repository: RepositoryRecord
    expected: Expected

    @cached_property
    def environment(self) -> Answer:
        """The environment's record, or that there is none. Raises :class:`~runner_e2e.errors.GitHubError`."""
        return self.api.get(f"environments/{segment(self.expected.environment)}", accept={404})

    @cached_property
    def definitions(self) -> dict[str, Definition | None]:
        """The workflows on the default branch, by the file's name. Raises :class:`~runner_e2e.errors.GitHubError`."""
        names = self.expected.workflows or READY_WORKFLOWS
        found = {name: find_definition(self.api, name, self.repository.default_branch) for name in names}
        if self.expected.workflows:
            return found
        return {name: each for name, each in found.items() if each} or {READY_WORKFLOWS[0]: None}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that the environment must have: a workflow for single cells needs no campaign key."""
        key = self.expected.campaign_key
        with suppress(GitHubError):  # what cannot be read is told where the workflow is looked at
            found = self.definitions.values()
            if not any(each is None or each.takes_campaigns or key in each.secrets for each in found):
                return self.expected.secrets
        return (key, *self.expected.secrets)


def examine(api: GitHubApi, expected: Expected) -> tuple[Check, ...]:
    """All checks in the order in which a person sets things up.

    Raises :class:`~runner_e2e.errors.GitHubError` where the repository itself cannot be read: nothing else can be told
    then.
    """
    repository = read_repository(api)
    found = [
        Check(name="repository", state="ok", what=f"{repository.full_name}, default branch {repository.default_branch}")
    ]
    subject = _Subject(api=api, repository=repository, expected=expected)
    for check in _CHECKS:
        try:
            found += check(subject)
        except GitHubError as error:
            name = check.__name__.strip("_").replace("_", " ")
            found.append(Check(name=name, state="unknown", what=error.problem.what, fix=error.problem.fix))
    return tuple(found)


def _actions(subject: _Subject) -> Iterator[Check]:
    api = subject.api
    answer = api.get("actions/permissions", accept={403, 404})
    if answer.status != 200:
        yield _unseen("actions", "the settings of Actions", "administration: read", answer)
    elif not value_of(answer.data, bool, "enabled"):
        yield Check(
            name="actions", state="failed", what="Actions is disabled", fix="enable it: Settings > Actions > General"
        )
    else:
        yield Check(name="actions", state="ok", what="Actions is enabled")


def _default_permissions(subject: _Subject) -> Iterator[Check]:
    api = subject.api
    answer = api.get("actions/permissions/workflow", accept={403, 404})
    if answer.status != 200:
        yield _unseen("token", "what GITHUB_TOKEN may do by default", "administration: read", answer)
    elif value_of(answer.data, str, "default_workflow_permissions") != "read":
        yield Check(
            name="token",
            state="warning",
            what="GITHUB_TOKEN may write by default",
            fix="Settings > Actions > General > Workflow permissions: read",
        )
    else:
        yield Check(name="token", state="ok", what="GITHUB_TOKEN may only read by default")


def _branch(subject: _Subject) -> Iterator[Check]:
    api, repository = subject.api, subject.repository
    data = api.get(f"branches/{segment(repository.default_branch)}").data
    if value_of(data, bool, "protected"):
        yield Check(name="default branch", state="ok", what=f"{repository.default_branch} is protected")
    else:
        yield Check(
            name="default branch",
            state="failed",
            what=f"{repository.default_branch} is not protected: who can push to it decides what pays",
            fix="Settings > Branches (or Rules): require a pull request with a review",
        )


def _environment(subject: _Subject) -> Iterator[Check]:
    name, answer = subject.expected.environment, subject.environment
    if answer.status == 404:
        yield Check(
            name="environment",
            state="failed",
            what=f"there is no environment {name}",
            fix=f"Settings > Environments > New environment: {name}, deployments from the default branch only",
        )
        return
    data = answer.data
    if isinstance(data, dict) and data.get("deployment_branch_policy"):
        yield Check(name="environment", state="ok", what=f"{name} takes deployments from chosen branches only")
    else:
        yield Check(
            name="environment",
            state="failed",
            what=f"{name} takes deployments from every branch: a workflow on any branch gets its secrets",
            fix="Settings > Environments: deployment branches, the default branch only",
        )


def _secrets(subject: _Subject) -> Iterator[Check]:
    api, expected, wanted = subject.api, subject.expected, subject.secrets
    path = f"environments/{segment(expected.environment)}/secrets"
    names: set[str] = set()
    if subject.environment.status != 404:
        answer = api.get(path, accept={403, 404})
        if answer.status != 200:
            what = f"the names of the secrets of {expected.environment}"
            yield _unseen("secrets", what, "environments: read", answer)
            return
        names = {value_of(each, str, "name") for each in api.pages(path, "secrets")}
    missing = [name for name in wanted if name not in names]
    if missing:
        yield Check(
            name="secrets",
            state="failed",
            what=f"{expected.environment} has no secret {', '.join(missing)}",
            fix=f"gh secret set {missing[0]} --env {expected.environment}",
        )
    elif wanted:
        yield Check(name="secrets", state="ok", what=f"{expected.environment} has {', '.join(wanted)}")
    else:
        yield Check(name="secrets", state="ok", what="no credential is needed by the catalog")
    outside = api.get("actions/secrets", {"per_page": 100}, accept={403, 404})
    if outside.status == 200 and isinstance(outside.data, dict):
        everywhere = {value_of(each, str, "name") for each in outside.data.get("secrets", [])}
        for name in sorted(everywhere & set(wanted)):
            yield Check(
                name="secrets",
                state="failed",
                what=f"{name} is a secret of the repository too: every workflow on every branch can use it",
                fix=f"gh secret delete {name}",
            )


def _allowlist(subject: _Subject) -> Iterator[Check]:
    api, expected = subject.api, subject.expected
    answer = api.get(f"actions/variables/{expected.allowlist}", accept={403, 404})
    fix = f"gh variable set {expected.allowlist} --body '[1234]' (ids by `gh api users/NAME --jq .id`)"
    if answer.status == 403:
        yield _unseen("allowlist", f"the variable {expected.allowlist}", "variables: read", answer)
    elif answer.status == 404:
        yield Check(name="allowlist", state="failed", what=f"there is no variable {expected.allowlist}", fix=fix)
    else:
        try:
            ids = parse_allowlist(value_of(answer.data, str, "value"), name=f"variable {expected.allowlist}")
        except RefusedError as error:
            yield Check(name="allowlist", state="failed", what=error.problem.what, fix=fix)
            return
        yield Check(name="allowlist", state="ok", what=f"{expected.allowlist} has {count(len(ids), 'account')}")
        if _ACTIONS_BOT in ids:
            yield Check(
                name="allowlist",
                state="warning",
                what=f"{expected.allowlist} has github-actions[bot]: every workflow of the repository may pay",
                fix=f"take {_ACTIONS_BOT} off the list; use an app of its own for what must start runs",
            )


def _workflow(subject: _Subject) -> Iterator[Check]:
    for name, found in subject.definitions.items():
        yield from _definition(subject.repository, name, found)
        if found is not None:
            yield from _keys(found, subject.expected.secrets)


def _definition(repository: RepositoryRecord, name: str, found: Definition | None) -> Iterator[Check]:
    of = {"name": name, "repository": repository.full_name, "branch": repository.default_branch}
    campaigns = name != CELL_WORKFLOW if found is None else found.takes_campaigns
    problems = dispatch_problems(found, inputs=CAMPAIGN_INPUTS, **of) if campaigns else cell_problems(found, **of)
    failed = [_failed("workflow", problem) for problem in problems]
    if failed:
        yield from failed
    elif found is not None and campaigns:
        yield Check(name="workflow", state="ok", what=f"{found.path} has the inputs {', '.join(CAMPAIGN_INPUTS)}")
    elif found is not None:
        yield Check(name="workflow", state="ok", what=f"{found.path} pays for one cell that is named, and claims")


def _keys(found: Definition, wanted: tuple[str, ...]) -> Iterator[Check]:
    """Keys that no step of *found* gets: a cell that is paid with one is refused in its own job, after the claim."""
    missing = [] if found.may_take_any_secret else [name for name in wanted if name.upper() not in found.secrets]
    if missing:
        key = missing[0]
        chosen = f"contains(fromJSON(needs.plan.outputs.credentials), '{key}')"
        if found.takes_campaigns:
            chosen = f"matrix.credential == '{key}'"
        yield Check(
            name="workflow",
            state="warning",
            what=f"{found.path} does not give {', '.join(missing)}, which the catalog names, to the step that pays",
            fix=f"{key}: ${{{{ {chosen} && secrets.{key} || '' }}}} in the `env:` of that step",
        )


def _failed(name: str, problem: Problem) -> Check:
    """A problem that a client would be refused with, for a person who has not sent anything yet."""
    return Check(name=name, state="failed", what=f"{problem.what}: {problem.why}", fix=problem.fix)


def _caps(subject: _Subject) -> Iterator[Check]:
    api = subject.api
    ledger = SharedLedger(api)
    try:
        caps, rooms = ledger.caps(), ledger.rooms()
    except RefusedError as error:
        yield Check(name="caps", state="failed", what=error.problem.what, fix=error.problem.fix)
        return
    limits = [] if caps.campaign is None else [f"{usd(caps.campaign)} a campaign"]
    limits += [
        f"{usd(room.cap)} a {period}, {usd(room.left)} left"
        for period, room in zip(("day", "month"), rooms, strict=True)
        if room.cap is not None and room.left is not None
    ]
    if limits:
        yield Check(name="caps", state="ok", what=f"at most {'; '.join(limits)}")
    else:
        yield Check(
            name="caps",
            state="warning",
            what="no cap limits what runs may spend",
            fix=f"runner-e2e dispatch caps --day USD (kept on the branch {BRANCH})",
        )


def _unseen(name: str, what: str, permission: str, answer: Answer) -> Check:
    return Check(
        name=name,
        state="unknown",
        what=f"the token may not see {what}",
        fix=f"{permission_hint(answer, wanted=permission)}; or look yourself",
    )


_CHECKS: tuple[Callable[[_Subject], Iterator[Check]], ...] = (
    _actions,
    _default_permissions,
    _branch,
    _environment,
    _secrets,
    _allowlist,
    _workflow,
    _caps,
)
