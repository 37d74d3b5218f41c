"""Findings: what a rule says about a place, and the way the value took to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.sighting import Sighting
    from runner_e2e.lint.values import Confidence, Span, Taint

__all__ = ["Edit", "Finding", "Fix", "FlowPlace", "Level", "Profile", "Rule", "flow_of", "named", "of_kind", "seen"]

Level = Literal["error", "warning", "note"]
Profile = Literal["confidential", "paid", "all"]
"""Set of rules: about confidential values, about workflows that pay, or (of a rule) wanted by nobody but ``all``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowPlace:
    """One place of the way from the source to the sink, and what happens to the value there."""

    span: Span
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """``message`` states the fact, ``why`` its cause, ``fix`` the remedy."""

    rule: str
    level: Level
    confidence: Confidence
    span: Span
    message: str
    why: str = ""
    fix: str = ""
    flow: tuple[FlowPlace, ...] = ()
    labels: tuple[str, ...] = ()
    """Names of the values it is about."""
    profile: Profile | None = None
    """Set of rules that this one finding belongs to, where it is another than its rule's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """The text that comes in place of ``[start, end)``: character offsets in the decoded text of the file *path*."""

    path: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Fix:
    """Edits that remove the cause of a finding; *safe* ones keep what the workflow does."""

    title: str
    safe: bool
    edits: tuple[Edit, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One rule.

    ``check`` turns what the flow analysis saw into a finding, or into None when it is not its business. ``inspect``
    looks at a whole document. ``repair`` makes a fix for a finding of this rule, None where there is none that fits.
    A rule with none of them is one about the lint itself. *level* is the severest that its findings have, unless the
    catalog says another. *security_severity* is from 0 to 10, as code scanning shows it.
    """

    id: str
    summary: str
    explanation: str
    check: Callable[[Sighting], Finding | None] | None = None
    inspect: Callable[[Run, Document], Iterable[Finding]] | None = None
    repair: Callable[[Finding, Document, Repository], Fix | None] | None = None
    profile: Profile = "confidential"
    security_severity: float = 7.0
    level: Level = "error"


def seen(  # noqa: PLR0913 - a place, and what is said of it
    sighting: Sighting, taints: Collection[Taint], *, rule: str, level: Level, message: str, why: str, fix: str
) -> Finding:
    """The finding of *rule* at the place of *sighting*, about *taints* (at least one)."""
    return Finding(
        rule=rule,
        level=level,
        confidence=max(taint.confidence for taint in taints),
        span=sighting.origin.span(sighting.start, sighting.end),
        message=message,
        why=why,
        fix=fix,
        flow=flow_of(taints),
        labels=tuple(sorted({taint.label.name for taint in taints})),
    )


def of_kind(sighting: Sighting, kind: Literal["confidential", "secret"]) -> list[Taint]:
    """The labels of one kind that were seen."""
    return [taint for taint in sighting.taints if taint.label.kind == kind]


def named(taints: Iterable[Taint]) -> str:
    """The names of labelled values for a message: ```a` and `b```."""
    names = sorted({taint.label.name for taint in taints})
    quoted = [f"`{name}`" for name in names]
    return " and ".join((", ".join(quoted[:-1]), quoted[-1])) if len(quoted) > 1 else quoted[0]


def flow_of(taints: Iterable[Taint]) -> tuple[FlowPlace, ...]:
    """The way of the surest label: from where the value is read, step by step, without repetition."""
    ordered = sorted(taints, key=lambda taint: (-taint.confidence, taint.label.name))
    trail = next((taint for taint in ordered if taint.trail is not None), None)
    if trail is None or trail.trail is None:
        return ()
    places: list[FlowPlace] = []
    for number, step in enumerate(trail.trail.walk()):
        subject = f"`{trail.label.name}`" if number == 0 else "it"
        note = f"{subject} goes {step.note}" if step.note.startswith("into") else step.note
        place = FlowPlace(span=step.origin.span(step.start, step.end), note=note)
        if not places or places[-1] != place:
            places.append(place)
    return tuple(places)
