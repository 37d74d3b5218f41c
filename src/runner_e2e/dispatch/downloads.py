"""The result records that a run kept: its artifact fetched, opened with suspicion, and read.

Jobs that run foreign code put files into the artifact, so it is not trusted: nothing of it is unpacked to a disk, sizes
are bounded before and while they are read, and an entry that two programs could understand differently is left out and
reported. A record that is left out makes the cost of its cell unknown, and what is unknown stays reserved.
"""

from __future__ import annotations

import hashlib
import re
import struct
import tempfile
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias

from runner_e2e.cells.handles import is_handle
from runner_e2e.dispatch.github_api import RefusedDownloadError
from runner_e2e.dispatch.money import micros
from runner_e2e.dispatch.records import moment_of, value_of
from runner_e2e.errors import GitHubError, UsageError
from runner_e2e.report.fields import InvalidDocumentError, parse_document
from runner_e2e.report.results import RESULT_FILE, result_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.report.results import FailureClass, Verdict

__all__ = [
    "RESULTS",
    "CellRecord",
    "Results",
    "fetch_results",
    "fetch_single_results",
    "records_below",
    "records_in",
]

RESULTS: Final = "results"
"""The artifact that the last job of a campaign's run keeps: one for all cells."""
_SINGLE: Final = "result-"

_State: TypeAlias = Literal["read", "missing", "expired", "refused"]
_STATES: Final[tuple[_State, ...]] = ("refused", "expired", "read")

# A record has about 4 kB; the largest one that its reader takes has 4 MiB. A run has 256 cells.
_MOST_ATTEMPTS: Final = 100  # a catalog allows two; attempts without a record are counted as unknown cost
_MOST_RECORD: Final = 4 * 1024 * 1024
_MOST_ARCHIVE: Final = 64 * 1024 * 1024
_IN_MEMORY: Final = 4 * 1024 * 1024
_MOST_UNPACKED: Final = 256 * 1024 * 1024
_MOST_ENTRIES: Final = 20_000
_MOST_DIRECTORY: Final = 2 * 1024 * 1024

_END: Final = struct.Struct("<4s4H2LH")
_END_SIGNATURE: Final = b"PK\x05\x06"
_LARGE_SIGNATURE: Final = b"PK\x06\x07"
_LARGE_LOCATOR: Final = 20
_MOST_COMMENT: Final = 65_535
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED: Final = 0x41

_FOLDER: Final = re.compile(r"(?:result-)?(cell-[0-9a-f]{16})")
_OURS: Final = re.compile(r"(?:(?:result-)?cell-[0-9a-f]{16}/)?(?:attempt-[0-9]{1,6}/)?result\.json")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(frozen=True, kw_only=True)
class CellRecord:
    """What a result record says of one attempt of a cell, without its id.

    *campaign* and *attempt* tell attempts apart: each start of the engine makes a name of its own. *cost* is in
    micro-dollars, None where it is unknown; *digest* is that of the whole record; *source* says where it was found.
    """

    handle: str
    campaign: str
    attempt: int
    verdict: Verdict
    cost: int | None
    failure: FailureClass | None
    started: str
    digest: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Results:
    """What a run kept.

    *state*: ``read``, or why there is nothing to read: the artifact is ``missing``, ``expired`` or ``refused``. *gone*:
    it is missing because GitHub says that there is no such run, which a replica that is behind may say too.
    *problems* are sentences about what could not be taken, for a person; they hold no id.
    """

    state: _State
    records: tuple[CellRecord, ...] = ()
    problems: tuple[str, ...] = ()
    gone: bool = False


class _RefusedArchiveError(Exception):
    """The text says what is wrong with the archive, as the end of a sentence about it."""


def fetch_results(api: GitHubApi, run: int, *, before: datetime | None = None) -> Results:
    """Fetches and reads the artifact :data:`RESULTS` of *run*; each attempt of the run that got so far kept one.

    *before* leaves out what was kept from then on: the start of an attempt whose cost counts elsewhere. Takes two
    requests of the API. Raises :class:`~runner_e2e.errors.GitHubError` where it should be tried again later; what will
    not change is in the answer.
    """
    return _read(api, run, {RESULTS: ""}, before)


def fetch_single_results(
    api: GitHubApi, run: int, handles: Collection[str], *, before: datetime | None = None
) -> Results:
    """Fetches and reads what the jobs of *handles* kept each, for a run whose last job did not put them together.

    Takes a request for each of them, and a few more. Raises what :func:`fetch_results` raises.
    """
    return _read(api, run, {f"{_SINGLE}{handle}": handle for handle in handles}, before)


