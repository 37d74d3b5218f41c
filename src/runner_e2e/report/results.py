"""The record of one attempt, ``runner-e2e.result/v1``: its model, its reader and its writer.

Every attempt has one record, also one that never started or whose engine was killed: the record is first written
as a failure when the attempt begins and replaced when it ends. A record maps a handle back to its id, so it is
private until a report decides what to show.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from runner_e2e.errors import ConfigurationError, Place
from runner_e2e.report.billing import Usage, usage_from
from runner_e2e.report.fields import Fields, InvalidDocumentError, read_document

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FAILURE_CLASSES",
    "RESULT_FILE",
    "SCHEMA",
    "SCHEMA_FILE",
    "VERDICTS",
    "Exit",
    "Failure",
    "FailureClass",
    "Host",
    "Output",
    "Result",
    "Retry",
    "Selection",
    "Verdict",
    "read_result",
    "result_as_json",
    "result_from",
    "time_text",
    "write_json",
    "write_result",
]

SCHEMA: Final = "runner-e2e.result/v1"
SCHEMA_FILE: Final = Path(__file__).parent / "schemas" / "result-v1.json"
RESULT_FILE: Final = "result.json"
_MAXIMUM_BYTES: Final = 4 * 1024 * 1024

Verdict = Literal["passed", "failed", "not_run"]
Selection = Literal["env", "argv"]
FailureClass = Literal[
    "candidate_failure",
    "provider_variance",
    "transient_infrastructure",
    "permanent_infrastructure",
    "secret_leak",
    "cleanup_failure",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
FAILURE_CLASSES: tuple[FailureClass, ...] = get_args(FailureClass)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an attempt failed: its class, which decides about a retry, and one readable message."""

    failure_class: FailureClass
    message: str


@dataclass(frozen=True, kw_only=True)
class Exit:
    """How the harness ended: a status, or the name of a signal (``SIGKILL``), or neither when it never started."""

    code: int | None = None
    signal: str | None = None
    timed_out: bool = False


@dataclass(frozen=True, kw_only=True)
class Retry:
    """``allowed``: a later attempt of the plan may follow; ``reason``: why this one was or was not tried again."""

    allowed: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class Output:
    """What the harness printed, in bytes, and how much of it the log does not hold."""

    bytes: int = 0
    dropped_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Host:
    """The machine: kernel release, machine type (``x86_64``), version of Python."""

    kernel: str
    machine: str
    python: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """One attempt. Times are UTC in ISO 8601, ``duration_s`` is seconds, ``attempt`` counts from 1.

    ``attempts`` is how many the plan allows. ``sandbox`` holds the reports of the launches that the harness made.
    ``artifacts`` says how each executable that the catalog lists was run, and why, or why it was refused.
    ``probe`` says how the sandbox was tried on this host before the campaign, or why not; ``audit`` what the kernel's
    record of every program that was started showed of the id, or why it was not kept; None in older records.
    ``left_processes`` is how many processes still ran when the harness had ended; they were ended too.
    """

    id: str
    handle: str
    campaign: str
    attempt: int
    attempts: int
    selection: Selection
    verdict: Verdict
    failure: Failure | None
    started: str
    ended: str
    duration_s: float
    exit: Exit
    usage: Usage
    retry: Retry
    output: Output
    left_processes: int
    sandbox: tuple[Mapping[str, object], ...]
    notes: tuple[str, ...]
    definition_hash: str
    engine: str
    host: Host
    artifacts: tuple[Mapping[str, object], ...] = ()
    probe: Mapping[str, object] | None = None
    audit: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        if (self.verdict == "passed") != (self.failure is None):
            raise ValueError("exactly a passed attempt has no failure")


def result_as_json(result: Result) -> dict[str, object]:
    """The record as it stands in its file."""
    document: dict[str, object] = {"schema": SCHEMA, **asdict(result)}
    if result.failure:
        document["failure"] = {"class": result.failure.failure_class, "message": result.failure.message}
    document["sandbox"] = [dict(report) for report in result.sandbox]
    document["artifacts"] = [dict(report) for report in result.artifacts]
    document["notes"] = list(result.notes)
    for name, proof in (("probe", result.probe), ("audit", result.audit)):
        document[name] = dict(proof) if proof is not None else None
    return document


def write_result(result: Result, path: Path) -> None:
    """Writes the record so that a reader finds the old one or the new one, never half of one. Raises OSError."""
    write_json(result_as_json(result), path)


def write_json(document: Mapping[str, object], path: Path) -> None:
    """Writes JSON atomically and durably: temporary file, fsync, rename, fsync of the directory. Raises OSError."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(document, stream, indent=2, ensure_ascii=True, allow_nan=False)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read_result(path: Path) -> Result:
    """Reads a record. Raises :class:`ConfigurationError` that says what is wrong with the file."""
    try:
        return result_from(read_document(path, limit=_MAXIMUM_BYTES))
    except FileNotFoundError:
        problem = "there is no result record"
    except InvalidDocumentError as error:
        problem = f"the result record {error}"
    raise ConfigurationError(problem, fix="run the cell again", place=Place(path=str(path)))


def result_from(fields: Fields) -> Result:
    """Builds the record from JSON. Raises :class:`InvalidDocumentError`."""
    if fields.text("schema") != SCHEMA:
        raise InvalidDocumentError(f"is not of the schema {SCHEMA}")
    failure = fields.optional_object("failure")
    exit_ = fields.object("exit")
    retry = fields.object("retry")
    output = fields.object("output")
    host = fields.object("host")
    notes = fields.values.get("notes")
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise InvalidDocumentError("has notes that are not a list of strings")
    try:
        return Result(
            **{name: fields.text(name) for name in _TEXTS},
            attempt=fields.count("attempt"),
            attempts=fields.count("attempts"),
            selection=fields.choice("selection", SELECTIONS),
            verdict=fields.choice("verdict", VERDICTS),
            failure=_failure(failure) if failure else None,
            duration_s=fields.amount("duration_s"),
            exit=Exit(
                code=exit_.optional_count("code"),
                signal=exit_.optional_text("signal"),
                timed_out=exit_.flag("timed_out"),
            ),
            usage=usage_from(fields.object("usage")),
            retry=Retry(allowed=retry.flag("allowed"), reason=retry.text("reason")),
            output=Output(bytes=output.count("bytes"), dropped_bytes=output.count("dropped_bytes")),
            left_processes=fields.count("left_processes"),
            sandbox=tuple(report.values for report in fields.objects("sandbox")),
            artifacts=tuple(report.values for report in fields.objects("artifacts")),
            notes=tuple(notes),
            probe=_optional(fields, "probe"),
            audit=_optional(fields, "audit"),
            host=Host(kernel=host.text("kernel"), machine=host.text("machine"), python=host.text("python")),
        )
    except ValueError as error:
        raise InvalidDocumentError(f"contradicts itself: {error}") from None


_TEXTS: Final = ("id", "handle", "campaign", "started", "ended", "definition_hash", "engine")


def _optional(fields: Fields, name: str) -> Mapping[str, object] | None:
    """An object that older records do not have."""
    found = fields.optional_object(name) if name in fields.values else None
    return found.values if found else None


def _failure(fields: Fields) -> Failure:
    return Failure(failure_class=fields.choice("class", FAILURE_CLASSES), message=fields.text("message"))


def time_text(seconds: float) -> str:
    """A point in time (seconds since the epoch) as UTC in ISO 8601 with milliseconds and ``Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
