"""What an attempt cost. Unknown is a value of its own: it is never shown, added or compared as zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from runner_e2e.report.fields import InvalidDocumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.report.fields import Fields

__all__ = ["COST_STATUSES", "TOKENS", "CostStatus", "Usage", "cost_text", "total", "usage_from"]

# reported: the provider said so; estimated: computed from tokens and a price list; unknown: neither.
CostStatus = Literal["reported", "estimated", "unknown"]
COST_STATUSES: tuple[CostStatus, ...] = get_args(CostStatus)

TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Cost in US dollars and tokens. None means unknown; ``cost_usd`` is None exactly when the status says so."""

    cost_usd: float | None = None
    cost_status: CostStatus = "unknown"
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __post_init__(self) -> None:
        if (self.cost_usd is None) != (self.cost_status == "unknown"):
            raise ValueError("a cost has a status, and an unknown cost has no amount")


def usage_from(fields: Fields) -> Usage:
    """Reads a usage object; a cost without a status was reported.

    Raises :class:`~runner_e2e.report.fields.InvalidDocumentError`.
    """
    fields.only(("cost_usd", "cost_status", *TOKENS))
    cost = fields.optional_amount("cost_usd")
    default: CostStatus = "unknown" if cost is None else "reported"
    status = default if fields.values.get("cost_status") is None else fields.choice("cost_status", COST_STATUSES)
    tokens = {name: fields.optional_count(name) for name in TOKENS}
    try:
        return Usage(cost_usd=cost, cost_status=status, **tokens)
    except ValueError:
        named = fields.where or "usage"
        raise InvalidDocumentError(f"has a {named}.cost_status of {status} that contradicts its cost_usd") from None


@dataclass(frozen=True, kw_only=True)
class Total:
    """A sum of costs: what is known in US dollars, whether any part is an estimate, and how many are unknown."""

    known_usd: float
    estimated: bool
    unknown: int
    count: int


def total(usages: Iterable[Usage]) -> Total:
    """Adds what is known and counts what is not."""
    given = tuple(usages)
    known = [usage for usage in given if usage.cost_usd is not None]
    return Total(
        known_usd=sum(usage.cost_usd or 0.0 for usage in known),
        estimated=any(usage.cost_status == "estimated" for usage in known),
        unknown=len(given) - len(known),
        count=len(given),
    )


def cost_text(usages: Iterable[Usage]) -> str:
    """Shows a sum in a few characters: ``$0.12``, ``~$0.12`` (estimated), ``unknown``, ``$0.12 + 2 unknown``."""
    added = total(usages)
    if added.unknown == added.count:
        return "unknown" if added.count else "-"
    digits = 2 if added.known_usd >= 0.995 or not added.known_usd else 4
    text = f"{'~' if added.estimated else ''}${added.known_usd:.{digits}f}"
    return f"{text} + {added.unknown} unknown" if added.unknown else text