def _read(api: GitHubApi, run: int, names: Mapping[str, str], before: datetime | None) -> Results:
    """Reads the artifacts of *run* with these *names*, each of which has records of one cell, or of any (empty)."""
    states: list[str] = []
    records: list[CellRecord] = []
    problems: list[str] = []
    artifacts = _listed(api, run, names, before)
    if artifacts is None:
        return Results(state="missing", gone=True)
    for artifact in artifacts:
        name = value_of(artifact, str, "name")
        try:
            found = _fetched(api, artifact, names[name])
        except (_RefusedArchiveError, RefusedDownloadError) as error:
            states.append("refused")
            problems.append(f"the artifact {name} of run {run} is not taken: {_reason(error)}")
            continue
        states.append("read" if found is not None else "expired")
        if found is None:
            problems.append(f"the artifact {name} of run {run} has expired: GitHub keeps it no longer")
        else:
            records += found[0]
            problems += [f"run {run}: {problem}" for problem in found[1]]
    # The worst of several: a part that is missing must not look as if everything had been read.
    state: _State = next((each for each in _STATES if each in states), "missing")
    return Results(state=state, records=tuple(records), problems=tuple(problems))


def _listed(
    api: GitHubApi, run: int, names: Mapping[str, str], before: datetime | None
) -> list[dict[str, object]] | None:
    """The artifacts of *run* with these *names*; None where GitHub says that there is no such run."""
    path = f"actions/runs/{run}/artifacts"
    listed = api.whole_list(path, "artifacts", {"name": next(iter(names))}) if len(names) == 1 else None
    if listed is None or not listed.complete:
        listed = api.whole_list(path, "artifacts")
    if listed is None:
        return None
    if not listed.complete:
        raise GitHubError(f"GitHub lists fewer artifacts of run {run} than it counts", fix="try again")
    return [
        artifact
        for artifact in listed.items
        # Old servers do not choose by name.
        if value_of(artifact, str, "name") in names
        and (before is None or moment_of(value_of(artifact, str, "created_at")) < before)
    ]


def _fetched(api: GitHubApi, artifact: dict[str, object], of: str) -> tuple[list[CellRecord], list[str]] | None:
    """The records of one artifact and what is wrong with it; None where it has expired."""
    if value_of(artifact, bool, "expired"):
        return None
    size = value_of(artifact, int, "size_in_bytes")
    if size > _MOST_ARCHIVE:
        raise _RefusedArchiveError(f"it has {size:,} bytes, more than {_MOST_ARCHIVE:,}")
    try:
        return _opened(api, artifact, of)
    except InvalidDocumentError:
        # What was cut off by a proxy that tells no length looks so too; once more, and it is the archive itself.
        pass
    try:
        return _opened(api, artifact, of)
    except InvalidDocumentError as error:
        raise _RefusedArchiveError(str(error)) from None


def _opened(api: GitHubApi, artifact: dict[str, object], of: str) -> tuple[list[CellRecord], list[str]] | None:
    digest = artifact.get("digest")
    path = f"actions/artifacts/{value_of(artifact, int, 'id')}/zip"
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        try:
            answer = api.download(path, file, most=_MOST_ARCHIVE, accept={410})
        except OSError as error:
            raise GitHubError(
                "there is no place for an artifact on this machine",
                why=f"{tempfile.gettempdir()}: {error.strerror}",
                fix="free some space there, or set TMPDIR",
            ) from None
        if answer.status == 410:
            return None
        if isinstance(digest, str) and digest.startswith("sha256:") and digest[7:] != _digest(file):
            raise InvalidDocumentError("it is not what was uploaded: its digest differs")
        return records_in(file, of=of)


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _reason(error: Exception) -> str:
    return error.problem.what if isinstance(error, RefusedDownloadError) else str(error)


def records_in(file: IO[bytes], *, of: str = "") -> tuple[list[CellRecord], list[str]]:
    """The records in a zip archive, and what of it was left out: also every record that is none *of* one cell.

    Raises :class:`~runner_e2e.report.fields.InvalidDocumentError` for an archive that is not taken at all.
    """
    _check_end(file)
    try:
        with zipfile.ZipFile(file) as archive:
            return _records_of(archive, of)
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, OSError, struct.error) as error:
        raise InvalidDocumentError(f"it is damaged ({type(error).__name__})") from None


def _check_end(file: IO[bytes]) -> None:
    """Refuses an archive whose table of contents is larger than it can be: the table is read as a whole."""
    size = file.seek(0, 2)
    tail = min(size, _END.size + _MOST_COMMENT + _LARGE_LOCATOR)
    file.seek(size - tail)
    data = file.read(tail)
    at = data.rfind(_END_SIGNATURE)
    if at < 0 or len(data) - at < _END.size:
        raise InvalidDocumentError("it is no zip archive, or was cut off")
    _, _, _, _, entries, directory, _, _ = _END.unpack_from(data, at)
    large = data[max(0, at - _LARGE_LOCATOR) :].startswith(_LARGE_SIGNATURE)
    if large or entries > _MOST_ENTRIES or directory > _MOST_DIRECTORY:
        raise InvalidDocumentError(f"it lists more than {_MOST_ENTRIES:,} files")


