"""Who may pay: a pure decision over the run's own record, the contexts of its job, and the allowlist.

The record comes from GitHub's API and is what counts; contexts of the job can only disagree with it. Everything
that is not known is a refusal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import Problem, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runner_e2e.dispatch.records import Account, RepositoryRecord, RunRecord
    from runner_e2e.gha import RunContexts

__all__ = ["MOST_ALLOWED", "TRIGGERS", "Passage", "Refusal", "decide", "parse_allowlist", "pass_gate"]

TRIGGERS: Final = ("schedule", "workflow_dispatch")
"""Triggers that only people with write access, or the definition on the default branch, can fire."""

MOST_ALLOWED: Final = 500
_MOST_BYTES: Final = 20_000
_LARGEST_ID: Final = 2**53 - 1

_UNSAID: Final = "the job does not say where its workflow is from"
_WHO_EDITS: Final = "an administrator of the repository"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """One reason why this run may not pay: *check* names it, *fix* says who can change it and how."""

    check: str
    what: str
    why: str
    fix: str


@dataclass(frozen=True, kw_only=True)
class Passage:
    """What the gate looks at. *allowlist* holds numeric ids of accounts."""

    contexts: RunContexts
    run: RunRecord
    repository: RepositoryRecord
    allowlist: frozenset[int]


def parse_allowlist(text: str, *, name: str = "allowlist") -> frozenset[int]:
    """The numeric ids in a JSON list: ``[1234, 5678]``.

    Raises :class:`~runner_e2e.errors.RefusedError` for anything else: nothing, an empty list, texts, numbers that
    are no ids, more than :data:`MOST_ALLOWED`.
    """
    fix = f"{_WHO_EDITS} writes the numeric ids of those who may pay: [1234, 5678] (`gh api users/NAME --jq .id`)"
    if not text.strip():
        raise RefusedError(f"the {name} is empty", why="nobody may pay without one", fix=fix)
    if len(text.encode(errors="replace")) > _MOST_BYTES:
        raise RefusedError(f"the {name} has more than {_MOST_BYTES:,} bytes", why="that is no list of people", fix=fix)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedError(f"the {name} is not JSON", fix=fix) from None
    if not isinstance(data, list):
        raise RefusedError(f"the {name} is no JSON list", fix=fix)
    if not data:
        raise RefusedError(f"the {name} is an empty list", why="nobody may pay", fix=fix)
    if len(data) > MOST_ALLOWED:
        raise RefusedError(f"the {name} has {len(data)} entries", why=f"at most {MOST_ALLOWED} are read", fix=fix)
    for number, entry in enumerate(data, 1):
        if isinstance(entry, bool) or not isinstance(entry, int) or not 0 < entry <= _LARGEST_ID:
            why = "ids are numbers without quotes; names can change hands" if isinstance(entry, str) else "it is no id"
            raise RefusedError(f"entry {number} of the {name} is no number of an account", why=why, fix=fix)
    return frozenset(data)


def pass_gate(passage: Passage) -> None:
    """Returns where the run may pay. Raises :class:`~runner_e2e.errors.RefusedError` with every reason otherwise."""
    refusals = decide(passage)
    if refusals:
        raise RefusedError.of(Problem(what=each.what, why=each.why, fix=each.fix) for each in refusals)


def decide(passage: Passage) -> tuple[Refusal, ...]:
    """Every reason why this run may not pay; empty where it may."""
    return tuple(refusal for check in _CHECKS for refusal in check(passage))


def _identity(passage: Passage) -> Iterator[Refusal]:
    """The record is the one of this very run and attempt, of this repository, and no fork's."""
    contexts, run = passage.contexts, passage.run
    for name, said, recorded in (
        ("run id", contexts.run_id, str(run.id)),
        ("attempt", contexts.run_attempt, str(run.attempt)),
        ("repository id", contexts.repository_id, str(run.repository_id)),
        ("commit", contexts.sha, run.head_sha),
        ("commit of the workflow", contexts.workflow_sha, run.head_sha),
        ("trigger", contexts.event_name, run.event),
    ):
        if said and said != recorded:
            yield _disagreement(name, said, recorded)
    if contexts.repository and contexts.repository.lower() != run.repository.lower():
        yield _disagreement("repository", contexts.repository, run.repository)
    if not contexts.run_id or not contexts.run_attempt:
        yield Refusal(
            check="contexts",
            what="the job does not say which run it belongs to",
            why="GITHUB_RUN_ID or GITHUB_RUN_ATTEMPT is not set",
            fix="run the gate as a step of a job",
        )
    if passage.repository.id != run.repository_id:
        yield _disagreement("repository id", str(passage.repository.id), str(run.repository_id))
    if run.head_repository_id != run.repository_id:
        yield Refusal(
            check="repository",
            what="the run's commit comes from another repository",
            why="a fork's code may not pay here",
            fix="start the run from the default branch of this repository",
        )


