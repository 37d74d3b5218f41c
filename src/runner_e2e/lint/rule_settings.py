"""What a repository says about rules."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from runner_e2e.lint.globs import Globs
from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.cells.lint_model import RuleConfiguration, RuleLevel, RuleProfile

__all__ = ["RuleSettings"]


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    """*ignore* has the files that every rule leaves alone, *by_id* what is said of one rule, or of another linter's.

    Globs match paths relative to the root of the repository. *profile* is None where the repository does not say.
    """

    profile: RuleProfile | None = None
    ignore: Globs = field(default_factory=Globs)
    by_id: Mapping[str, RuleConfiguration] = field(default_factory=dict)

    def level(self, rule: str) -> RuleLevel | None:
        """The level that *rule* is given here, None where it has its own."""
        found = self._found(rule)
        return None if found is None else found.level

    def ignored(self, rule: str, path: str) -> bool:
        """Whether *rule* leaves the file *path* alone, as every rule or as this one."""
        found = self._found(rule)
        return self.ignore.match(path) or (found is not None and Globs(found.ignore).match(path))

    def _found(self, rule: str) -> RuleConfiguration | None:
        return self.by_id.get(rule) or self.by_id.get(rule.partition("/")[0])