def _records_of(archive: zipfile.ZipFile, of: str) -> tuple[list[CellRecord], list[str]]:
    records: list[CellRecord] = []
    problems: list[str] = []
    left = _MOST_UNPACKED
    names = Counter(entry.filename for entry in archive.infolist())
    for entry in archive.infolist():
        if entry.is_dir():
            continue
        why = _why_not(entry, names[entry.filename])
        if not why:
            content, why = _unpacked(archive, entry, min(_MOST_RECORD, left))
            left -= len(content)
            if left <= 0:
                raise InvalidDocumentError(f"it unpacks to more than {_MOST_UNPACKED:,} bytes")
        record, why = (None, why) if why else _record(content, entry.filename, of)
        if record is None:
            problems.append(f"{_named(entry.filename)} is left out: {why}")
        else:
            records.append(record)
    return records, problems


def _why_not(entry: zipfile.ZipInfo, times: int) -> str:
    """Why an entry is not even opened; empty where it is."""
    parts = entry.filename.split("/")
    if ".." in parts or "" in parts or "\\" in entry.orig_filename or "\0" in entry.orig_filename:
        return "its name leads out of the archive, or is none"
    if parts[-1] != RESULT_FILE:
        return "it is no result record"
    if times > 1:
        return f"{times} files have this name"
    if entry.flag_bits & _ENCRYPTED:
        return "it is encrypted"
    if entry.compress_type not in _METHODS:
        return "it is compressed in a way that nobody uses here"
    return f"it has more than {_MOST_RECORD:,} bytes" if entry.file_size > _MOST_RECORD else ""


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> tuple[bytes, str]:
    """The content of an entry, at most one byte more than *most*; or why there is none."""
    try:
        with archive.open(entry) as stream:
            content = stream.read(most + 1)
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        return b"", f"it is damaged ({type(error).__name__})"
    return content, f"it has more than {most:,} bytes" if len(content) > most else ""


def _named(name: str) -> str:
    """A name of an entry as a message shows it; one that a path of ours cannot have is not shown."""
    return name if _OURS.fullmatch(name) else "an entry of the artifact"


def _record(content: bytes, name: str, of: str = "") -> tuple[CellRecord | None, str]:
    """The record in the file *name*, of one cell where that is known, or what is wrong with it."""
    try:
        result = result_from(parse_document(content))
    except InvalidDocumentError as error:
        # What is quoted comes out of the record, where ids stand.
        return None, f"the record {_QUOTED.sub('…', str(error))}"
    if not is_handle(result.handle) or not 1 <= result.attempt <= _MOST_ATTEMPTS:
        return None, "the record names no cell by a handle, or no attempt"
    told = [found[1] for part in name.split("/")[:-1] if (found := _FOLDER.fullmatch(part))]
    if any(handle != result.handle for handle in (*told, of) if handle):
        return None, f"the record in it is one of {result.handle}"
    try:
        moment_of(result.started)
    except GitHubError:
        return None, "the record does not say when the attempt began"
    try:
        cost = None if result.usage.cost_usd is None else micros(result.usage.cost_usd)
    except UsageError:
        return None, "the record has a cost that cannot be"
    record = CellRecord(
        handle=result.handle,
        campaign=result.campaign,
        attempt=result.attempt,
        verdict=result.verdict,
        cost=cost,
        failure=result.failure.failure_class if result.failure else None,
        started=result.started,
        digest=hashlib.sha256(content).hexdigest(),
        source=_named(name),
    )
    return record, ""


def records_below(directory: Path) -> Results:
    """The records in the files of *directory*, as ``actions/download-artifact`` leaves them there.

    Raises :class:`~runner_e2e.errors.UsageError` for what cannot be the path of a directory.
    """
    records: list[CellRecord] = []
    problems: list[str] = []
    for path, content in _files(directory):
        name = path.relative_to(directory).as_posix()
        record, why = (None, content) if isinstance(content, str) else _record(content, name)
        if record is None:
            problems.append(f"{_named(name)} is left out: {why}")
        else:
            records.append(record)
    return Results(state="read" if records or problems else "missing", records=tuple(records), problems=tuple(problems))


def _files(directory: Path) -> Iterator[tuple[Path, bytes | str]]:
    """Every record's file and its content, or why it has none."""
    try:
        paths = sorted(directory.rglob(RESULT_FILE))
    except OSError as error:
        raise UsageError(
            f"the results in {str(directory)[:200]} cannot be looked for",
            why=error.strerror or "",
            fix="name the directory that they were fetched into",
        ) from None
    for path in paths:
        try:
            if path.is_symlink() or not path.is_file():
                yield path, "it is no regular file"
                continue
            with path.open("rb") as stream:
                content = stream.read(_MOST_RECORD + 1)
        except OSError as error:
            yield path, f"it cannot be read ({error.strerror})"
            continue
        yield path, content if len(content) <= _MOST_RECORD else f"it has more than {_MOST_RECORD:,} bytes"
