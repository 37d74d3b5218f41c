"""For what is paid: a branch of the same repository, pinned to one full commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.records import value_of
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["Target", "check_branch_name", "resolve_target"]

_LONGEST_NAME: Final = 250  # bytes; GitHub refuses longer refs
_SHA = re.compile(r"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# git-check-ref-format(1): what no name of a branch can hold.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_PULL_REQUEST = re.compile(r"pull/\d+/(?:head|merge)")
_PREFIXES: Final = ("refs/", "heads/", "tags/", "remotes/", "origin/")


@dataclass(frozen=True, kw_only=True)
class Target:
    """One commit. *ref* is ``refs/heads/NAME`` at the time of asking; the branch may move, *sha* does not."""

    sha: str
    ref: str


def check_branch_name(name: str) -> None:
    """Raises :class:`~runner_e2e.errors.RefusedError` for what is no plain name of a branch, or could be more than one.

    Plain means: as `git branch` shows it, of this repository.
    """
    fix = "give the name of a branch of this repository, as `git branch` shows it"
    if not name:
        raise RefusedError("the target has no name", fix=fix)
    shown = f"the target {name[:100]!r}"
    if ":" in name:
        raise RefusedError(f"{shown} names another repository", why="a fork's code may not be paid for", fix=fix)
    if _SHA.fullmatch(name):
        raise RefusedError(
            f"{shown} looks like a commit", why="a commit of a fork can be reached by its number too", fix=fix
        )
    if _PULL_REQUEST.fullmatch(name):
        raise RefusedError(f"{shown} looks like a pull request", why="anybody can open one", fix=fix)
    if name.startswith(_PREFIXES) or name in {"HEAD", "@"}:
        raise RefusedError(f"{shown} is a ref", why="it could mean more than one thing", fix=fix)
    parts = name.split("/")
    if (
        _FORBIDDEN.search(name)
        or name.startswith(("-", "/"))
        or name.endswith(("/", "."))
        or any(part.startswith(".") or part.endswith(".lock") for part in parts)
        or len(name.encode(errors="replace")) > _LONGEST_NAME
        or not name.isprintable()
    ):
        raise RefusedError(f"{shown} is no name that a branch can have", fix=fix)


def resolve_target(api: GitHubApi, branch: str) -> Target:
    """Pins *branch* to the full commit that it points to now.

    Raises :class:`~runner_e2e.errors.RefusedError` for a name that is not plain, a branch that does not exist, and
    one whose name a tag has as well; :class:`~runner_e2e.errors.GitHubError` where the API gives no clear answer.
    """
    check_branch_name(branch)
    ref = f"refs/heads/{branch}"
    sha = _commit_of(api, f"heads/{branch}", ref)
    if sha is None:
        raise RefusedError(
            f"there is no branch {branch[:100]!r} in {api.repository}",
            why="it was deleted, was never pushed, or belongs to a fork",
            fix="push it to this repository first",
        )
    if _commit_of(api, f"tags/{branch}", f"refs/tags/{branch}") is not None:
        raise RefusedError(
            f"the target {branch[:100]!r} is a branch and a tag",
            why="programs disagree about which of them is meant",
            fix="rename one of them",
        )
    return Target(sha=sha, ref=ref)


def _commit_of(api: GitHubApi, short: str, ref: str) -> str | None:
    """The object that a ref points to, None where there is no such ref."""
    # Imported here: who only checks a name, or reads a campaign, does not wait for a client of GitHub to load.
    from runner_e2e.dispatch.github_api import segment

    answer = api.get(f"git/ref/{segment(short)}", accept={404})
    # Older servers answer a list of the refs that begin with the name when none has it.
    if answer.status == 404 or isinstance(answer.data, list):
        return None
    if value_of(answer.data, str, "ref") != ref:
        raise GitHubError(f"GitHub answered another ref than {ref}", fix="try again")
    sha, kind = value_of(answer.data, str, "object", "sha"), value_of(answer.data, str, "object", "type")
    if ref.startswith("refs/heads/") and (kind != "commit" or not _COMMIT.fullmatch(sha)):
        raise GitHubError(f"GitHub answered no commit for {ref}", fix="try again")
    return sha
