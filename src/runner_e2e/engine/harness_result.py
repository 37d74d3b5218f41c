"""Reads what a harness reports of its cell, ``runner-e2e.harness-result/v1``, and trusts none of its form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner_e2e.report import results
from runner_e2e.report.billing import Usage, usage_from
from runner_e2e.report.fields import Fields, InvalidDocumentError, read_document
from runner_e2e.report.results import FAILURE_CLASSES, Failure, Verdict

if TYPE_CHECKING:
    from runner_e2e.redact import Redactor

__all__ = ["MAXIMUM_BYTES", "SCHEMA", "SCHEMA_FILE", "HarnessReport", "Unusable", "read_report"]

SCHEMA: Final = "runner-e2e.harness-result/v1"
SCHEMA_FILE: Final = Path(results.__file__).parent / "schemas" / "harness-result-v1.json"
MAXIMUM_BYTES: Final = 1024 * 1024
_MAXIMUM_MESSAGE: Final = 4096
_MAXIMUM_NOTES: Final = 100
_MAXIMUM_NOTE: Final = 1000


@dataclass(frozen=True, kw_only=True)
class HarnessReport:
    """A valid report. ``failure`` may be None for a failed verdict: then nothing more is known."""

    verdict: Verdict
    failure: Failure | None
    usage: Usage
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Unusable:
    """There is no valid report; ``reason`` completes the sentence "its result …"."""

    reason: str


def read_report(path: Path, redactor: Redactor) -> HarnessReport | Unusable:
    """Reads the report in *path*; confidential values are taken out of its texts."""
    try:
        return _report(read_document(path, limit=MAXIMUM_BYTES), redactor)
    except FileNotFoundError:
        return Unusable(reason="was not written")
    except InvalidDocumentError as error:
        return Unusable(reason=redactor.text(str(error)))


def _report(fields: Fields, redactor: Redactor) -> HarnessReport:
    if fields.text("schema") != SCHEMA:
        raise InvalidDocumentError(f"is not of the schema {SCHEMA}")
    fields.only(("schema", "verdict", "failure", "usage", "notes"))
    verdict: Verdict = fields.choice("verdict", ("passed", "failed"))
    failure = fields.optional_object("failure")
    if failure and verdict == "passed":
        raise InvalidDocumentError("has the verdict passed and a failure")
    usage = fields.optional_object("usage")
    return HarnessReport(
        verdict=verdict,
        failure=_failure(failure, redactor) if failure else None,
        usage=usage_from(usage) if usage else Usage(),
        notes=_notes(fields, redactor),
    )


def _failure(fields: Fields, redactor: Redactor) -> Failure:
    fields.only(("class", "message"))
    message = fields.text("message", limit=_MAXIMUM_MESSAGE)
    return Failure(failure_class=fields.choice("class", FAILURE_CLASSES), message=redactor.text(message))


def _notes(fields: Fields, redactor: Redactor) -> tuple[str, ...]:
    notes = fields.values.get("notes")
    if notes is None:
        return ()
    if not isinstance(notes, list) or len(notes) > _MAXIMUM_NOTES:
        raise InvalidDocumentError(f"has notes that are not a list of at most {_MAXIMUM_NOTES} sentences")
    if not all(isinstance(note, str) and len(note) <= _MAXIMUM_NOTE for note in notes):
        raise InvalidDocumentError(f"has a note that is not a string of at most {_MAXIMUM_NOTE} characters")
    return tuple(redactor.text(note) for note in notes)
