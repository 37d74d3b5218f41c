"""A campaign's records held against its plan: nothing is dropped, nothing is added."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import jsonschema
import pytest
from tests.report.test_results import FAILED, PASSED
from tests.report.test_results import VALIDATOR as RESULT_VALIDATOR

from runner_e2e.errors import ConfigurationError
from runner_e2e.report.campaign import (
    CAMPAIGN_FILE,
    SCHEMA_FILE,
    ExpectedCell,
    Manifest,
    read_campaign,
    read_manifest,
    write_manifest,
)
from runner_e2e.report.results import result_as_json, write_result

if TYPE_CHECKING:
    from pathlib import Path

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))


def expected(number: int) -> ExpectedCell:
    return ExpectedCell(
        id=f"suite.profile.local.case-{number}",
        handle=f"cell-{number:016x}",
        attempts=2,
        selection="env",
        definition_hash="ab" * 32,
    )


MANIFEST = Manifest(
    campaign="20260102T030405Z-abcdef",
    started="2026-01-02T03:04:05.000Z",
    engine="0.1.0",
    host=PASSED.host,
    cells=(expected(1), expected(2)),
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two planned cells: the first passed in its second attempt, the second at once."""
    write_manifest(MANIFEST, tmp_path)
    for cell, records in ((expected(1), (FAILED, PASSED)), (expected(2), (PASSED,))):
        for attempt, record in enumerate(records, 1):
            place = tmp_path / cell.handle / f"attempt-{attempt}"
            place.mkdir(parents=True)
            changed = replace(record, id=cell.id, handle=cell.handle, attempt=attempt)
            write_result(changed, place / "result.json")
    return tmp_path


def test_the_plan_fits_its_schema_and_is_read_back(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)
    write_manifest(MANIFEST, tmp_path)
    VALIDATOR.validate(json.loads((tmp_path / CAMPAIGN_FILE).read_text()))
    assert read_manifest(tmp_path / CAMPAIGN_FILE) == MANIFEST


def test_complete_records(directory: Path) -> None:
    records = read_campaign(directory)
    assert [[record.verdict for record in attempts] for attempts in records.results] == [
        ["failed", "passed"],
        ["passed"],
    ]
    assert records.problems == ()


def test_a_missing_cell_is_a_failure_of_unknown_cost(directory: Path) -> None:
    shutil.rmtree(directory / expected(2).handle)
    (record,) = read_campaign(directory).results[1]
    assert record.failure is not None
    assert (record.id, record.verdict, record.failure.message) == (
        expected(2).id,
        "failed",
        "there is no result record",
    )
    assert record.usage.cost_status == "unknown"
    RESULT_VALIDATOR.validate(result_as_json(record))


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "there is no result record"), ("{", "is not JSON"), ('{"schema": "x"}', "is not of the schema")],
)
def test_a_damaged_record_is_a_failure(directory: Path, content: str | None, message: str) -> None:
    path = directory / expected(1).handle / "attempt-2" / "result.json"
    path.unlink()
    if content is not None:
        path.write_text(content)
    record = read_campaign(directory).results[0][-1]
    assert record.failure is not None
    assert message in record.failure.message
    assert record.attempt == 2


def test_an_attempt_that_was_lost_is_a_failure_too(directory: Path) -> None:
    shutil.rmtree(directory / expected(1).handle / "attempt-1")
    lost, last = read_campaign(directory).results[0]
    assert (lost.verdict, last.verdict) == ("failed", "passed")
    assert lost.usage.cost_status == "unknown"


def test_a_record_of_another_cell_does_not_count(directory: Path) -> None:
    first = directory / expected(1).handle / "attempt-2" / "result.json"
    shutil.copy(directory / expected(2).handle / "attempt-1" / "result.json", first)
    records = read_campaign(directory)
    assert records.results[0][-1].verdict == "failed"
    assert "is a record of another cell" in records.problems[0]


def test_what_was_not_planned_is_told_and_not_counted(directory: Path) -> None:
    shutil.copytree(directory / expected(2).handle, directory / "cell-ffffffffffffffff")
    records = read_campaign(directory)
    assert len(records.results) == 2
    assert "not planned" in records.problems[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no plan"),
        ("[]", "holds no JSON object"),
        ('{"schema": "runner-e2e.campaign/v2"}', "is not of the schema"),
    ],
)
def test_without_a_plan_nothing_is_complete(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / CAMPAIGN_FILE).write_text(content)
    with pytest.raises(ConfigurationError, match=message):
        read_campaign(tmp_path)


def test_a_plan_that_names_a_cell_twice_is_refused(tmp_path: Path) -> None:
    write_manifest(replace(MANIFEST, cells=(expected(1), expected(1))), tmp_path)
    with pytest.raises(ConfigurationError, match="names a cell twice"):
        read_campaign(tmp_path)
