from __future__ import annotations

import pytest

from runner_e2e.sandbox.record import Record


class Point(Record):
    x: int
    y: int = 2


def test_records_are_values() -> None:
    assert Point(x=1) == Point(x=1, y=2)
    assert Point(x=1) != Point(x=2)
    assert hash(Point(x=1)) == hash(Point(x=1))
    assert Point(x=1).replace(y=5).values() == {"x": 1, "y": 5}
    assert repr(Point(x=1)) == "Point(x=1, y=2)"


def test_records_are_complete_and_frozen() -> None:
    with pytest.raises(TypeError, match="needs x"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no z"):
        Point(x=1, z=3)  # type: ignore[call-arg]
    point = Point(x=1)
    with pytest.raises(AttributeError):
        point.x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del point.x
