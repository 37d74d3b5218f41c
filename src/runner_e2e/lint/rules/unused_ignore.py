"""A comment that asks to ignore a finding that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding, Rule
from runner_e2e.lint.fixes.comments import repair
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.lint.result import Ignore

__all__ = ["RULE", "finding"]

EXPLANATION = """\
A comment `# runner-e2e: ignore[rule] reason` stands where the rule finds nothing: what it was about was repaired, or
the comment stands on another line than the finding. Left there, it would hide the next leak on that line. Only rules
that ran are judged, and comments in actions, reusable workflows and scripts only when the whole repository is linted,
because what is found there depends on who uses them."""

RULE = Rule(
    id="unused-ignore",
    summary="a comment ignores a finding that does not exist",
    explanation=EXPLANATION,
    repair=repair,
    security_severity=2.0,
    level="warning",
)


def finding(ignore: Ignore, unused: Sequence[str]) -> Finding:
    """The finding about a comment that does nothing for the rules *unused*."""
    names = ", ".join(f"`{name}`" for name in unused)
    whole = len(unused) == len(ignore.rules)
    return Finding(
        rule=RULE.id,
        level="warning",
        confidence=Confidence.HIGH,
        span=ignore.span,
        message=f"nothing is ignored here for {names}",
        why="left there, it would hide the next finding on this line",
        fix="remove the comment" if whole else f"remove {names} from the comment",
    )
