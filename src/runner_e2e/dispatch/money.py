"""Money as whole micro-dollars: sums are exact, and what is rounded is rounded up, never in our favour."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

from runner_e2e.cells.wording import quote
from runner_e2e.errors import RefusedError, UsageError

__all__ = ["MOST_MICROS", "BudgetError", "micros", "usd"]

_PER_DOLLAR: Final = 1_000_000

MOST_MICROS: Final = 1_000_000_000 * _PER_DOLLAR
"""A billion dollars. Sums of thousands of such amounts still fit into the 64 bits of SQLite."""

_AMOUNT: Final = re.compile(r"\$?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)", re.ASCII)
_MOST_CHARACTERS: Final = 60


class BudgetError(RefusedError):
    """A cap would be passed. The message shows the arithmetic."""


def micros(amount: float | str) -> int:
    """Micro-dollars of an *amount* in US dollars (``12.5``, ``"12.50"``, ``"$12.50"``), rounded up.

    A float counts as the shortest decimal number that it is written as: 0.1 is 100,000. Raises
    :class:`~runner_e2e.errors.UsageError` for what is no amount, negative, or over a billion dollars.
    """
    if isinstance(amount, str):
        text = amount.strip()
        found = _AMOUNT.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
        exact = Fraction(found[1]) if found else None
    else:
        text = str(amount)
        sound = not isinstance(amount, bool) and math.isfinite(amount) and amount >= 0
        exact = Fraction(text) if sound else None
    if exact is None:
        raise UsageError(
            f"{quote(text)} is no amount of money",
            why="US dollars are wanted, without thousands separators and not below zero",
            fix="write it as 12 or 12.50",
        )
    if exact * _PER_DOLLAR > MOST_MICROS:
        raise UsageError(f"{quote(text)} is more than {usd(MOST_MICROS)}", fix="check the unit: it is US dollars")
    return math.ceil(exact * _PER_DOLLAR)


def usd(amount: int) -> str:
    """Shows micro-dollars exactly: ``$12.50``, ``$0.0004``, ``-$1.00``. :func:`micros` reads it back."""
    dollars, rest = divmod(abs(amount), _PER_DOLLAR)
    digits = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if amount < 0 else ''}${dollars}.{digits}"
