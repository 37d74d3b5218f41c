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

    from runner_e2e.dispatch.github_api import GitHubApi, Limits

__all__ = ["api_url", "connect", "find_token", "repository_options", "token_option"]

Result = TypeVar("Result")


def repository_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--repo`` and ``--token-env``; it receives ``api``, ready to use."""

    @functools.wraps(function)
    def with_api(*args: Any, repository: str, token_variable: str | None, **given: Any) -> Result:
        return function(*args, api=connect(repository, token_variable), **given)

    repo = click.option(
        "--repo",
        "repository",
        default="",
        metavar="OWNER/NAME",
        help="The repository. In a job it is known.",
    )
    return repo(token_option(with_api))


def token_option(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--token-env``; it receives the ``token_variable`` for :func:`find_token`."""
    return click.option(
        "--token-env",
        "token_variable",
        metavar="NAME",
        help="The variable that holds the token (never the token itself). Default: GH_TOKEN, then GITHUB_TOKEN.",
    )(function)


def find_token(token_variable: str | None) -> str:
    """The token in that variable, or in those that GitHub's own command line reads; empty where there is none."""
    return os.environ.get(token_variable, "").strip() if token_variable else gha.github_token()


def api_url() -> str:
    """The root of the API of the job, or of github.com."""
    from runner_e2e.dispatch.answers import DEFAULT_URL

    return gha.run_contexts().api_url or DEFAULT_URL


def connect(repository: str, token_variable: str | None = None, *, limits: Limits | None = None) -> GitHubApi:
    """A client for *repository* (empty: the job's) at the API of the job, or of github.com.

    Raises :class:`~runner_e2e.errors.UsageError` without a repository or a token.
    """
    from runner_e2e.dispatch.github_api import GitHubApi

    repository = repository or gha.run_contexts().repository
    if not repository:
        raise UsageError("there is no repository", fix="give it as --repo OWNER/NAME")
    return GitHubApi(repository=repository, token=find_token(token_variable), url=api_url(), limits=limits)
