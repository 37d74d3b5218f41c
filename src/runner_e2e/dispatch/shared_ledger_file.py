"""The files of the shared ledger: one for each month with its reservations, and the caps. Pure: texts and models.

Amounts are whole micro-dollars. A file is read strictly: what is damaged, or of a newer version, is refused and never
written over. Everybody who can read the repository can read them, so they name campaigns, runs and costs, and no cell.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Final, Literal, get_args

from runner_e2e.errors import Place, RefusedError
from runner_e2e.report.fields import Fields, InvalidDocumentError, parse_document

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BRANCH",
    "CAPS_FILE",
    "Caps",
    "Entry",
    "EntryState",
    "caps_as_text",
    "is_month_file",
    "month_as_text",
    "month_file",
    "read_caps",
    "read_month",
]

BRANCH: Final = "runner-e2e-ledger"
CAPS_FILE: Final = "caps.json"
_MONTH_SCHEMA: Final = "runner-e2e.shared-ledger/v1"
_CAPS_SCHEMA: Final = "runner-e2e.caps/v1"

_MONTH_FILE = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])\.json")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# What stands in a file of a public repository: names that a client or a run makes, nothing free.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@\[\]-]{0,199}")

_MOST: Final = 2**53 - 1  # of a number that every reader of JSON takes as it is

EntryState = Literal["reserved", "settled", "released"]
_STATES: tuple[EntryState, ...] = get_args(EntryState)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one run of a workflow may cost, and what it did.

    *key* is unique: ``CAMPAIGN/INDEX/ROUND`` of a client's shard, ``run-ID`` or ``run-ID-ATTEMPT`` without a client.
    *owner* is who reserved it; *nonce* is the name of the claim that it is for. *day* is the UTC day of the reservation
    (``2026-11-30``), which it counts in for ever. *reserved* and *charged* are micro-dollars, None where unknown.
    """

    key: str
    campaign: str
    owner: str
    nonce: str
    cells: int
    reserved: int | None
    day: str = ""
    charged: int | None = None
    state: EntryState = "reserved"
    run: int | None = None

    def __post_init__(self) -> None:
        if not all(_NAME.fullmatch(each) for each in (self.key, self.campaign, self.owner, self.nonce)):
            raise ValueError("a name of an entry holds what no such name does")
        if (self.charged is not None) != (self.state == "settled"):
            raise ValueError("exactly what is settled was charged")

    @property
    def counts(self) -> int | None:
        """What it takes of a cap, in micro-dollars: None where nobody knows."""
        if self.state == "released":
            return 0
        return self.charged if self.state == "settled" else self.reserved


@dataclass(frozen=True, kw_only=True)
class Caps:
    """The most that may be spent, in micro-dollars: by one campaign, in a UTC day, in a UTC month. None: no cap."""

    campaign: int | None = None
    day: int | None = None
    month: int | None = None

    def __bool__(self) -> bool:
        """Whether there is any cap."""
        return any(each is not None for each in (self.campaign, self.day, self.month))


def month_file(day: str) -> str:
    """The name of the file that a *day* (``2026-11-30``) belongs to."""
    return f"{day[:7]}.json"


def is_month_file(name: str) -> bool:
    """Whether *name* is that of a month."""
    return _MONTH_FILE.fullmatch(name) is not None


def month_as_text(name: str, entries: Iterable[Entry]) -> str:
    """The file *name* with *entries*, one a line, so that its history reads well.

    Raises :class:`~runner_e2e.errors.RefusedError` for a number that :func:`read_month` would not take.
    """
    entries = tuple(entries)
    for each in entries:
        if max(each.cells, each.reserved or 0, each.charged or 0, each.run or 0) > _MOST:
            raise RefusedError(
                f"{each.key} cannot stand in the shared ledger: a number of it is larger than {_MOST:,}",
                why="nobody could read the ledger any more",
                fix="check the expected costs: they are US dollars",
            )
    head = json.dumps({"schema": _MONTH_SCHEMA, "month": name.removesuffix(".json")})[:-1]
    lines = ",\n".join(json.dumps(asdict(each)) for each in entries)
    return f'{head}, "entries": [\n{lines}\n]}}\n'


def read_month(name: str, content: bytes) -> tuple[Entry, ...]:
    """The entries of the file *name*, in order. Raises :class:`~runner_e2e.errors.RefusedError`."""
    try:
        document = _document(content, _MONTH_SCHEMA, ("month", "entries"))
        if f"{document.text('month')}.json" != name:
            raise InvalidDocumentError("is that of another month")
        entries = tuple(_entry(each, name) for each in document.objects("entries"))
        if len({each.key for each in entries}) != len(entries):
            raise InvalidDocumentError("has two entries with one key")
    except InvalidDocumentError as error:
        raise _damaged(name, error) from None
    return entries


def caps_as_text(caps: Caps) -> str:
    """The file with *caps*."""
    return json.dumps({"schema": _CAPS_SCHEMA, **asdict(caps)}, indent=2) + "\n"


def read_caps(content: bytes) -> Caps:
    """The caps in their file. Raises :class:`~runner_e2e.errors.RefusedError`."""
    names = tuple(each.name for each in fields(Caps))
    try:
        document = _document(content, _CAPS_SCHEMA, names)
        return Caps(**{name: document.optional_count(name) for name in names})
    except InvalidDocumentError as error:
        raise _damaged(CAPS_FILE, error) from None


def _document(content: bytes, schema: str, names: tuple[str, ...]) -> Fields:
    document = parse_document(content)
    found = document.text("schema")
    if found != schema and found.rpartition("/")[0] == schema.rpartition("/")[0]:
        raise InvalidDocumentError(f"is of another version, {found[:60]!r}: use a newer version of runner-e2e")
    if found != schema:
        raise InvalidDocumentError(f"is not of the schema {schema}")
    document.only(("schema", *names))
    return document


def _entry(item: Fields, name: str) -> Entry:
    item.only(each.name for each in fields(Entry))
    try:
        entry = Entry(
            **{each: item.text(each) for each in ("key", "campaign", "owner", "nonce", "day")},
            cells=item.count("cells"),
            reserved=item.optional_count("reserved"),
            charged=item.optional_count("charged"),
            state=item.choice("state", _STATES),
            run=item.optional_count("run"),
        )
    except ValueError as error:
        raise InvalidDocumentError(f"has a wrong {item.where}: {error}") from None
    if not _DAY.fullmatch(entry.day) or month_file(entry.day) != name:
        raise InvalidDocumentError(f"has a wrong {item.where}.day: it is none of this month")
    return entry


def _damaged(name: str, error: InvalidDocumentError) -> RefusedError:
    return RefusedError(
        f"the shared ledger cannot be used: {name} {error}",
        why="without it nobody knows what may still be spent, so it is neither guessed nor written over",
        fix=f"look at the last commits of the branch {BRANCH}, and revert what damaged it",
        place=Place(path=f"{BRANCH}:{name}"),
    )
