"""Findings as the repository wants them: a lint out of the cache does this too, and loads nothing of the analysis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runner_e2e.lint.finding import Finding, Profile
    from runner_e2e.lint.rule_settings import RuleSettings

__all__ = ["configured"]


def configured(
    findings: Iterable[Finding], rules: RuleSettings, *, path_of: Callable[[str], str], profiles: Mapping[str, Profile]
) -> tuple[list[Finding], list[Finding]]:
    """*findings* with the level and the profile that hold here, and those of rules that are switched off.

    *path_of* gives the path in the repository for the one that findings show, *profiles* that of a rule; one that is
    not there is in the narrowest.
    """
    on: list[Finding] = []
    off: list[Finding] = []
    for finding in findings:
        if rules.ignored(finding.rule, path_of(finding.span.path)):
            continue
        profile = finding.profile or profiles.get(finding.rule, "confidential")
        level = rules.level(finding.rule)
        if level is None or level == "off":
            (off if level else on).append(replace(finding, profile=profile))
        else:
            # A rule that the catalog gives a level is wanted by its owner.
            wanted = "paid" if profile == "all" else profile
            on.append(replace(finding, level=level, profile=wanted))
    return on, off
