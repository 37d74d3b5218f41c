"""Shares the actors with the tests of this directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import Actor, actors, make_actor

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=actors())
def actor(request: pytest.FixtureRequest) -> Iterator[Actor]:
    """A user, once root and once an ordinary one."""
    yield from make_actor(request.param)


@pytest.fixture
def user() -> Iterator[Actor]:
    """An ordinary user."""
    yield from make_actor("user")


@pytest.fixture
def root() -> Iterator[Actor]:
    """Root."""
    yield from make_actor("root")
