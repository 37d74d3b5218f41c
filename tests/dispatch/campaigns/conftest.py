"""One warm process, from which the clients of all schedules are forked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dispatch.campaigns.nursery import Nursery

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as found:
        yield found
