"""Which findings a user wants to see: by profile and by rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding, Profile

__all__ = ["DEFAULT_PROFILE", "FOREIGN", "PROFILES", "Selection", "unknown_rule"]

PROFILES: dict[Profile, str] = {
    "confidential": "no confidential value and no secret is seen",
    "paid": "these, and workflows that spend money are guarded",
    "all": "these, and rules that only some want",
}
"""From narrow to wide: each has the rules of the one before."""

DEFAULT_PROFILE: Profile = "paid"

FOREIGN = "actionlint"
"""Rules of other linters: their name, or their name, ``/`` and a rule."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """*profile* None: as the catalog says. *select* (not empty) takes the place of the profile; *ignore* takes away."""

    profile: Profile | None = None
    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()

    def wants(self, finding: Finding, *, of_catalog: Profile | None, off: bool) -> bool:
        """Whether to show *finding*, whose rule may be switched *off* by the catalog."""
        if self.ignores(finding.rule):
            return False
        if self.select:
            return finding.rule in self.select or finding.rule.partition("/")[0] in self.select
        return not off and self.has(finding.profile or "confidential", of_catalog)

    @property
    def only_foreign(self) -> bool:
        """Whether no rule of ours is selected."""
        return bool(self.select) and all(rule.partition("/")[0] == FOREIGN for rule in self.select)

    def ignores(self, rule: str) -> bool:
        """Whether no finding of *rule* is wanted, whatever else is."""
        return rule in self.ignore or rule.partition("/")[0] in self.ignore

    def has(self, profile: Profile, of_catalog: Profile | None) -> bool:
        """Whether findings of *profile* are wanted."""
        order = list(PROFILES)
        return order.index(profile) <= order.index(self.profile or of_catalog or DEFAULT_PROFILE)

    def judges(self, rule: str, *, of_catalog: Profile | None, off: Iterable[str] = ()) -> bool:
        """Whether every finding of *rule* would be shown, so that the absence of one means that there is none."""
        from runner_e2e.lint.rules import RULES

        found = next((each for each in RULES if each.id == rule), None)
        if found is None or rule in self.ignore:
            return False
        if self.select:
            return rule in self.select
        return rule not in off and self.has(found.profile, of_catalog)


def unknown_rule(name: str) -> str | None:
    """What to do about *name*, which is no rule; None for one."""
    from runner_e2e.lint.rules import RULES

    names = [rule.id for rule in RULES]
    if name in names or name.partition("/")[0] == FOREIGN:
        return None
    from runner_e2e.cells.wording import suggestion

    return suggestion(name, names)
