"""Is a repository ready to pay for cells: what the templates need there, checked over GitHub's API, nothing changed."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from runner_e2e.cells.wording import count
from runner_e2e.dispatch.answers import permission_hint
from runner_e2e.dispatch.gate import parse_allowlist
from runner_e2e.dispatch.github_api import segment
from runner_e2e.dispatch.money import usd
from runner_e2e.dispatch.preflight import may_claim
from runner_e2e.dispatch.records import RepositoryRecord, read_repository, value_of
from runner_e2e.dispatch.shared_ledger import BRANCH, SharedLedger
from runner_e2e.errors import ConfigurationError, GitHubError, RefusedError
from runner_e2e.yaml_positions import Mapping, Scalar, compose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runner_e2e.dispatch.answers import Answer
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.yaml_positions import Node

__all__ = ["INPUTS", "Check", "Expected", "examine"]

State = Literal["ok", "warning", "failed", "unknown"]

_ACTIONS_BOT = 41_898_282  # the account of every GITHUB_TOKEN on github.com

INPUTS = ("nonce", "selection", "target")
"""What `runner-e2e dispatch seal` makes for a workflow."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The names that the workflow uses. *secrets* are those of the environment, by name."""

    workflow: str = "paid-campaign.yml"
    environment: str = "paid-evals"
    allowlist: str = "RUNNER_E2E_ALLOWLIST"
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at. *fix* says what to do where it is not ``ok``; ``unknown``: it could not be seen."""

    name: str
    state: State
    what: str
    fix: str = ""


def examine(api: GitHubApi, expected: Expected) -> tuple[Check, ...]:
    """All checks in the order in which a person sets things up.

    Raises :class:`~runner_e2e.errors.GitHubError` where the repository itself cannot be read: nothing else can be told
    then.
    """
    repository = read_repository(api)
    found = [
        Check(name="repository", state="ok", what=f"{repository.full_name}, default branch {repository.default_branch}")
    ]
    for check in _CHECKS:
        try:
            found += check(api, repository, expected)
        except GitHubError as error:
            name = check.__name__.strip("_").replace("_", " ")
            found.append(Check(name=name, state="unknown", what=error.problem.what, fix=error.problem.fix))
    return tuple(found)


def _actions(api: GitHubApi, _: RepositoryRecord, __: Expected) -> Iterator[Check]:
    answer = api.get("actions/permissions", accept={403, 404})
    if answer.status != 200:
        yield _unseen("actions", "the settings of Actions", "administration: read", answer)
    elif not value_of(answer.data, bool, "enabled"):
        yield Check(
            name="actions", state="failed", what="Actions is disabled", fix="enable it: Settings > Actions > General"
        )
    else:
        yield Check(name="actions", state="ok", what="Actions is enabled")


def _default_permissions(api: GitHubApi, _: RepositoryRecord, __: Expected) -> Iterator[Check]:
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


def _branch(api: GitHubApi, repository: RepositoryRecord, _: Expected) -> Iterator[Check]:
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


def _environment(api: GitHubApi, _: RepositoryRecord, expected: Expected) -> Iterator[Check]:
    name = expected.environment
    answer = api.get(f"environments/{segment(name)}", accept={404})
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


def _secrets(api: GitHubApi, _: RepositoryRecord, expected: Expected) -> Iterator[Check]:
    path = f"environments/{segment(expected.environment)}/secrets"
    answer = api.get(path, accept={403, 404})
    if answer.status != 200:
        what = f"the names of the secrets of {expected.environment}"
        yield _unseen("secrets", what, "environments: read", answer)
        return
    names = {value_of(each, str, "name") for each in api.pages(path, "secrets")}
    missing = [name for name in expected.secrets if name not in names]
    if missing:
        yield Check(
            name="secrets",
            state="failed",
            what=f"{expected.environment} has no secret {', '.join(missing)}",
            fix=f"gh secret set {missing[0]} --env {expected.environment}",
        )
    else:
        yield Check(name="secrets", state="ok", what=f"{expected.environment} has {', '.join(expected.secrets)}")
    outside = api.get("actions/secrets", {"per_page": 100}, accept={403, 404})
    if outside.status == 200 and isinstance(outside.data, dict):
        everywhere = {value_of(each, str, "name") for each in outside.data.get("secrets", [])}
        for name in sorted(everywhere & set(expected.secrets)):
            yield Check(
                name="secrets",
                state="failed",
                what=f"{name} is a secret of the repository too: every workflow on every branch can use it",
                fix=f"gh secret delete {name}",
            )


def _allowlist(api: GitHubApi, _: RepositoryRecord, expected: Expected) -> Iterator[Check]:
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


def _workflow(api: GitHubApi, repository: RepositoryRecord, expected: Expected) -> Iterator[Check]:
    name = expected.workflow
    answer = api.get(f"actions/workflows/{segment(name)}", accept={404})
    if answer.status == 404:
        yield Check(
            name="workflow",
            state="failed",
            what=f"there is no workflow {name} on {repository.default_branch}",
            fix="copy workflows-templates/paid-campaign.yml to .github/workflows and push it",
        )
        return
    if value_of(answer.data, str, "state") != "active":
        yield Check(name="workflow", state="failed", what=f"{name} is disabled", fix=f"gh workflow enable {name}")
    path = value_of(answer.data, str, "path")
    content = api.get(f"contents/{segment(path)}", {"ref": repository.default_branch}).data
    yield from _content(path, value_of(content, str, "content"))


def _content(path: str, encoded: str) -> Iterator[Check]:
    from runner_e2e.lint.workflow import Workflow

    try:
        root = compose(base64.b64decode(encoded).decode(), path=path)
    except (ConfigurationError, binascii.Error, UnicodeDecodeError):
        yield Check(name="workflow", state="failed", what=f"{path} is no valid YAML", fix=f"runner-e2e lint {path}")
        return
    declared = _at(root, "on", "workflow_dispatch", "inputs")
    names = (
        {key.value for key, _ in declared.pairs if isinstance(key, Scalar)} if isinstance(declared, Mapping) else set()
    )
    missing = [name for name in INPUTS if name not in names]
    if missing:
        yield Check(
            name="workflow",
            state="failed",
            what=f"{path} does not have the inputs {', '.join(missing)}",
            fix="take them from workflows-templates/paid-campaign.yml",
        )
    else:
        yield Check(name="workflow", state="ok", what=f"{path} has the inputs {', '.join(INPUTS)}")
    run_name = _at(root, "run-name")
    if not (isinstance(run_name, Scalar) and "inputs.nonce" in run_name.value):
        yield Check(
            name="workflow",
            state="failed",
            what=f"the run-name of {path} does not end with the nonce: a lost reply could not be found again",
            fix="run-name: Paid campaign ${{ inputs.nonce || github.run_id }}",
        )

    if not may_claim(Workflow(root)):
        yield Check(
            name="workflow",
            state="failed",
            what=f"{path} has no step with `command: claim`: a dispatch that arrives twice would be paid for twice",
            fix="take the job `claim` from workflows-templates/paid-campaign.yml, and let the paid jobs need it",
        )


def _caps(api: GitHubApi, _: RepositoryRecord, __: Expected) -> Iterator[Check]:
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
            what="no cap limits what campaigns and scheduled runs may spend",
            fix=f"runner-e2e dispatch caps --day USD (kept on the branch {BRANCH})",
        )


def _at(node: Node | None, *names: str) -> Node | None:
    for name in names:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _unseen(name: str, what: str, permission: str, answer: Answer) -> Check:
    return Check(
        name=name,
        state="unknown",
        what=f"the token may not see {what}",
        fix=f"{permission_hint(answer, wanted=permission)}; or look yourself",
    )


_CHECKS: tuple[Callable[[GitHubApi, RepositoryRecord, Expected], Iterator[Check]], ...] = (
    _actions,
    _default_permissions,
    _branch,
    _environment,
    _secrets,
    _allowlist,
    _workflow,
    _caps,
)
