from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from runner_e2e import graders
from runner_e2e.errors import ConfigurationError
from runner_e2e.graders.bounded import TooSlowError, find_all
from runner_e2e.graders.expectations import SCHEMA, expectations_of
from runner_e2e.graders.json_path import JsonPathError, parse_json_path
from runner_e2e.graders.matchers import Match, Run, check

PUBLISHED = Draft202012Validator(
    json.loads((Path(graders.__file__).parent / "schemas" / "expectations-v1.json").read_text())
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    workspace, artifacts = tmp_path / "workspace", tmp_path / "artifacts"
    (workspace / "sub").mkdir(parents=True)
    (artifacts / "logs").mkdir(parents=True)
    (workspace / "a.txt").write_text("one\ntwo\n")
    (workspace / "link").symlink_to("/etc/passwd")
    (workspace / "linked").symlink_to("sub")
    (workspace / "binary").write_bytes(b"\xff")
    (workspace / "sub" / "b.json").write_text(json.dumps({"answers": [{"n": 1}, {"n": 2}], "ok": True, "n": 1.0}))
    (artifacts / "logs" / "run.log").write_text("x")
    (artifacts / "empty.log").write_text("")
    os.mkfifo(workspace / "fifo")
    return Run(
        messages=("I looked.", "I wrote a file: a.txt", "Done."), status=3, workspace=workspace, artifacts=artifacts
    )


def matched(run: Run, expectation: dict[str, object]) -> Match:
    (matcher,) = expectations_of({"schema": SCHEMA, "expect": [expectation]}, path="expectations.json")
    return check(matcher, run)


EXPECTATIONS: list[tuple[dict[str, object], bool, str]] = [
    ({"message": {"exact": "Done."}}, True, "1 in 3 messages"),
    ({"message": {"exact": "Done"}}, False, "the last one is “Done.”"),
    ({"message": {"contains": "I "}}, True, "2 in 3"),
    ({"message": {"contains": "I ", "most": 1}}, False, "2 in 3"),
    ({"message": {"contains": "error", "most": 0}}, True, "0 in 3"),
    ({"message": {"contains": "I ", "least": 2, "most": 2}}, True, "2 in 3"),
    ({"message": {"regex": "[a-z]+\\.txt$"}}, True, "1 in 3"),
    ({"message": {"regex": "(?i)DONE"}}, True, "1 in 3"),
    ({"order": {"texts": ["looked", "wrote", "Done"]}}, True, "in this order"),
    ({"order": {"texts": ["wrote", "file"]}}, True, "in this order"),
    ({"order": {"texts": ["file", "wrote"]}}, False, "no “wrote” after “file”"),
    ({"order": {"texts": ["Nothing", "wrote"]}}, False, "no “Nothing”"),
    ({"status": 3}, True, "status 3"),
    ({"status": 0}, False, "status 3"),
    ({"file": {"path": "a.txt", "exists": True}}, True, "it exists"),
    ({"file": {"path": "none", "exists": True}}, False, "no such file"),
    ({"file": {"path": "none", "exists": False}}, True, "no such file"),
    ({"file": {"path": "a.txt", "exists": False}}, False, "it exists"),
    ({"file": {"path": "link", "exists": True}}, False, "cannot be opened"),
    ({"file": {"path": "link", "exists": False}}, False, "cannot be opened"),
    ({"file": {"path": "linked/b.json", "exists": True}}, False, "cannot be opened"),
    ({"file": {"path": "fifo", "exists": True}}, False, "not a regular file"),
    ({"file": {"path": "sub", "exists": True}}, False, "not a regular file"),
    ({"file": {"path": "a.txt", "exact": "one\ntwo\n"}}, True, "one two"),
    ({"file": {"path": "a.txt", "exact": "one"}}, False, "one two"),
    ({"file": {"path": "a.txt", "contains": "two"}}, True, "1 places"),
    ({"file": {"path": "a.txt", "regex": "(?m)^two$"}}, True, "1 places"),
    ({"file": {"path": "binary", "contains": "x"}}, False, "not UTF-8 at byte 0"),
    ({"artifact": {"name": "logs/*.log"}}, True, "logs/run.log"),
    ({"artifact": {"name": "*.log", "most": 1}}, True, "1:"),
    ({"artifact": {"name": "empty.log"}}, False, "none"),
    ({"artifact": {"name": "empty.log", "smallest": 0}}, True, "empty.log"),
    ({"json": {"file": "sub/b.json", "path": "$.answers[*].n", "least": 2}}, True, "2 values: 1, 2"),
    ({"json": {"file": "sub/b.json", "path": "$.answers[0].n", "equals": 1}}, True, "1 values: 1"),
    ({"json": {"file": "sub/b.json", "path": "$.n", "equals": 1}}, True, "1.0"),
    ({"json": {"file": "sub/b.json", "path": "$.ok", "equals": 1}}, False, "true"),
    ({"json": {"file": "sub/b.json", "path": "$.none"}}, False, "none"),
    ({"json": {"file": "a.txt", "path": "$"}}, False, "not JSON"),
    ({"json-schema": {"file": "sub/b.json", "schema": {"required": ["ok"]}}}, True, "valid"),
    (
        {"json-schema": {"file": "sub/b.json", "schema": {"required": ["x"]}}},
        False,
        "$: 'x' is a required property",
    ),
    (
        {"json-schema": {"file": "sub/b.json", "schema": {"properties": {"n": {"type": "string"}}}}},
        False,
        "$.n: 1.0 is not of type 'string'",
    ),
]


@pytest.mark.parametrize(("expectation", "passed", "found"), EXPECTATIONS)
def test_expectations(run: Run, expectation: dict[str, object], passed: bool, found: str) -> None:
    match = matched(run, expectation)
    assert (match.passed, found in match.found) == (passed, True), match


@pytest.mark.parametrize(
    "expectation",
    [{"status": 0}, {"file": {"path": "a", "exists": False}}, {"artifact": {"name": "*"}}, {"message": {"exact": "x"}}],
)
def test_what_was_not_given_never_passes(expectation: dict[str, object]) -> None:
    assert not matched(Run(), expectation).passed


def test_a_regular_expression_that_takes_for_ever_is_given_up() -> None:
    began = time.monotonic()
    with pytest.raises(TooSlowError):
        find_all("(a+)+$", ("a" * 40 + "b",), seconds=0.3)
    assert time.monotonic() - began < 60


def test_time_that_a_busy_machine_gives_to_others_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = tmp_path / "python3"
    late.write_text(f'#!/bin/sh\nsleep 1\nexec {sys.executable} "$@"\n')
    late.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(late))
    assert find_all("a", ("bab",), seconds=0.5) == [[(1, 2)]]


