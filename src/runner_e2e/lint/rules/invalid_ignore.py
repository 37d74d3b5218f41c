"""A comment that asks to ignore findings and cannot be followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding, Rule
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from runner_e2e.lint.result import Ignore

__all__ = ["RULE", "finding"]

EXPLANATION = """\
A comment `# runner-e2e: ignore[rule] reason` leaves out the findings of a rule on its line, or on the next one when it
stands alone. It needs the id of at least one rule, and a reason: whoever reads it later must know why this is no leak.
A comment without a reason, without a rule or with the name of no rule does not do what its author wanted, so it is
reported, and the findings that it was meant for are too."""

RULE = Rule(
    id="invalid-ignore",
    summary="a comment that ignores findings has no reason or names no rule",
    explanation=EXPLANATION,
    security_severity=2.0,
    level="warning",
)


def finding(ignore: Ignore) -> Finding:
    """The finding about a comment with a mistake."""
    return Finding(
        rule=RULE.id,
        level="warning",
        confidence=Confidence.HIGH,
        span=ignore.span,
        message=ignore.mistake,
        why="so it leaves out nothing" if not ignore.rules else "the other rules that it names are left out",
        fix=ignore.remedy,
    )
