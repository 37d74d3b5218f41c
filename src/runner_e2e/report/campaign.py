"""What a campaign was to run, ``runner-e2e.campaign/v1``, and its records held against that.

No cell is dropped: one without a record, or with a damaged one, counts as failed and says why. No record is added:
one of a cell that was not expected is reported and not counted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import ConfigurationError, Place
from runner_e2e.report.billing import Usage
from runner_e2e.report.fields import Fields, InvalidDocumentError, read_document
from runner_e2e.report.results import (
    RESULT_FILE,
    SELECTIONS,
    Exit,
    Failure,
    Host,
    Output,
    Result,
    Retry,
    Selection,
    read_result,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CAMPAIGN_FILE",
    "SCHEMA",
    "SCHEMA_FILE",
    "CampaignRecords",
    "ExpectedCell",
    "Manifest",
    "read_campaign",
    "read_manifest",
    "write_manifest",
]

SCHEMA: Final = "runner-e2e.campaign/v1"
SCHEMA_FILE: Final = Path(__file__).parent / "schemas" / "campaign-v1.json"
CAMPAIGN_FILE: Final = "campaign.json"
_MAXIMUM_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ExpectedCell:
    """A cell that a campaign was to run, in at most ``attempts`` attempts."""

    id: str
    handle: str
    attempts: int
    selection: Selection
    definition_hash: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A campaign as it was planned. ``started`` is UTC in ISO 8601."""

    campaign: str
    started: str
    engine: str
    host: Host
    cells: tuple[ExpectedCell, ...]


@dataclass(frozen=True, kw_only=True)
class CampaignRecords:
    """The records of a campaign: per expected cell its attempts in order, at least one; and what did not fit."""

    manifest: Manifest
    results: tuple[tuple[Result, ...], ...]
    problems: tuple[str, ...]


def write_manifest(manifest: Manifest, directory: Path) -> None:
    """Writes the plan into the campaign's directory, before anything is started. Raises OSError."""
    write_json({"schema": SCHEMA, **asdict(manifest)}, directory / CAMPAIGN_FILE)


def read_manifest(path: Path) -> Manifest:
    """Reads a plan. Raises :class:`ConfigurationError` that says what is wrong with the file."""
    try:
        return _manifest(read_document(path, limit=_MAXIMUM_BYTES))
    except FileNotFoundError:
        problem = "there is no plan of a campaign"
    except InvalidDocumentError as error:
        problem = f"the plan of the campaign {error}"
    raise ConfigurationError(problem, fix="name the directory of a campaign", place=Place(path=str(path)))


def _manifest(fields: Fields) -> Manifest:
    if fields.text("schema") != SCHEMA:
        raise InvalidDocumentError(f"is not of the schema {SCHEMA}")
    host = fields.object("host")
    cells = tuple(
        ExpectedCell(
            id=cell.text("id"),
            handle=cell.text("handle"),
            attempts=cell.count("attempts"),
            selection=cell.choice("selection", SELECTIONS),
            definition_hash=cell.text("definition_hash"),
        )
        for cell in fields.objects("cells")
    )
    if len({cell.id for cell in cells}) < len(cells):
        raise InvalidDocumentError("names a cell twice")
    return Manifest(
        campaign=fields.text("campaign"),
        started=fields.text("started"),
        engine=fields.text("engine"),
        host=Host(kernel=host.text("kernel"), machine=host.text("machine"), python=host.text("python")),
        cells=cells,
    )


def read_campaign(directory: Path) -> CampaignRecords:
    """Reads the records below *directory* and holds them against the plan.

    Raises :class:`ConfigurationError` when there is no valid plan: without one nothing can be said to be complete.
    """
    manifest = read_manifest(directory / CAMPAIGN_FILE)
    problems: list[str] = []
    results = tuple(_records_of(cell, manifest, directory, problems) for cell in manifest.cells)
    handles = {cell.handle for cell in manifest.cells}
    problems += [
        f"{path.relative_to(directory)} is of a cell that was not planned; it is not counted"
        for path in sorted(directory.glob(f"*/attempt-*/{RESULT_FILE}"))
        if path.parts[-3] not in handles
    ]
    return CampaignRecords(manifest=manifest, results=results, problems=tuple(problems))


def _records_of(cell: ExpectedCell, manifest: Manifest, directory: Path, problems: list[str]) -> tuple[Result, ...]:
    records: list[Result] = []
    for number in _numbers(directory / cell.handle):
        path = directory / cell.handle / f"attempt-{number}" / RESULT_FILE
        try:
            record = read_result(path)
        except ConfigurationError as error:
            record = _synthesised(cell, manifest, number, error.problem.what)
        if (record.id, record.handle, record.campaign, record.attempt) != (
            cell.id,
            cell.handle,
            manifest.campaign,
            number,
        ):
            problems.append(f"{path.relative_to(directory)} is a record of another cell, campaign or attempt")
            record = _synthesised(cell, manifest, number, "the record in its place is another one's")
        records.append(record)
    return tuple(records) or (_synthesised(cell, manifest, 1, "there is no result record"),)


def _numbers(directory: Path) -> Iterable[int]:
    """Every attempt up to the last one that left a directory: an earlier one that is missing was made and lost."""
    names = [path.name.removeprefix("attempt-") for path in directory.glob("attempt-*")]
    return range(1, 1 + max((int(name) for name in names if name.isascii() and name.isdigit()), default=0))


def _synthesised(cell: ExpectedCell, manifest: Manifest, number: int, message: str) -> Result:
    """The failure that stands for a record that is not there. Its cost is unknown: it may have been paid for."""
    return Result(
        id=cell.id,
        handle=cell.handle,
        campaign=manifest.campaign,
        attempt=number,
        attempts=cell.attempts,
        selection=cell.selection,
        verdict="failed",
        failure=Failure(failure_class="permanent_infrastructure", message=message),
        started=manifest.started,
        ended=manifest.started,
        duration_s=0.0,
        exit=Exit(),
        usage=Usage(),
        retry=Retry(allowed=False, reason="it was not recorded"),
        output=Output(),
        left_processes=0,
        sandbox=(),
        notes=("this record was synthesised because the attempt left none",),
        definition_hash=cell.definition_hash,
        engine=manifest.engine,
        host=manifest.host,
    )
