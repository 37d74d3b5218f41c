"""Lets a run in: reads GitHub's records, passes the gate, pins the target, checks the claim. In this order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner_e2e.dispatch.claim import check_claim
from runner_e2e.dispatch.gate import Passage, parse_allowlist, pass_gate
from runner_e2e.dispatch.records import RepositoryRecord, read_repository, read_run
from runner_e2e.dispatch.target import Target, resolve_target
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from runner_e2e.dispatch.claim import Claim
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.records import RunRecord
    from runner_e2e.gha import RunContexts

__all__ = ["Admission", "Application", "admit", "describe", "read_own_run"]

_NUMBER = re.compile(r"[1-9][0-9]{0,19}")


@dataclass(frozen=True, kw_only=True)
class Application:
    """What a job brings to the gate.

    *allowlist* is the JSON list of numeric ids. *branch* is the branch that is paid for (empty: the commit of the run
    itself). *default_branch* is what an earlier gate of the same attempt found, which saves a request; empty asks
    GitHub. *claim* is checked where it is given.
    """

    allowlist: str
    branch: str = ""
    default_branch: str = ""
    claim: str = ""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """A run that may pay, for *target*; *claim* where the job was given one."""

    run: RunRecord
    default_branch: str
    target: Target
    claim: Claim | None = None


def admit(api: GitHubApi, contexts: RunContexts, application: Application) -> Admission:
    """Decides whether this run may pay.

    Raises :class:`~runner_e2e.errors.RefusedError` with every reason, and :class:`~runner_e2e.errors.GitHubError`
    where GitHub does not say what is needed: then the run may not pay either.
    """
    allowed = parse_allowlist(application.allowlist)
    run = read_own_run(api, contexts)
    if application.default_branch:
        repository = RepositoryRecord(
            id=run.repository_id, full_name=run.repository, default_branch=application.default_branch
        )
    else:
        repository = read_repository(api)
    pass_gate(Passage(contexts=contexts, run=run, repository=repository, allowlist=allowed))
    claim = None
    if application.claim:
        claim = check_claim(application.claim, run=contexts.run_id, attempt=contexts.run_attempt)
    if application.branch:
        target = resolve_target(api, application.branch)
    else:
        target = Target(sha=run.head_sha, ref=f"refs/heads/{run.head_branch}")
    return Admission(run=run, default_branch=repository.default_branch, target=target, claim=claim)


def read_own_run(api: GitHubApi, contexts: RunContexts) -> RunRecord:
    """The record of the attempt that this job belongs to, by its contexts.

    Raises :class:`~runner_e2e.errors.RefusedError` where they name none, and
    :class:`~runner_e2e.errors.GitHubError` where GitHub gives the record of another.
    """
    numbers = (contexts.run_id, contexts.run_attempt)
    if not all(_NUMBER.fullmatch(each) for each in numbers):
        raise RefusedError(
            "the job does not say which run it belongs to",
            why="GITHUB_RUN_ID or GITHUB_RUN_ATTEMPT is not a number",
            fix="run it as a step of a job",
        )
    run = read_run(api, *map(int, numbers))
    if (str(run.id), str(run.attempt)) != numbers:
        raise GitHubError(
            f"GitHub's API answered run {run.id}, attempt {run.attempt}, when it was asked for run {numbers[0]}, "
            f"attempt {numbers[1]}",
            fix="start a new run; check what stands between this runner and GitHub",
        )
    return run


def describe(admission: Admission) -> tuple[str, ...]:
    """What was decided, a line each: who pays, for what, under which claim."""
    run = admission.run
    who = f"{run.actor.login} (id {run.actor.id})"
    if run.triggering_actor.id != run.actor.id:
        who += f", again by {run.triggering_actor.login} (id {run.triggering_actor.id})"
    lines = [
        f"may pay: `{run.event}` by {who}, definition on {admission.default_branch}, attempt {run.attempt}",
        f"target: {admission.target.ref} at {admission.target.sha}",
    ]
    if admission.claim is not None:
        lines.append(f"claim: {admission.claim.nonce}")
    return tuple(lines)
