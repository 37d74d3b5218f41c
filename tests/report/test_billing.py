"""Unknown cost is never zero: not in a record, not in a sum, not in a text."""

from __future__ import annotations

import pytest

from runner_e2e.report.billing import Usage, cost_text, total

UNKNOWN = Usage()
FREE = Usage(cost_usd=0.0, cost_status="reported")


def paid(amount: float, status: str = "reported") -> Usage:
    return Usage(cost_usd=amount, cost_status=status)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("usages", "text"),
    [
        ([], "-"),
        ([UNKNOWN], "unknown"),
        ([UNKNOWN, UNKNOWN], "unknown"),
        ([FREE], "$0.00"),
        ([paid(0.0123)], "$0.0123"),
        ([paid(0.5, "estimated")], "~$0.5000"),
        ([paid(1.0), paid(0.5)], "$1.50"),
        ([paid(1.0), UNKNOWN, UNKNOWN], "$1.00 + 2 unknown"),
        ([FREE, UNKNOWN], "$0.00 + 1 unknown"),
        ([paid(2.0, "estimated"), paid(3.0)], "~$5.00"),
    ],
)
def test_text(usages: list[Usage], text: str) -> None:
    assert cost_text(usages) == text


def test_a_sum_counts_what_it_does_not_know() -> None:
    added = total([paid(1.5), UNKNOWN, paid(0.5, "estimated")])
    assert (added.known_usd, added.estimated, added.unknown, added.count) == (2.0, True, 1, 3)


@pytest.mark.parametrize(("amount", "status"), [(None, "reported"), (None, "estimated"), (0.0, "unknown")])
def test_amount_and_status_cannot_contradict(amount: float | None, status: str) -> None:
    with pytest.raises(ValueError, match="a cost has a status"):
        Usage(cost_usd=amount, cost_status=status)  # type: ignore[arg-type]
