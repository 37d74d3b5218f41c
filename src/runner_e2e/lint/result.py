"""What the analysis of one file comes to, as data that a cache or another process can hand on."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from runner_e2e.errors import Place, Problem
from runner_e2e.lint.finding import Finding, FlowPlace
from runner_e2e.lint.globs import Globs
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.rule_settings import RuleSettings
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from runner_e2e.cells.lint_model import RuleConfiguration
    from runner_e2e.lint.finding import Level, Profile
    from runner_e2e.lint.shell.results import TracePoint

__all__ = ["FileResult", "Ignore", "Ignored", "from_data", "to_data"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ignore:
    """A comment that asks to leave out findings of *rules* in the lines *first* to *last* of its file.

    *span* is where it stands. One with a *mistake* (and its *remedy*) may still hold for its other rules.
    """

    span: Span
    rules: tuple[str, ...]
    reason: str
    first: int
    last: int
    mistake: str = ""
    remedy: str = ""

    def holds_for(self, finding: Finding) -> bool:
        """Whether *finding*, of the same file, is left out: by its rule, or by the linter that has this rule."""
        if not self.first <= finding.span.line <= self.last:
            return False
        return finding.rule in self.rules or finding.rule.partition("/")[0] in self.rules


@dataclass(frozen=True, kw_only=True, slots=True)
class Ignored:
    """A finding and the place of the comment that it is left out for."""

    finding: Finding
    path: str
    line: int


@dataclass(frozen=True, kw_only=True)
class FileResult:
    """The result for one file, with what the catalog of its repository says applied.

    *off* has the findings of rules that the catalog switched off; *repairs* are rules of the findings that know how to
    repair some. *rules* is what the catalog says. *ignores* are the comments in this file and in the scripts that were
    read for it. *callable* tells that other files may use it, so that it does not show alone which comments
    hold. Only a *complete* result, not cut by the time limit or by a defect, may be used again.
    """

    findings: tuple[Finding, ...] = ()
    off: tuple[Finding, ...] = ()
    repairs: tuple[str, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    ignores: tuple[Ignore, ...] = ()
    problems: tuple[Problem, ...] = ()
    rules: RuleSettings = field(default_factory=RuleSettings)
    callable: bool = False
    complete: bool = True
    defects: int = 0
    reads: tuple[str, ...] = ()
    trace: tuple[TracePoint, ...] = ()


def to_data(result: FileResult) -> dict[str, Any]:
    """*result* as plain data for JSON, without its trace."""
    return {
        "findings": [_finding(one) for one in result.findings],
        "off": [_finding(one) for one in result.off],
        "repairs": result.repairs,
        "ignored": [[_finding(one.finding), one.path, one.line] for one in result.ignored],
        "ignores": [
            [_span(one.span), one.rules, one.reason, one.first, one.last, one.mistake, one.remedy]
            for one in result.ignores
        ],
        "problems": [_problem(one) for one in result.problems],
        "rules": _rules(result.rules),
        "callable": result.callable,
        "complete": result.complete,
        "defects": result.defects,
        "reads": result.reads,
    }


def from_data(data: dict[str, Any]) -> FileResult:
    """The result that :func:`to_data` made *data* of."""
    return FileResult(
        findings=tuple(map(_to_finding, data["findings"])),
        off=tuple(map(_to_finding, data["off"])),
        repairs=tuple(data["repairs"]),
        ignored=tuple(
            Ignored(finding=_to_finding(finding), path=path, line=line) for finding, path, line in data["ignored"]
        ),
        ignores=tuple(
            Ignore(
                span=_to_span(span),
                rules=tuple(rules),
                reason=reason,
                first=first,
                last=last,
                mistake=mistake,
                remedy=remedy,
            )
            for span, rules, reason, first, last, mistake, remedy in data["ignores"]
        ),
        problems=tuple(
            Problem(what=what, why=why, fix=fix, place=Place(path=place[0], line=place[1], column=place[2]))
            if place
            else Problem(what=what, why=why, fix=fix)
            for what, why, fix, place in data["problems"]
        ),
        rules=_to_rules(data["rules"]),
        callable=data["callable"],
        complete=data["complete"],
        defects=data["defects"],
        reads=tuple(data["reads"]),
    )


def _span(span: Span) -> list[object]:
    return [span.path, span.line, span.column, span.end_line, span.end_column]


def _to_span(data: list[Any]) -> Span:
    path, line, column, end_line, end_column = data
    return Span(path=path, line=line, column=column, end_line=end_line, end_column=end_column)


def _finding(one: Finding) -> list[object]:
    flow = [[_span(place.span), place.note] for place in one.flow]
    return [
        one.rule, one.level, int(one.confidence), _span(one.span), one.message, one.why, one.fix, flow, one.labels,
        one.profile,
    ]  # fmt: skip


def _to_finding(data: list[Any]) -> Finding:
    rule, level, confidence, span, message, why, fix, flow, labels, profile = data
    return Finding(
        rule=rule,
        level=cast("Level", level),
        confidence=Confidence(confidence),
        span=_to_span(span),
        message=message,
        why=why,
        fix=fix,
        flow=tuple(FlowPlace(span=_to_span(place), note=note) for place, note in flow),
        labels=tuple(labels),
        profile=cast("Profile | None", profile),
    )


def _rules(rules: RuleSettings) -> list[object]:
    by_id = {rule: [one.level, one.ignore] for rule, one in rules.by_id.items()}
    return [rules.profile, rules.ignore.patterns, by_id]


def _to_rules(data: list[Any]) -> RuleSettings:
    profile, ignore, by_id = data
    return RuleSettings(profile=profile, ignore=Globs(tuple(ignore)), by_id=_to_rules_by_id(by_id) if by_id else {})


def _to_rules_by_id(data: dict[str, Any]) -> dict[str, RuleConfiguration]:
    from runner_e2e.cells.lint_model import RuleConfiguration  # few catalogs speak of single rules

    return {rule: RuleConfiguration(level=level, ignore=tuple(ignored)) for rule, (level, ignored) in data.items()}


def _problem(one: Problem) -> list[object]:
    place = [one.place.path, one.place.line, one.place.column] if one.place else None
    return [one.what, one.why, one.fix, place]
