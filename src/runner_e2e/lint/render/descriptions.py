"""What can be said of a rule beside its findings: ours from its definition, actionlint's from its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.actionlint import PREFIX
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.rules import RULES
from runner_e2e.lint.selection import FOREIGN

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Level, Rule

__all__ = ["Description", "describe"]

_PAGES = "https://github.com/org/runner-e2e-action/blob/v1/docs/rules"
_CHECKS = "https://github.com/rhysd/actionlint/blob/main/docs/checks.md"


@dataclass(frozen=True, kw_only=True)
class Description:
    """A rule for people: *explanation* is plain text, *page* a web address, *level* the severest.

    *security_severity* is from 0 to 10, None for a rule that is not about security.
    """

    id: str
    summary: str
    explanation: str
    page: str
    tags: tuple[str, ...]
    level: Level
    security_severity: float | None = None
    foreign: bool = False

    @property
    def markdown(self) -> str:
        """The explanation with a link to the page."""
        return f"{self.explanation}\n\n[More about `{self.id}`]({self.page})"


def describe(rule: str) -> Description:
    """The description of a rule by its id."""
    if rule.partition("/")[0] == FOREIGN:
        kind = rule.removeprefix(PREFIX)
        return Description(
            id=rule,
            summary=f"{kind}: found by actionlint",
            explanation=f"actionlint, which runs beside this lint, reports this as `{kind}`.",
            page=_CHECKS,
            tags=("actionlint", "correctness"),
            level="error",
            foreign=True,
        )
    return _of(next(each for each in RULES if each.id == rule))


def _of(rule: Rule) -> Description:
    about_security = rule.security_severity > 0
    return Description(
        id=rule.id,
        summary=rule.summary,
        explanation=rule.explanation,
        page=f"{_PAGES}/{rule.id}.md",
        tags=(*(("security",) if about_security else ()), rule.profile),
        level=rule.level,
        security_severity=rule.security_severity if about_security else None,
    )
