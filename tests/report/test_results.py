"""The record of an attempt: written atomically, read strictly, and described by its published schema."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner_e2e.errors import ConfigurationError
from runner_e2e.report.billing import Usage
from runner_e2e.report.fields import Fields, InvalidDocumentError
from runner_e2e.report.results import (
    FAILURE_CLASSES,
    SCHEMA_FILE,
    Exit,
    Failure,
    Host,
    Output,
    Result,
    Retry,
    read_result,
    result_as_json,
    result_from,
    time_text,
    write_json,
    write_result,
)

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = json.loads(SCHEMA_FILE.read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

PASSED = Result(
    id="suite.profile.local.case.deeper",
    handle="cell-0123456789abcdef",
    campaign="20260102T030405Z-abcdef",
    attempt=1,
    attempts=2,
    selection="env",
    verdict="passed",
    failure=None,
    started="2026-01-02T03:04:05.000Z",
    ended="2026-01-02T03:04:06.500Z",
    duration_s=1.5,
    exit=Exit(code=0),
    usage=Usage(cost_usd=0.5, cost_status="reported", input_tokens=7),
    retry=Retry(allowed=False, reason="it passed"),
    output=Output(bytes=10),
    left_processes=0,
    sandbox=({"wall": "landlock"},),
    notes=("a note",),
    definition_hash="ab" * 32,
    engine="0.1.0",
    host=Host(kernel="6.18.0", machine="x86_64", python="3.11.7"),
)
FAILED = replace(
    PASSED,
    verdict="failed",
    failure=Failure(failure_class="provider_variance", message="overloaded"),
    exit=Exit(signal="SIGKILL", timed_out=True),
    usage=Usage(),
)
NOT_RUN = replace(FAILED, verdict="not_run", exit=Exit())


def test_the_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("result", [PASSED, FAILED, NOT_RUN])
def test_what_is_written_fits_the_schema_and_is_read_back(tmp_path: Path, result: Result) -> None:
    path = tmp_path / "result.json"
    write_result(result, path)
    VALIDATOR.validate(json.loads(path.read_text()))
    assert read_result(path) == result
    assert list(tmp_path.iterdir()) == [path]


def test_the_schema_lists_the_classes_and_fields_of_the_model() -> None:
    failure = SCHEMA["properties"]["failure"]["oneOf"][1]
    assert tuple(failure["properties"]["class"]["enum"]) == FAILURE_CLASSES
    assert set(SCHEMA["required"]) | {"probe", "audit"} == set(SCHEMA["properties"]) == set(result_as_json(PASSED))


def test_a_record_of_an_older_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    document = result_as_json(PASSED)
    del document["probe"], document["audit"]
    VALIDATOR.validate(document)
    path.write_text(json.dumps(document))
    assert read_result(path) == PASSED


texts = st.text(max_size=20)
failures = st.builds(Failure, failure_class=st.sampled_from(FAILURE_CLASSES), message=texts)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=50, deadline=None
)
@given(
    failure=failures,
    exit_=st.builds(Exit, code=st.none() | st.integers(0, 255), signal=st.none() | texts, timed_out=st.booleans()),
    duration=st.floats(0, 1e9),
    notes=st.lists(texts, max_size=3).map(tuple),
)
def test_any_record_survives_the_file(
    tmp_path: Path, failure: Failure, exit_: Exit, duration: float, notes: tuple[str, ...]
) -> None:
    result = replace(FAILED, failure=failure, exit=exit_, duration_s=duration, notes=notes)
    path = tmp_path / "result.json"
    write_result(result, path)
    VALIDATOR.validate(json.loads(path.read_text()))
    assert read_result(path) == result


# Each is refused by our reader and by the published schema alike.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"schema": "runner-e2e.result/v2"}, "not of the schema"),
    ({"id": None}, "has no id"),
    ({"verdict": "unsure"}, "has a wrong verdict: it is not one of"),
    ({"verdict": "failed"}, "contradicts itself"),
    ({"failure": {"class": "candidate_failure", "message": "x"}}, "contradicts itself"),
    ({"attempt": 1.5}, "has a wrong attempt: it is not a whole number"),
    ({"duration_s": -1}, "has a wrong duration_s: it is not a finite number"),
    ({"usage": {"cost_usd": 0, "cost_status": "unknown"}}, "contradicts"),
    ({"exit": {"code": 0, "signal": None, "timed_out": 0}}, "has a wrong exit.timed_out: it is not true or false"),
    ({"notes": [1]}, "has notes that are not a list of strings"),
    ({"sandbox": ["x"]}, "has a wrong sandbox: it is not a list of objects"),
]


@pytest.mark.parametrize(("change", "reason"), WRONG)
def test_a_wrong_record_is_refused_by_reader_and_schema(change: dict[str, Any], reason: str) -> None:
    document = result_as_json(PASSED) | change
    with pytest.raises(InvalidDocumentError, match=reason.replace(".", "[.]")):
        result_from(Fields(document))
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "there is no result record"), ("", "the result record is empty"), ("{}", "has no schema")],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: str | None, reason: str) -> None:
    path = tmp_path / "result.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=reason) as caught:
        read_result(path)
    assert str(path) in str(caught.value)


def test_a_failed_write_leaves_the_old_record_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json({"old": True}, path)
    with pytest.raises(ValueError, match="Out of range"):
        write_json({"new": float("nan")}, path)
    assert json.loads(path.read_text()) == {"old": True}
    assert list(tmp_path.iterdir()) == [path]


def test_verdict_and_failure_cannot_contradict() -> None:
    with pytest.raises(ValueError, match="exactly a passed attempt"):
        replace(PASSED, verdict="failed")


def test_times_are_utc() -> None:
    assert time_text(0.1234) == "1970-01-01T00:00:00.123Z"
