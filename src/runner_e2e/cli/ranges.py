"""Numbers in options, which say in words of people what they want."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import Context, Parameter

__all__ = ["Number", "Whole"]


class Whole(click.IntRange):
    """A whole number from *min* to *max*."""

    name = "whole number"


class Number(click.FloatRange):
    """A number from *min* to *max*. ``nan`` is none: it is neither below the least nor above the most."""

    name = "number"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        """The number. Fails as click does, with status 2."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail("nan is no number.", param, ctx)
        return number
