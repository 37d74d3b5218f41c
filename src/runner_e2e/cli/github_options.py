"""Options of the verbs that ask GitHub: which repository, with whose token."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e import gha
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["connect", "repository_options"]

Result = TypeVar("Result")


def repository_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--repo`` and ``--token-env``; it receives ``api``, ready to use."""

    @functools.wraps(function)
    def with_api(*args: Any, repository: str, token_variable: str | None, **given: Any) -> Result:
        return function(*args, api=connect(repository, token_variable), **given)

    token = click.option(
        "--token-env",
        "token_variable",
        metavar="NAME",
        help="The variable that holds the token (never the token itself). Default: GH_TOKEN, then GITHUB_TOKEN.",
    )
    repo = click.option(
        "--repo",
        "repository",
        default="",
        metavar="OWNER/NAME",
        help="The repository. In a job it is known.",
    )
    return repo(token(with_api))


def connect(repository: str, token_variable: str | None = None) -> GitHubApi:
    """A client for *repository* (empty: the job's) at the API of the job, or of github.com.

    Raises :class:`~runner_e2e.errors.UsageError` without a repository or a token.
    """
    from runner_e2e.dispatch.github_api import DEFAULT_URL, GitHubApi

    contexts = gha.run_contexts()
    if not (repository or contexts.repository):
        raise UsageError("there is no repository", fix="give it as --repo OWNER/NAME")
    token = os.environ.get(token_variable, "") if token_variable else gha.github_token()
    return GitHubApi(repository=repository or contexts.repository, token=token, url=contexts.api_url or DEFAULT_URL)
