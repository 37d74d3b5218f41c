"""The report as SARIF 2.1.0, for code scanning and editors.

Terms and shapes: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; what GitHub makes of them:
"SARIF support for code scanning" in its documentation.
"""

from __future__ import annotations

import json
import os
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from runner_e2e import __version__
from runner_e2e.lint.fingerprint import FINGERPRINT, fingerprints
from runner_e2e.lint.render.descriptions import Description, describe
from runner_e2e.lint.render.line_hashes import line_hashes
from runner_e2e.lint.render.sources import edited, inert_json
from runner_e2e.lint.rules import RULES
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from runner_e2e.errors import Problem
    from runner_e2e.lint.finding import Edit, Finding, Fix, FlowPlace
    from runner_e2e.lint.linter import Report
    from runner_e2e.lint.render.view import View
    from runner_e2e.lint.values import Span

__all__ = ["HOME", "render"]

HOME = "https://github.com/org/runner-e2e-action"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_ACTIONLINT_HOME = "https://github.com/rhysd/actionlint"
# How sure a result is, from 0 to 100; "rank" orders results of one level.
_RANKS = {Confidence.HIGH: 90.0, Confidence.MEDIUM: 60.0, Confidence.LOW: 30.0}

Node = dict[str, Any]


def render(report: Report, view: View) -> str:
    """One SARIF log with one run."""
    return inert_json(json.dumps(_Log(report, view).document(), ensure_ascii=False, indent=2)) + "\n"


