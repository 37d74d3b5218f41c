"""Findings of the rules about paid workflows: where they stand, with the calls that lead there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import FlowPlace, Level
    from runner_e2e.lint.paid.frames import Frame
    from runner_e2e.yaml_positions import Node

__all__ = ["Report"]


class Report:
    """Collects the findings of one rule; of two at the same place that say the same, the first stays."""

    def __init__(self, rule: str, why: str = "") -> None:
        self.rule = rule
        self.why = why
        self.findings: dict[tuple[Span, str], Finding] = {}

    def add(  # noqa: PLR0913 - the parts of a finding, by name
        self,
        frame: Frame,
        where: Node | Span,
        message: str,
        *,
        fix: str,
        why: str = "",
        level: Level = "error",
        confidence: Confidence = Confidence.HIGH,
        way: Iterable[FlowPlace] = (),
    ) -> None:
        """Adds a finding at *where* in the file of *frame*."""
        span = where if isinstance(where, Span) else frame.span(where)
        finding = Finding(
            rule=self.rule,
            level=level,
            confidence=confidence,
            span=span,
            message=message,
            why=why or self.why,
            fix=fix,
            flow=tuple(dict.fromkeys((*frame.trail, *way))),
        )
        self.findings.setdefault((span, message), finding)
