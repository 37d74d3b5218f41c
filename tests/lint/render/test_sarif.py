"""SARIF 2.1.0 against its schema, and what code scanning makes of it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import jsonschema
import pytest
from tests.lint.render.reports import HOSTILE, PROBLEM, WORKFLOW, finding, fix_at, report, span

from runner_e2e.lint.finding import FlowPlace
from runner_e2e.lint.render import FORMATS, View, render
from runner_e2e.lint.rules import RULES

if TYPE_CHECKING:
    from runner_e2e.lint.linter import Report

NODE_MODULES = Path(__file__).parents[2] / "node" / "node_modules"
SCHEMA = NODE_MODULES / "@microsoft" / "jest-sarif" / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"


@cache
def validator() -> jsonschema.Draft4Validator:
    return jsonschema.Draft4Validator(json.loads(SCHEMA.read_text()), format_checker=jsonschema.FormatChecker())


def run_of(made: Report, view: View | None = None) -> Any:
    """The one run of the log, which fits the schema."""
    log = json.loads(render(made, "sarif", view))
    problems = [f"{each.json_path}: {each.message[:200]}" for each in validator().iter_errors(log)]
    assert not problems
    (run,) = log["runs"]
    return run


def test_the_schema_would_notice() -> None:
    log = {"version": "2.1.0", "runs": [{"tool": {"driver": {}}, "results": [{"message": {}}]}]}
    assert len(list(validator().iter_errors(log))) == 2


def test_the_way_is_a_code_flow(real: Report, repository: Path) -> None:
    run = run_of(real)
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{repository.as_uri()}/"}}
    result = run["results"][1]
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "act/action.yml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7, "startColumn": 22, "endLine": 7, "endColumn": 26},
    }
    ((flow,),) = [code["threadFlows"] for code in result["codeFlows"]]
    places = [each["location"]["physicalLocation"]["artifactLocation"]["uri"] for each in flow["locations"]]
    assert places == [".github/workflows/w.yml", "act/action.yml", "act/action.yml"]
    assert flow["locations"][-1]["location"]["physicalLocation"] == location["physicalLocation"]
    assert [each["id"] for each in result["relatedLocations"]] == [1, 2]
    assert "[line 16 of .github/workflows/w.yml](1)" in result["message"]["text"]


def test_a_way_that_ends_before_the_sink_gets_it() -> None:
    flow = (FlowPlace(span=span(line=13), note="read"),)
    (result,) = run_of(report(finding(flow=flow)))["results"]
    ((thread,),) = [code["threadFlows"] for code in result["codeFlows"]]
    assert [each["location"]["physicalLocation"]["region"]["startLine"] for each in thread["locations"]] == [13, 11]
    assert [each["executionOrder"] for each in thread["locations"]] == [1, 2]


def test_every_rule_is_described(real: Report) -> None:
    rules = run_of(real)["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == [rule.id for rule in RULES]
    for described, rule in zip(rules, RULES, strict=True):
        assert rule.explanation in described["help"]["markdown"]
        assert described["helpUri"].endswith(f"/docs/rules/{rule.id}.md")
        assert described["helpUri"] in described["help"]["markdown"]
        assert ("security-severity" in described["properties"]) == (rule.security_severity > 0)
        assert len(described["properties"]["tags"]) <= 10
        assert len(described["shortDescription"]["text"]) <= 255


def test_results_point_at_their_rule(real: Report) -> None:
    found = report(
        finding(rule="actionlint/expression"), *real.findings, finding(rule="invalid-expression", level="note")
    )
    run = run_of(found)
    components = [run["tool"]["driver"], *run["tool"]["extensions"]]
    assert [component["name"] for component in components] == ["runner-e2e lint", "actionlint"]
    for result in run["results"]:
        component = result["rule"].get("toolComponent")
        rules = components[component["index"] + 1 if component else 0]["rules"]
        described = rules[result["rule"]["index"]]
        assert described["id"] == result["ruleId"] == result["rule"]["id"]
        assert component or result["ruleIndex"] == result["rule"]["index"]


def test_a_fingerprint_stays_when_lines_move(real: Report, repository: Path) -> None:
    before = [each["partialFingerprints"] for each in run_of(real)["results"]]
    path = repository / ".github" / "workflows" / "w.yml"
    path.write_text("# one\n# line\n# more\n" + WORKFLOW)
    moved = report(finding(where=span(line=14)), real.findings[1])
    assert [each["partialFingerprints"] for each in run_of(moved)["results"]] == before
    (other,) = run_of(report(finding(where=span(line=16))))["results"]
    assert not set(other["partialFingerprints"].values()) & set(before[0].values())
    assert set(before[0]) == {"primaryLocationLineHash", "runnerE2e/v1"}


def test_fixes_are_replacements(repository: Path) -> None:
    start = WORKFLOW.index('"$ID"')
    (result,) = run_of(report(finding(), fixes={0: fix_at(start, start + 5, '"x"')}))["results"]
    (fix,) = result["fixes"]
    changes = {each["artifactLocation"]["uri"]: each["replacements"] for each in fix["artifactChanges"]}
    assert changes[".github/workflows/w.yml"] == [
        {
            "deletedRegion": {"startLine": 11, "startColumn": 33, "endLine": 11, "endColumn": 38},
            "insertedContent": {"text": '"x"'},
        }
    ]
    assert changes["act/action.yml"][0]["deletedRegion"]["endColumn"] == 1


def test_a_byte_order_mark_moves_nothing(repository: Path) -> None:
    path = repository / ".github" / "workflows" / "w.yml"
    path.write_bytes(b"\xef\xbb\xbf" + WORKFLOW.encode())
    start = WORKFLOW.index("on:")
    (result,) = run_of(report(finding(), fixes={0: fix_at(start, start + 2, "x")}))["results"]
    region = result["fixes"][0]["artifactChanges"][0]["replacements"][0]["deletedRegion"]
    assert region == {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 3}


def test_what_could_not_be_read_is_a_notification() -> None:
    (invocation,) = run_of(report(problems=(PROBLEM,)))["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "not valid YAML\nwhy: a bracket\nfix: close it"
    assert notification["locations"][0]["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 3}
    assert run_of(report())["invocations"] == [{"executionSuccessful": True}]


@pytest.mark.parametrize("name", ["with blank.yml", "ü%20.yml", "a#b?c.yml", "[x](1).yml"])
def test_paths_are_uris(repository: Path, name: str) -> None:
    (repository / name).write_text("on: push\n")
    flow = (FlowPlace(span=span(name, 1, 1, 3), note="read"),)
    (result,) = run_of(report(finding(where=span(name, 1, 4, 5), flow=flow)))["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(urlsplit(uri).path) == name
    assert "](1)" in result["message"]["text"]


def test_a_name_that_is_not_utf8_is_a_uri_of_bytes(repository: Path) -> None:
    name = "\udcff.yml"
    (repository / name).write_text("on: push\n")
    (result,) = run_of(report(finding(where=span(name, 1, 4, 5))))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%FF.yml"
    for form in FORMATS:
        assert render(report(finding(where=span(name, 1, 4, 5))), form).encode()


def test_paths_start_at_the_root_of_the_repository(repository: Path) -> None:
    view = View(folder=repository / ".github")
    inside, outside = span("workflows/w.yml"), span(str(repository.parent / "other.yml"))
    results = run_of(report(finding(where=inside), finding(where=outside)), view)["results"]
    first, second = (each["locations"][0]["physicalLocation"]["artifactLocation"] for each in results)
    assert first == {"uri": ".github/workflows/w.yml", "uriBaseId": "%SRCROOT%"}
    assert second == {"uri": (repository.parent / "other.yml").as_uri()}


def test_hostile_text_stays_text() -> None:
    flow = (FlowPlace(span=span(line=3), note=HOSTILE),)
    (result,) = run_of(report(finding(message=HOSTILE, why=HOSTILE, fix=HOSTILE, flow=flow)))["results"]
    assert result["message"]["text"].startswith(HOSTILE)
    for form in ("sarif", "json"):  # read back the same, and no command of the runner
        assert "##[" not in render(report(finding(message=HOSTILE)), form)