def _trigger(passage: Passage) -> Iterator[Refusal]:
    if passage.run.event not in TRIGGERS:
        yield Refusal(
            check="trigger",
            what=f"the run was started by `{passage.run.event}`",
            why="only `schedule` and `workflow_dispatch` may pay: others can be fired from outside",
            fix="start the workflow by hand, or remove this trigger from the workflow",
        )


def _definition(passage: Passage) -> Iterator[Refusal]:
    """The workflow's definition is that of the default branch: by the record's name and by the full ref of the job."""
    contexts, run, default = passage.contexts, passage.run, passage.repository.default_branch
    fix = f"start it from the default branch `{default}`; who may change that branch decides what pays"
    if run.head_branch != default:
        yield Refusal(
            check="definition",
            what=f"the workflow's definition is on `{run.head_branch}`",
            why=f"the default branch is `{default}`, and only what was reviewed there may pay",
            fix=fix,
        )
        return
    # The record's name may be a tag's; the job's refs tell them apart.
    wanted = f"refs/heads/{default}"
    said = [each for each in (contexts.ref, _ref_of(contexts.workflow_ref)) if each]
    for ref in dict.fromkeys(said or [""]):
        if ref != wanted:
            yield Refusal(
                check="definition",
                what=f"the workflow's definition is `{ref[:100]}`" if ref else _UNSAID,
                why=f"it must be `{wanted}`: a tag can have the same name as the branch",
                fix=fix,
            )
    expected = f"/{run.path}@{wanted}"
    owner = contexts.workflow_ref.removesuffix(expected)
    if contexts.workflow_ref and (owner == contexts.workflow_ref or owner.lower() != run.repository.lower()):
        yield _disagreement("workflow", contexts.workflow_ref, run.repository + expected)


def _ref_of(workflow_ref: str) -> str:
    """The ref at the end of ``OWNER/NAME/PATH@REF``; paths and names of branches may hold an @ of their own."""
    _, at, rest = workflow_ref.partition("@refs/")
    return f"refs/{rest}" if at else workflow_ref.rpartition("@")[2]


def _accounts(passage: Passage) -> Iterator[Refusal]:
    contexts, run = passage.contexts, passage.run
    if contexts.actor_id and contexts.actor_id != str(run.actor.id):
        yield _disagreement("id of the actor", contexts.actor_id, str(run.actor.id))
    elif not contexts.actor_id and contexts.actor and contexts.actor.lower() != run.actor.login.lower():
        yield _disagreement("actor", contexts.actor, run.actor.login)
    said = contexts.triggering_actor.lower()
    # One who was renamed after starting the run has the old name in the job and the new one in the record.
    same_person = said == contexts.actor.lower() and run.actor.id == run.triggering_actor.id
    if said and said != run.triggering_actor.login.lower() and not (same_person and contexts.actor_id):
        yield _disagreement("triggering actor", contexts.triggering_actor, run.triggering_actor.login)
    accounts = {run.actor.id: ("actor", run.actor)}
    accounts.setdefault(run.triggering_actor.id, ("triggering actor", run.triggering_actor))
    for role, account in accounts.values():
        if account.id not in passage.allowlist:
            yield _not_allowed(role, account, run)


def _not_allowed(role: str, account: Account, run: RunRecord) -> Refusal:
    why = {
        "schedule": "a scheduled run counts as started by whoever last changed its schedule on the default branch",
        "workflow_dispatch": "this account started the run",
    }.get(run.event, "this account started the run")
    if role == "triggering actor":
        why = "this account started the run again"
    if account.kind != "User":
        why += f"; it is a {account.kind.lower()}, which whoever holds its token can use"
    return Refusal(
        check="allowlist",
        what=f"the {role} {account.login} (id {account.id}) is not on the allowlist",
        why=why,
        fix=f"{_WHO_EDITS} adds {account.id}, or somebody on the list starts a new run",
    )


def _disagreement(name: str, said: str, recorded: str) -> Refusal:
    return Refusal(
        check="agreement",
        what=f"the job and GitHub's record disagree about the {name}: {said[:100]!r} and {recorded[:100]!r}",
        why="one of them is not about this run",
        fix="start a new run; if it happens again, look for a step before the gate that changes the environment",
    )


_CHECKS: tuple[Callable[[Passage], Iterator[Refusal]], ...] = (_identity, _trigger, _definition, _accounts)
