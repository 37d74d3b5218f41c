"""A claim whose taker dies at any of its requests is taken once, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.github_double.crash import CrashError, crashing
from tests.github_double.server import Server

from runner_e2e.dispatch.claim import CLAIMS, Claim, find_holder, take_claim
from runner_e2e.dispatch.github_api import GitHubApi, Limits
from runner_e2e.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

MINE = Claim(nonce="20261130t120000z-0123456789abcdef", run=1, attempt=1)
REQUESTS = 5  # look, make the tag, make the ref, look (two requests)


@pytest.fixture
def double() -> Iterator[Server]:
    with Server(validating=False) as server:
        yield server


def client(double: Server, limits: Limits | None = None) -> GitHubApi:
    limits = limits or Limits(wait=double.state.clock.sleep)
    return GitHubApi(repository="octo/evals", token="token-of-alice", url=double.url, limits=limits)


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("at", range(1, REQUESTS + 1))
def test_a_crash_at_each_request(double: Server, at: int, sent: bool) -> None:
    commit = double.state.refs["refs/heads/main"]
    dying = client(double, crashing(Limits(), at=at, sent=sent))
    with pytest.raises(CrashError):
        take_claim(dying, MINE, commit=commit)
    assert len(double.log) == at - (not sent)
    taken = at + sent > 3
    assert any(CLAIMS in name for name in double.state.refs) is taken
    twin = replace(MINE, run=2)
    if taken:
        with pytest.raises(RefusedError, match="run 1"):
            take_claim(client(double), twin, commit=commit)
    else:
        take_claim(client(double), twin, commit=commit)
    holder = find_holder(client(double), f"{CLAIMS}/{MINE.name}")
    assert holder is not None
    assert holder.claim == (MINE if taken else twin)


def test_without_a_crash_it_takes_so_many_requests(double: Server) -> None:
    take_claim(client(double), MINE, commit=double.state.refs["refs/heads/main"])
    assert len(double.log) == REQUESTS
