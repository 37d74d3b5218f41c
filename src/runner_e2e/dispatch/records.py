"""What GitHub's API says of runs, accounts and repositories, as plain typed records.

Shapes follow GitHub's OpenAPI description (``workflow-run``, ``simple-user``, ``full-repository``). A record that
lacks what a decision needs is refused, never filled in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = [
    "Account",
    "RepositoryRecord",
    "RunRecord",
    "moment_of",
    "read_last_attempt",
    "read_repository",
    "read_run",
    "run_of",
    "value_of",
]

_PATH_AND_REF = re.compile(r"(.*?\.ya?ml)@.*", re.DOTALL)
_Type = TypeVar("_Type", str, int, bool)


@dataclass(frozen=True, kw_only=True)
class Account:
    """A user, a bot or an app. *id* stays when *login* is changed; *kind* is GitHub's ``type``."""

    id: int
    login: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One attempt of a run. *path* is the workflow's file without a ref; *repository* is ``OWNER/NAME``.

    *head_branch* is the name of the branch or tag that the definition came from; GitHub does not tell which. *title* is
    the run's name, empty where an old server does not tell it. *started_at* is when this attempt began, *created_at*
    when the first one did.
    """

    id: int
    attempt: int
    event: str
    status: str
    path: str
    head_branch: str
    head_sha: str
    repository: str
    repository_id: int
    head_repository_id: int
    title: str
    created_at: str
    actor: Account
    triggering_actor: Account
    started_at: str = ""


@dataclass(frozen=True, kw_only=True)
class RepositoryRecord:
    """A repository; ``full_name`` is ``OWNER/NAME``."""

    id: int
    full_name: str
    default_branch: str


def read_run(api: GitHubApi, run: int, attempt: int) -> RunRecord:
    """Reads the record of one attempt. Raises :class:`~runner_e2e.errors.GitHubError`."""
    return run_of(api.get(f"actions/runs/{run}/attempts/{attempt}").data)


def read_last_attempt(api: GitHubApi, run: int) -> RunRecord:
    """Reads the record of a run's newest attempt. Raises :class:`~runner_e2e.errors.GitHubError`."""
    return run_of(api.get(f"actions/runs/{run}").data)


def read_repository(api: GitHubApi) -> RepositoryRecord:
    """Reads the repository's record. Raises :class:`~runner_e2e.errors.GitHubError`."""
    data = api.get("").data
    return RepositoryRecord(
        id=value_of(data, int, "id"),
        full_name=value_of(data, str, "full_name"),
        default_branch=value_of(data, str, "default_branch"),
    )


def run_of(data: object) -> RunRecord:
    """The record in the JSON of a run. Raises :class:`~runner_e2e.errors.GitHubError` for one that lacks a part."""
    return RunRecord(
        id=value_of(data, int, "id"),
        attempt=value_of(data, int, "run_attempt"),
        event=value_of(data, str, "event"),
        status=value_of(data, str, "status"),
        # Some answers have `path@ref`; both may hold an @ of their own.
        path=_PATH_AND_REF.sub(r"\1", value_of(data, str, "path")),
        head_branch=value_of(data, str, "head_branch"),
        head_sha=value_of(data, str, "head_sha"),
        repository=value_of(data, str, "repository", "full_name"),
        repository_id=value_of(data, int, "repository", "id"),
        head_repository_id=value_of(data, int, "head_repository", "id"),
        # Servers before 3.7 have none; who needs it says so.
        title=value_of(data, str, "display_title") if _has(data, "display_title") else "",
        created_at=value_of(data, str, "created_at"),
        actor=_account(data, "actor"),
        triggering_actor=_account(data, "triggering_actor"),
        started_at=value_of(data, str, "run_started_at") if _has(data, "run_started_at") else "",
    )


def value_of(data: object, kind: type[_Type], *names: str) -> _Type:
    """The value at *names*, one inside the other. Raises :class:`~runner_e2e.errors.GitHubError` where it is missing.

    ``true`` is no number here, though Python holds it to be one.
    """
    found = data
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise GitHubError(
            f"GitHub's answer has no usable `{'.'.join(names)}`",
            why=f"it is {type(found).__name__} and should be {kind.__name__}",
            fix="try again; an Enterprise Server may be too old",
        )
    return found


def moment_of(text: str) -> datetime:
    """The time that GitHub writes as ``2026-01-01T00:00:00Z``. Raises :class:`~runner_e2e.errors.GitHubError`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise GitHubError(f"GitHub's answer has {text[:40]!r} for a time", fix="try again")
    return found


def _has(data: object, name: str) -> bool:
    return isinstance(data, dict) and data.get(name) is not None


def _account(data: object, name: str) -> Account:
    return Account(
        id=value_of(data, int, name, "id"),
        login=value_of(data, str, name, "login"),
        kind=value_of(data, str, name, "type"),
    )
