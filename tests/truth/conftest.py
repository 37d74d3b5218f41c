from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.truth.execution import Instruments, instruments

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def tools() -> Iterator[Instruments]:
    with instruments() as made:
        yield made