class _Log:
    def __init__(self, report: Report, view: View) -> None:
        self.report = report
        self.view = view
        self.hashes = cache(lambda path: line_hashes(view.sources.whole(path)))
        self.fingerprints = fingerprints(
            report.findings, path_of=lambda path: view.in_repository(path) or path, line_of=view.sources.line
        )
        found = {finding.rule: describe(finding.rule) for finding in reversed(report.findings)}
        known = {rule.id: describe(rule.id) for rule in RULES}
        self.own = [each for each in {**known, **found}.values() if not each.foreign]
        self.foreign = sorted((each for each in found.values() if each.foreign), key=lambda each: each.id)
        # Where each rule is described: the component's place among the extensions (None: the driver), and in it.
        self.places: dict[str, tuple[int | None, int]] = {each.id: (None, at) for at, each in enumerate(self.own)}
        self.places |= {each.id: (0, at) for at, each in enumerate(self.foreign)}

    def document(self) -> Node:
        run: Node = {
            "tool": self.tool(),
            "automationDetails": {"id": "runner-e2e-lint/"},
            "invocations": [self.invocation()],
            "originalUriBaseIds": {_ROOT: {"uri": f"{self.view.root.as_uri()}/"}},
            "columnKind": "unicodeCodePoints",
            "results": [self.result(number, each) for number, each in enumerate(self.report.findings)],
        }
        return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}

    def tool(self) -> Node:
        driver = {
            "name": "runner-e2e lint",
            "semanticVersion": __version__,
            "informationUri": HOME,
            "rules": [self.rule(each) for each in self.own],
        }
        if not self.foreign:
            return {"driver": driver}
        actionlint = {
            "name": "actionlint",
            "informationUri": _ACTIONLINT_HOME,
            "rules": [self.rule(each) for each in self.foreign],
        }
        return {"driver": driver, "extensions": [actionlint]}

    def rule(self, description: Description) -> Node:
        properties: Node = {"tags": list(description.tags)}
        if description.security_severity is not None:
            properties["security-severity"] = f"{description.security_severity:.1f}"
        return {
            "id": description.id,
            "shortDescription": {"text": description.summary},
            "fullDescription": {"text": description.explanation.partition("\n\n")[0].replace("\n", " ")},
            "help": {"text": description.explanation, "markdown": description.markdown},
            "helpUri": description.page,
            "defaultConfiguration": {"level": description.level},
            "properties": properties,
        }

    def invocation(self) -> Node:
        """Whether everything could be looked at, and what could not."""
        done: Node = {"executionSuccessful": not self.report.problems}
        if self.report.problems:
            done["toolExecutionNotifications"] = [self.notification(each) for each in self.report.problems]
        return done

    def notification(self, problem: Problem) -> Node:
        lines = (problem.what, problem.why and f"why: {problem.why}", problem.fix and f"fix: {problem.fix}")
        node: Node = {"level": "error", "message": {"text": "\n".join(filter(None, lines))}}
        if problem.place is not None:
            location: Node = {"artifactLocation": self.artifact(problem.place.path)}
            if problem.place.line:
                location["region"] = {"startLine": problem.place.line}
                if problem.place.column:
                    location["region"]["startColumn"] = problem.place.column
            node["locations"] = [{"physicalLocation": location}]
        return node

    def result(self, number: int, finding: Finding) -> Node:
        extension, index = self.places[finding.rule]
        component: Node = {} if extension is None else {"toolComponent": {"index": extension, "name": "actionlint"}}
        node: Node = {
            "ruleId": finding.rule,
            "rule": {"id": finding.rule, "index": index, **component},
            "level": finding.level,
            "rank": _RANKS[finding.confidence],
            "message": {"text": _message(finding)},
            "locations": [{"physicalLocation": self.location(finding.span)}],
            "partialFingerprints": self.partial_fingerprints(number, finding),
            "properties": {"confidence": finding.confidence.name.lower()},
        }
        if extension is None:
            node["ruleIndex"] = index
        if finding.flow:
            way = [place for place in finding.flow if place.span != finding.span]
            node["relatedLocations"] = [self.place(each, id=at) for at, each in enumerate(way, 1)]
            node["codeFlows"] = [{"threadFlows": [{"locations": self.flow(finding)}]}]
        if number in self.report.fixes:
            node["fixes"] = [self.fix(self.report.fixes[number])]
        return node

    def flow(self, finding: Finding) -> list[Node]:
        """The way from the source to the sink; the sink is added where the way does not end on it."""
        steps = [{"location": self.place(each)} for each in finding.flow]
        if finding.flow[-1].span != finding.span:
            sink: Node = {"physicalLocation": self.location(finding.span), "message": {"text": finding.message}}
            steps.append({"location": sink})
        return [{**step, "executionOrder": at} for at, step in enumerate(steps, 1)]

    def place(self, place: FlowPlace, **more: int) -> Node:
        return {**more, "physicalLocation": self.location(place.span), "message": {"text": place.note}}

    def location(self, span: Span) -> Node:
        return {"artifactLocation": self.artifact(span.path), "region": _region(span)}

    def artifact(self, path: str) -> Node:
        relative = self.view.in_repository(path)
        if relative is None:
            return {"uri": Path(self.view.folder, path).resolve().as_uri()}
        return {"uri": quote(os.fsencode(relative)), "uriBaseId": _ROOT}

    def partial_fingerprints(self, number: int, finding: Finding) -> Node:
        """What stays when lines move. Code scanning takes the first; the upload action would compute the same."""
        hashes = self.hashes(finding.span.path)
        line_hash = hashes[min(finding.span.line, len(hashes)) - 1]
        return {"primaryLocationLineHash": line_hash, FINGERPRINT: self.fingerprints[number]}

    def fix(self, fix: Fix) -> Node:
        by_path = groupby(sorted(fix.edits, key=lambda edit: (edit.path, edit.start)), key=lambda edit: edit.path)
        changes = [
            {"artifactLocation": self.artifact(path), "replacements": [self.replacement(edit) for edit in edits]}
            for path, edits in by_path
        ]
        return {"description": {"text": fix.title}, "artifactChanges": changes}

    def replacement(self, edit: Edit) -> Node:
        return {"deletedRegion": _region(edited(edit, self.view.sources)), "insertedContent": {"text": edit.text}}


def _region(span: Span) -> Node:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _message(finding: Finding) -> str:
    """Fact, cause, remedy and a link to where the value comes from."""
    lines = [finding.message]
    if finding.why:
        lines.append(f"Why: {finding.why}.")
    if finding.fix:
        lines.append(f"Fix: {finding.fix}.")
    if finding.flow and finding.flow[0].span != finding.span:
        first = finding.flow[0].span
        lines.append(f"The value comes from [line {first.line} of {_escaped(first.path)}](1).")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Text inside of a link of a message."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
