"""A double of GitHub, and clients of it whose waits take no time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.github_double.server import Server

from runner_e2e.dispatch.github_api import GitHubApi, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = "token-of-alice"


@pytest.fixture
def double() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def connect(double: Server) -> Callable[..., GitHubApi]:
    """Makes clients of the double."""

    def make(**changes: Any) -> GitHubApi:
        limits = changes.pop("limits", Limits(wait=double.state.clock.sleep))
        return GitHubApi(**{"repository": "octo/evals", "token": TOKEN, "url": double.url, "limits": limits, **changes})

    return make


@pytest.fixture
def api(connect: Callable[..., GitHubApi]) -> GitHubApi:
    return connect()
