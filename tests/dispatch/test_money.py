from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.dispatch.money import MOST_MICROS, micros, usd
from runner_e2e.errors import UsageError


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (0, 0),
        (0.0, 0),
        (-0.0, 0),
        (0.1, 100_000),
        (12.5, 12_500_000),
        (1e-7, 1),
        (0.0000011, 2),
        (5e-324, 1),
        (1e9, MOST_MICROS),
        ("12.50", 12_500_000),
        ("$12.50", 12_500_000),
        (" 7 ", 7_000_000),
        (".5", 500_000),
        ("3.", 3_000_000),
        ("0.0000001", 1),
        ("1000000000", MOST_MICROS),
        ("1." + "0" * 50 + "1", 1_000_001),
    ],
)
def test_dollars_become_micros_and_are_rounded_up(amount: float | str, expected: int) -> None:
    assert micros(amount) == expected


@pytest.mark.parametrize(
    "amount",
    ["", "$", ".", "abc", "-1", "1,000", "1 000", "1e3", "0x10", "nan", "inf", "٣", "1.2.3", "$$1", "1" * 61, "EUR 5",
     float("nan"), float("inf"), float("-inf"), -1, -0.01, True],
)  # fmt: skip
def test_what_is_no_amount_is_refused(amount: float | str) -> None:
    with pytest.raises(UsageError, match="no amount of money") as caught:
        micros(amount)
    assert caught.value.problem.fix


@pytest.mark.parametrize("amount", ["1000000000.0000001", 1e300, "9" * 40])
def test_what_cannot_be_meant_is_refused(amount: float | str) -> None:
    with pytest.raises(UsageError, match=r"more than \$1000000000\.00"):
        micros(amount)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0.00"),
        (1, "$0.000001"),
        (400, "$0.0004"),
        (10_000, "$0.01"),
        (12_500_000, "$12.50"),
        (12_345_600, "$12.3456"),
        (-1_000_000, "-$1.00"),
        (-1, "-$0.000001"),
    ],
)
def test_micros_are_shown_exactly(amount: int, shown: str) -> None:
    assert usd(amount) == shown


@given(st.integers(min_value=0, max_value=MOST_MICROS))
def test_what_is_shown_is_read_back(amount: int) -> None:
    assert micros(usd(amount)) == amount
    assert usd(-amount) == ("-" if amount else "") + usd(amount)


@given(st.floats(min_value=0, max_value=1e9))
def test_no_float_loses_more_than_a_micro_or_anything_at_all(amount: float) -> None:
    exact = Fraction(str(amount)) * 1_000_000
    assert exact <= micros(amount) < exact + 1
