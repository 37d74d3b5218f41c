"""Reading what a harness reports: every damaged form is named, none is trusted, none blocks."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from runner_e2e.engine.harness_result import MAXIMUM_BYTES, SCHEMA, SCHEMA_FILE, HarnessReport, Unusable, read_report
from runner_e2e.redact import Redactor
from runner_e2e.report.billing import Usage
from runner_e2e.report.results import Failure

NO_REDACTION = Redactor([])
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))


def read(path: Path, content: bytes | str | dict[str, Any], redactor: Redactor = NO_REDACTION) -> object:
    if isinstance(content, dict):
        content = json.dumps({"schema": SCHEMA, **content})
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_report(path, redactor)


def test_the_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA_FILE.read_text()))


def test_a_full_report(tmp_path: Path) -> None:
    document = {
        "schema": SCHEMA,
        "verdict": "failed",
        "failure": {"class": "provider_variance", "message": "timeout at the provider"},
        "usage": {"cost_usd": 0.25, "cost_status": "estimated", "input_tokens": 10, "output_tokens": 2.0},
        "notes": ["answered in French"],
    }
    VALIDATOR.validate(document)
    assert read(tmp_path / "r", document) == HarnessReport(
        verdict="failed",
        failure=Failure(failure_class="provider_variance", message="timeout at the provider"),
        usage=Usage(cost_usd=0.25, cost_status="estimated", input_tokens=10, output_tokens=2),
        notes=("answered in French",),
    )


def test_the_smallest_report_has_unknown_cost(tmp_path: Path) -> None:
    report = read(tmp_path / "r", {"verdict": "passed"})
    assert isinstance(report, HarnessReport)
    assert report.usage.cost_usd is None
    assert report.usage.cost_status == "unknown"


def test_a_cost_without_a_status_was_reported_and_zero_is_a_cost(tmp_path: Path) -> None:
    report = read(tmp_path / "r", {"verdict": "passed", "usage": {"cost_usd": 0}})
    assert isinstance(report, HarnessReport)
    assert (report.usage.cost_usd, report.usage.cost_status) == (0.0, "reported")


# Each is refused by our reader and by the published schema alike.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"verdict": "maybe"}, "has a wrong verdict: it is not one of passed, failed"),
    ({}, "has no verdict"),
    ({"verdict": 1}, "has a wrong verdict: it is not a string"),
    ({"verdict": "passed", "schema": "runner-e2e.harness-result/v2"}, "is not of the schema"),
    ({"verdict": "passed", "cost": 3}, "has the unknown field 'cost'"),
    (
        {"verdict": "passed", "failure": {"class": "secret_leak", "message": "x"}},
        "has the verdict passed and a failure",
    ),
    (
        {"verdict": "failed", "failure": {"class": "bad_luck", "message": "x"}},
        "has a wrong failure.class",
    ),
    ({"verdict": "failed", "failure": {"class": "secret_leak"}}, "has no failure.message"),
    ({"verdict": "failed", "failure": "because"}, "has a wrong failure: it is not an object"),
    ({"verdict": "failed", "failure": {"class": "secret_leak", "message": "x" * 4097}}, "at most 4,096 characters"),
    ({"verdict": "passed", "usage": {"cost_usd": -1}}, "has a wrong usage.cost_usd: it is not a finite number"),
    ({"verdict": "passed", "usage": {"cost_usd": "1"}}, "has a wrong usage.cost_usd: it is not a number"),
    ({"verdict": "passed", "usage": {"cost_usd": True}}, "has a wrong usage.cost_usd: it is not a number"),
    ({"verdict": "passed", "usage": {"cost_usd": None, "cost_status": "reported"}}, "contradicts its cost_usd"),
    ({"verdict": "passed", "usage": {"cost_usd": 1, "cost_status": "unknown"}}, "contradicts its cost_usd"),
    ({"verdict": "passed", "usage": {"input_tokens": 1.5}}, "has a wrong usage.input_tokens"),
    (
        {"verdict": "passed", "usage": {"input_tokens": True}},
        "has a wrong usage.input_tokens",
    ),
    ({"verdict": "passed", "usage": {"tokens": 1}}, "has the unknown field 'usage.tokens'"),
    ({"verdict": "passed", "usage": []}, "has a wrong usage: it is not an object"),
    ({"verdict": "passed", "notes": "one"}, "has notes that are not a list"),
    ({"verdict": "passed", "notes": [1]}, "has a note that is not a string"),
    ({"verdict": "passed", "notes": ["x"] * 101}, "has notes that are not a list of at most 100"),
]


@pytest.mark.parametrize(("document", "reason"), WRONG)
def test_a_wrong_report_is_refused_by_reader_and_schema(tmp_path: Path, document: dict[str, Any], reason: str) -> None:
    report = read(tmp_path / "r", document)
    assert isinstance(report, Unusable)
    assert reason in report.reason
    assert not VALIDATOR.is_valid({"schema": SCHEMA, **document})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"{", "is not JSON: "),
        (b"passed", "is not JSON: Expecting value at line 1 column 1"),
        (b"[]", "holds no JSON object"),
        (b'"\xff"', "is not UTF-8 at byte 1"),
        (b'{"schema": NaN}', "NaN is not a JSON number"),
        (b'{"verdict": "passed", "verdict": "failed"}', "the name 'verdict' stands twice"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"a":' * 100_000, "is nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not acceptable JSON"),
        (b" " * (MAXIMUM_BYTES + 1), "is larger than 1,048,576 bytes"),
    ],
)
def test_damaged_content(tmp_path: Path, content: bytes, reason: str) -> None:
    report = read(tmp_path / "r", content)
    assert isinstance(report, Unusable)
    assert reason in report.reason


def test_huge_numbers_are_refused(tmp_path: Path) -> None:
    report = read(
        tmp_path / "r", f'{{"schema": "{SCHEMA}", "verdict": "passed", "usage": {{"cost_usd": 1{"0" * 400}}}}}'
    )
    assert isinstance(report, Unusable)
    assert "finite" in report.reason


def test_missing(tmp_path: Path) -> None:
    assert read_report(tmp_path / "none", NO_REDACTION) == Unusable(reason="was not written")


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    read(tmp_path / "real", {"verdict": "passed"})
    (tmp_path / "link").symlink_to("real")
    report = read_report(tmp_path / "link", NO_REDACTION)
    assert isinstance(report, Unusable)
    assert "symbolic link" in report.reason


@pytest.mark.timeout(10)
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        reasons = {}
        for name in ("fifo", "directory", "socket"):
            report = read_report(tmp_path / name, NO_REDACTION)
            assert isinstance(report, Unusable)
            reasons[name] = report.reason
    assert reasons["fifo"] == "is a FIFO, not a regular file"
    assert reasons["directory"] == "is a directory, not a regular file"
    assert "unreadable" in reasons["socket"]
    assert isinstance(read_report(Path("/dev/null"), NO_REDACTION), Unusable)


def test_texts_are_redacted(tmp_path: Path) -> None:
    report = read(
        tmp_path / "r",
        {
            "verdict": "failed",
            "failure": {"class": "candidate_failure", "message": "wrong for suite.p.e.case"},
            "notes": ["key was sk-secret"],
        },
        Redactor(["suite.p.e.case", "sk-secret"]),
    )
    assert isinstance(report, HarnessReport)
    assert report.failure is not None
    assert report.failure.message == "wrong for ***"
    assert report.notes == ("key was ***",)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (r"cut \ud83d", "cut \N{REPLACEMENT CHARACTER}"),
        (r"\uDE00 cut", "\N{REPLACEMENT CHARACTER} cut"),
        (r"whole \ud83d\ude00", "whole \N{GRINNING FACE}"),
        (r"no escape: \\ud83d", r"no escape: \ud83d"),
        (r"\\\ud83d", "\\\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_half_an_emoji_is_text_too(tmp_path: Path, written: str, read_as: str) -> None:
    """A harness that cuts a message at a length leaves it; the report must not be lost for it."""
    document = f'{{"schema": "{SCHEMA}", "verdict": "passed", "notes": ["{written}"]}}'
    report = read(tmp_path / "r", document, Redactor(["secret"]))
    assert isinstance(report, HarnessReport), report
    assert report.notes == (read_as,)


def test_an_endless_number_is_refused_in_words_of_ours(tmp_path: Path) -> None:
    report = read(tmp_path / "r", f'{{"schema": "{SCHEMA}", "usage": {{"input_tokens": {"9" * 5000}}}}}')
    assert report == Unusable(reason="is not acceptable JSON: a whole number has 5,000 digits")
