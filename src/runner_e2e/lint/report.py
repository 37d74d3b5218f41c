"""What a lint comes to: findings, files that could not be checked, and how they are ordered and merged."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from runner_e2e.errors import Place
from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.errors import Problem
    from runner_e2e.lint.finding import Finding, Fix
    from runner_e2e.lint.shell.results import TracePoint

__all__ = ["Report", "in_order", "keep", "ordered_problems"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found in *files* files; *problems* are those that could not be read, or our own defects.

    *fixes* has the fix of a finding by its place in *findings*, where there is one; *repairs* are rules that know how
    to repair some of their findings. *hints* are for the reader of the summary and change nothing. *ignored* findings
    are left out because a comment says so, *known* ones because the baseline has them.
    """

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    defects: int = 0
    trace: tuple[TracePoint, ...] = ()
    fixes: Mapping[int, Fix] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    repairs: frozenset[str] = frozenset()
    ignored: int = 0
    known: int = 0


def keep(found: dict[tuple[object, ...], Finding], finding: Finding) -> None:
    """Adds *finding*; of two that say the same, the surer one stays."""
    key = (finding.rule, finding.span, finding.labels, finding.message)
    known = found.get(key)
    if known is None or known.confidence < finding.confidence:
        found[key] = finding


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By file, place, rule."""
    return tuple(
        sorted(findings, key=lambda each: (each.span.path, each.span.line, each.span.column, each.rule, each.message))
    )


def ordered_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each once, by place."""
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda problem: (problem.place or Place(path=""), problem.what)))