def test_a_schema_that_takes_for_ever_is_given_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner_e2e.graders import bounded

    original = bounded.schema_errors
    monkeypatch.setattr("runner_e2e.graders.matchers.schema_errors", lambda one, two: original(one, two, seconds=1.0))
    assert run.workspace
    (run.workspace / "slow.json").write_text(json.dumps("a" * 40 + "b"))
    match = matched(run, {"json-schema": {"file": "slow.json", "schema": {"pattern": "^(a+)+$"}}})
    assert (match.passed, "given up" in match.found) == (False, True)


def test_the_published_schema_takes_every_expectation() -> None:
    for expectation, _, _ in EXPECTATIONS:
        PUBLISHED.validate({"schema": SCHEMA, "expect": [expectation]})


MISTAKES: list[tuple[object, str]] = [
    ([], "not an object"),
    ({"message": {"exact": "x"}, "status": 0}, "not an object with one name"),
    ({"nothing": {}}, "'nothing' is no kind"),
    ({"status": "0"}, "a status is a number"),
    ({"message": {}}, "not said how to compare"),
    ({"message": {"exact": "x", "contains": "y"}}, "not said how to compare"),
    ({"message": {"contains": ""}}, "contains is not a text"),
    ({"message": {"regex": "("}}, "regular expression is wrong"),
    ({"message": {"regex": "x", "lest": 1}}, "lest has no meaning"),
    ({"message": {"exact": "x", "least": 3, "most": 2}}, "most (2) is less than least (3)"),
    ({"order": {"texts": ["one"]}}, "two or more"),
    ({"file": {"path": "../x", "exists": True}}, "not a path below"),
    ({"file": {"path": "/etc/passwd", "exists": True}}, "not a path below"),
    ({"file": {"path": "x", "exists": 1}}, "neither true nor false"),
    ({"json": {"file": "x", "path": "$["}}, "JSONPath"),
    ({"json-schema": {"file": "x", "schema": {"type": "nothing"}}}, "JSON Schema is wrong"),
]


@pytest.mark.parametrize(("expectation", "words"), MISTAKES)
def test_the_published_schema_refuses_what_is_refused(expectation: object, words: str) -> None:
    document = {"schema": SCHEMA, "expect": [expectation]}
    # What a schema cannot know: whether an expression is right, and which of two numbers is larger.
    beyond = ("regular expression is wrong", "JSONPath", "JSON Schema is wrong", "is less than least")
    assert PUBLISHED.is_valid(document) == any(part in words for part in beyond)


@pytest.mark.parametrize(("expectation", "words"), MISTAKES)
def test_mistakes_in_expectations_are_told_with_their_place(expectation: object, words: str) -> None:
    document = {"schema": SCHEMA, "expect": [{"status": 0}, expectation]}
    with pytest.raises(ConfigurationError) as error:
        expectations_of(document, path="expectations.json")
    assert str(error.value).startswith("expectations.json: expect[1]: ")
    assert words in str(error.value)


DOCUMENT = {"a": [0, {"b": 1, "c d": [1, 2, 3]}], "b": {"b": 2}, "é": None}


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("$", [DOCUMENT]),
        ("$.a[0]", [0]),
        ("$.a[-1].b", [1]),
        ("$['a'][1]['c d'][*]", [1, 2, 3]),
        ('$.a[1]["c d"][0, 2]', [1, 3]),
        ("$.a[1]['c d'][::2]", [1, 3]),
        ("$.a[1]['c d'][::-1]", [3, 2, 1]),
        ("$.a[1]['c d'][1:]", [2, 3]),
        ("$.a[1]['c d'][::0]", []),
        ("$..b", [{"b": 2}, 1, 2]),
        ("$.é", [None]),
        ("$['\\u00e9']", [None]),
        ("$.*.b", [2]),
        ("$.none", []),
        ("$.a[9]", []),
        ("$.b[0]", []),
    ],
)
def test_json_path(expression: str, values: list[object]) -> None:
    assert parse_json_path(expression).select(DOCUMENT) == values


@pytest.mark.parametrize(
    "expression", ["", "a", "$.", "$..", "$[", "$[]", "$.a b", "$[?@.a]", "$[1", "$[01]", "$.[0]", "$['a]"]
)
def test_json_path_mistakes(expression: str) -> None:
    with pytest.raises(JsonPathError):
        parse_json_path(expression)


def test_json_path_on_a_deep_document_needs_no_deep_stack() -> None:
    document: object = 1
    for _ in range(50_000):
        document = [document]
    assert parse_json_path("$..[9]").select(document) == []
