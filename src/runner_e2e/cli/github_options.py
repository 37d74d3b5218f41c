"""Options of the verbs that ask GitHub: which repository, with whose token."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e import gha
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.dispatch.github_api import GitHubApi, Limits

__all__ = [
    "api_url",
    "connect",
    "find_repository",
    "find_token",
    "repository_option",
    "repository_options",
    "token_option",
]

Result = TypeVar("Result")


def repository_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--repo`` and ``--token-env``; it receives ``api``, ready to use."""

    @functools.wraps(function)
    def with_api(*args: Any, repository: str, token_variable: str | None, **given: Any) -> Result:
        return function(*args, api=connect(repository, token_variable), **given)

    return repository_option(token_option(with_api))


def repository_option(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--repo``; it receives the ``repository``, as OWNER/NAME.

    Without the option it is the job's own, or that of the git remote. Raises what :func:`find_repository` raises.
    """

    @functools.wraps(function)
    def with_repository(*args: Any, repository: str, **given: Any) -> Result:
        return function(*args, repository=find_repository(repository), **given)

    return click.option(
        "--repo",
        "repository",
        default="",
        metavar="OWNER/NAME",
        help="The repository. Default: the job's own, else that of the git remote `origin`.",
    )(with_repository)


def find_repository(given: str = "", *, folder: Path | None = None) -> str:
    """The repository that is *given*, else the job's, else the one that the clone in *folder* comes from.

    The last is told on standard error, since nobody has named it. Raises :class:`~runner_e2e.errors.UsageError` where
    there is none, where it is not clear, and where it lies on another server than the one that would be asked: there
    the same name is another repository.
    """
    if found := given or gha.run_contexts().repository:
        return found
    from runner_e2e.remote.origin import api_of, host_of, read_origin

    origin = read_origin(folder or Path.cwd())
    asked = host_of(api_url())
    if origin.host != asked:
        raise UsageError(
            f"the git remote is {origin.repository} on {origin.host}, and {asked} would be asked",
            why="the same name on another server is another repository",
            fix=f"give --repo OWNER/NAME for {asked}, or set GITHUB_API_URL={api_of(origin.host)}",
        )
    click.echo(f"repository {origin.repository}, by the git remote", err=True)
    return origin.repository


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
    """A client for *repository* at the API of the job, or of github.com.

    Raises :class:`~runner_e2e.errors.UsageError` without a token, or for what is no name of a repository.
    """
    from runner_e2e.dispatch.github_api import GitHubApi

    return GitHubApi(repository=repository, token=find_token(token_variable), url=api_url(), limits=limits)
