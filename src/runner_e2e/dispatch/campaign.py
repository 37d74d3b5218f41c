"""A campaign: the cells that are to be paid for, their shards and their cost, fixed before anything is sent.

The file of a campaign may be read by anybody: it names cells by their handles and holds ids only sealed. It is
authenticated with the campaign key, so what was planned, printed and agreed to is what is sent.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from runner_e2e.cells.handles import handle, is_handle
from runner_e2e.cells.matrix import MAXIMUM_JOBS
from runner_e2e.cells.sealed import key_id, open_selection, seal
from runner_e2e.cells.wording import count
from runner_e2e.dispatch.money import MOST_MICROS, BudgetError, micros, usd
from runner_e2e.dispatch.target import check_branch_name
from runner_e2e.errors import ConfigurationError, DefectError, Place, RefusedError, UsageError
from runner_e2e.report.fields import InvalidDocumentError, read_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.report.fields import Fields

__all__ = [
    "DEFAULT_WORKFLOW",
    "SCHEMA",
    "Campaign",
    "PlannedCell",
    "PlannedShard",
    "campaign_as_json",
    "is_campaign_id",
    "open_shard",
    "plan_campaign",
    "read_campaign",
]

SCHEMA: Final = "runner-e2e.campaign-plan/v1"
DEFAULT_WORKFLOW: Final = "paid-campaign.yml"
_ID: Final = re.compile(r"c-[0-9]{8}t[0-9]{6}z-[0-9a-f]{8}")
_SCHEMA_OF_ANY_VERSION: Final = re.compile(r"runner-e2e\.campaign-plan/v([0-9]{1,6})")
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_WORKFLOW: Final = re.compile(r"[^/\\\x00-\x1f\x7f]{1,200}\.ya?ml")
_MAXIMUM_BYTES: Final = 64 * 1024 * 1024
_MOST_CELLS: Final = 1_000_000
_PLAN_ANEW: Final = "make it anew with `runner-e2e dispatch plan`"


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """A cell by its handle: what one attempt is expected to cost, and what is reserved for all that are planned."""

    handle: str
    expected: int
    reserved: int


@dataclass(frozen=True, kw_only=True)
class PlannedShard:
    """The cells of one run, at most 256. ``sealed`` holds their ids, bound to the campaign and the shard."""

    index: int
    cells: tuple[PlannedCell, ...]
    sealed: str

    @property
    def expected(self) -> int:
        """What one attempt of every cell is expected to cost, in micro-dollars."""
        return sum(cell.expected for cell in self.cells)

    @property
    def reserved(self) -> int:
        """What is reserved, in micro-dollars."""
        return sum(cell.reserved for cell in self.cells)


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What is to be paid for in ``repository`` by ``workflow``. Amounts are micro-dollars.

    ``created_at`` is UTC (``2026-01-31T12:00:00Z``), ``target`` the branch that is measured (empty: the commit of the
    run itself), ``key_id`` tells which key its ids are sealed with, ``max_cost`` is the most it may cost (None: no cap
    of its own). ``retries`` are planned for every cell; ``assumed_cost`` is what each of ``assumed_cells`` was taken to
    cost because the catalog does not say.
    """

    id: str
    created_at: str
    repository: str
    workflow: str = DEFAULT_WORKFLOW
    target: str
    key_id: str
    max_cost: int | None
    retries: int = 0
    assumed_cost: int | None = None
    assumed_cells: int = 0
    shards: tuple[PlannedShard, ...]

    @property
    def cells(self) -> int:
        """How many cells it has."""
        return sum(len(shard.cells) for shard in self.shards)

    @property
    def expected(self) -> int:
        """What one attempt of every cell is expected to cost, in micro-dollars."""
        return sum(shard.expected for shard in self.shards)

    @property
    def reserved(self) -> int:
        """What is reserved, in micro-dollars."""
        return sum(shard.reserved for shard in self.shards)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the whole content in hexadecimal: two campaigns with one digest are the same.

        The order of the cells inside a shard does not matter.
        """
        content = _content(self)
        for shard in content["shards"]:
            shard["cells"].sort(key=itemgetter("handle"))
        return hashlib.sha256(_canonical(content)).hexdigest()


def is_campaign_id(text: str) -> bool:
    """Whether *text* has the form of a campaign's id."""
    return _ID.fullmatch(text) is not None


def plan_campaign(  # noqa: PLR0913 - all of them are what a person chooses
    catalog: Catalog,
    cells: Sequence[Cell],
    *,
    key: bytes,
    repository: str,
    workflow: str = DEFAULT_WORKFLOW,
    target: str,
    max_cost: int | None,
    assume_cost: int | None,
    now: datetime,
) -> Campaign:
    """Spreads *cells* over shards and adds up what they cost. Reads and writes nothing.

    *assume_cost* (micro-dollars an attempt) stands for what the catalog does not say. Raises
    :class:`~runner_e2e.errors.RefusedError` where a cost stays unknown, *max_cost* is too low or *target* is no plain
    name of a branch, and
    :class:`~runner_e2e.errors.UsageError` for a name that cannot be.
    """
    _check_names(repository, workflow, target, cells)
    unknown = sum(cell.expected_cost is None for cell in cells)
    if unknown and assume_cost is None:
        raise RefusedError(
            f"nobody says what {count(unknown, 'cell')} of {len(cells)} cost",
            why="an unknown cost is not zero, and a budget cannot be kept without it",
            fix=f"state `expected-cost` in {catalog.path}, or give --assume-cost USD for each attempt of such a cell",
        )
    moment = now.astimezone(UTC)
    campaign = Campaign(
        id=f"c-{moment:%Y%m%dt%H%M%Sz}-{secrets.token_hex(4)}",
        created_at=f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        repository=repository,
        workflow=workflow,
        target=target,
        key_id=key_id(key),
        max_cost=max_cost,
        retries=catalog.retries,
        assumed_cost=assume_cost if unknown else None,
        assumed_cells=unknown,
        shards=(),
    )
    campaign = replace(campaign, shards=_spread(cells, key, campaign, assumed=assume_cost or 0))
    _check_budget(campaign)
    return campaign


def campaign_as_json(campaign: Campaign, key: bytes) -> str:
    """The file of a campaign. *key* is the one that it was planned with."""
    if key_id(key) != campaign.key_id:
        raise DefectError("the campaign was planned with another key")
    document = {"schema": SCHEMA, **_content(campaign)}
    document["digest"] = _authentication(document, key)
    # A line a shard: readable, and small where it is kept under version control.
    shards = ",\n".join("  " + json.dumps(shard, separators=(",", ":")) for shard in document.pop("shards"))
    head = json.dumps(document, indent=1)
    return f'{head[:-2]},\n "shards": [\n{shards}\n ]\n}}\n'


def read_campaign(path: Path, keys: Sequence[bytes]) -> Campaign:
    """Reads the file of a campaign that one of *keys* made.

    Raises :class:`~runner_e2e.errors.ConfigurationError` with the place for one that is missing, damaged, edited after
    it was planned, or of a newer version.
    """
    place = Place(path=str(path))
    try:
        document = read_document(path, limit=_MAXIMUM_BYTES)
        _check_schema(document, place)
        campaign = _campaign_from(document)
    except FileNotFoundError:
        raise ConfigurationError(
            "there is no campaign file", fix="make one with `runner-e2e dispatch plan -o FILE`", place=place
        ) from None
    except InvalidDocumentError as error:
        raise ConfigurationError(f"the campaign file {error}", fix=_PLAN_ANEW, place=place) from None
    key = next((each for each in keys if key_id(each) == campaign.key_id), None)
    if key is None:
        here = ", ".join(key_id(each) for each in keys) or "none"
        raise ConfigurationError(
            f"the campaign was planned with the key {campaign.key_id}, which is not here (here: {here})",
            why="the key was changed since, or this machine has another one",
            fix="give the older key as RUNNER_E2E_CAMPAIGN_KEY_PREVIOUS, or " + _PLAN_ANEW,
            place=place,
        )
    content = {name: value for name, value in document.values.items() if name != "digest"}
    # Compared as bytes: the text in the file may hold anything.
    if not hmac.compare_digest(str(document.values.get("digest")).encode(), _authentication(content, key).encode()):
        raise ConfigurationError(
            "the campaign file was edited or damaged after it was planned",
            why="its digest does not fit, so what would be sent is not what was agreed to",
            fix=_PLAN_ANEW,
            place=place,
        )
    return campaign


def open_shard(shard: PlannedShard, campaign: Campaign, keys: Sequence[bytes]) -> tuple[str, ...]:
    """The ids of *shard*. Raises :class:`~runner_e2e.errors.RefusedError` without the right key."""
    opened = open_selection(
        shard.sealed, keys=keys, nonce=_bound(campaign.id, shard.index), repository=campaign.repository
    )
    if {handle(opened.key, each) for each in opened.ids} != {cell.handle for cell in shard.cells}:
        raise RefusedError(
            f"shard {shard.index} of {campaign.id} names other cells than it has sealed",
            why="the campaign was put together from two",
            fix=_PLAN_ANEW,
        )
    return opened.ids


def _bound(campaign: str, index: int) -> str:
    """What a shard's ids are sealed with in place of a nonce: nonces are made when a shard is reserved."""
    return f"{campaign}/{index}"


def _spread(cells: Sequence[Cell], key: bytes, campaign: Campaign, *, assumed: int) -> tuple[PlannedShard, ...]:
    """As few shards of nearly equal size as possible, in the order of the handles: that of the catalog stays hidden."""
    named = {handle(key, cell.id): cell for cell in cells}
    if len(named) != len({cell.id for cell in cells}):
        raise DefectError("two cells have one handle", why="64 bits collided", fix="use another campaign key")
    ordered = sorted(named.items())
    number = -(-len(ordered) // MAXIMUM_JOBS)
    shards = []
    for index in range(number):
        part = ordered[index::number]
        costs = [assumed if cell.expected_cost is None else micros(cell.expected_cost) for _, cell in part]
        planned = tuple(
            PlannedCell(handle=name, expected=cost, reserved=cost * (1 + campaign.retries))
            for (name, _), cost in zip(part, costs, strict=True)
        )
        ids = [cell.id for _, cell in part]
        sealed = seal(ids, key=key, nonce=_bound(campaign.id, index), repository=campaign.repository)
        shards.append(PlannedShard(index=index, cells=planned, sealed=sealed))
    return tuple(shards)


def _check_names(repository: str, workflow: str, target: str, cells: Sequence[Cell]) -> None:
    if target:
        check_branch_name(target)
    if not cells:
        raise UsageError("there is nothing to plan", fix="select at least one cell")
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError("the repository is not named OWNER/NAME", fix="write it as on GitHub, such as octo/evals")
    if not _WORKFLOW.fullmatch(workflow):
        raise UsageError(
            "the workflow is not named by its file",
            fix=f"give a name below .github/workflows, such as {DEFAULT_WORKFLOW}",
        )


def _check_budget(campaign: Campaign) -> None:
    retries = f", with {count(campaign.retries, 'planned retry')}" if campaign.retries else ""
    arithmetic = f"{count(campaign.cells, 'cell')}, expected {usd(campaign.expected)} an attempt{retries}"
    if campaign.max_cost is not None and campaign.reserved > campaign.max_cost:
        raise BudgetError(
            f"the campaign needs {usd(campaign.reserved)}; its cap is {usd(campaign.max_cost)}",
            why=f"{arithmetic}: {usd(campaign.reserved - campaign.max_cost)} too much",
            fix="select fewer cells or raise --max-cost",
        )
    if campaign.reserved > MOST_MICROS:
        raise BudgetError(
            f"the campaign needs {usd(campaign.reserved)}, more than can be kept account of",
            why=arithmetic,
            fix="check the unit of `expected-cost`: it is US dollars",
        )


def _content(campaign: Campaign) -> dict[str, Any]:
    """The campaign as plain data, ready for JSON."""
    # dataclasses.asdict() copies every value deeply, which takes a third of a second for 10,000 cells.
    return {
        **{field.name: getattr(campaign, field.name) for field in fields(campaign)},
        "shards": [
            {
                "index": shard.index,
                "cells": [
                    {"handle": cell.handle, "expected": cell.expected, "reserved": cell.reserved}
                    for cell in shard.cells
                ],
                "sealed": shard.sealed,
            }
            for shard in campaign.shards
        ],
    }


def _canonical(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _authentication(content: object, key: bytes) -> str:
    """HMAC-SHA-256 over the canonical content, under a key of its own: the campaign key itself makes the handles."""
    own = hmac.new(key, b"runner-e2e campaign file", hashlib.sha256).digest()
    return hmac.new(own, _canonical(content), hashlib.sha256).hexdigest()


def _check_schema(document: Fields, place: Place) -> None:
    found = document.text("schema", limit=100)
    if found == SCHEMA:
        return
    if _SCHEMA_OF_ANY_VERSION.fullmatch(found):
        raise ConfigurationError(
            f"the campaign file is of the schema {found}; this version of runner-e2e reads {SCHEMA}",
            fix="use the version of runner-e2e that planned it, or " + _PLAN_ANEW,
            place=place,
        )
    raise InvalidDocumentError(f"is not of the schema {SCHEMA}")


_NAMES: Final = (
    "schema", "digest", "id", "created_at", "repository", "workflow", "target", "key_id", "max_cost", "retries",
    "assumed_cost", "assumed_cells", "shards",
)  # fmt: skip


def _campaign_from(document: Fields) -> Campaign:
    document.only(_NAMES)
    campaign = Campaign(
        **{
            name: document.text(name, limit=300)
            for name in ("id", "created_at", "repository", "workflow", "target", "key_id")
        },
        max_cost=document.optional_count("max_cost"),
        retries=document.count("retries"),
        assumed_cost=document.optional_count("assumed_cost"),
        assumed_cells=document.count("assumed_cells"),
        shards=tuple(_shard_from(each, index) for index, each in enumerate(document.objects("shards"))),
    )
    if not is_campaign_id(campaign.id):
        raise InvalidDocumentError("has an id of another form")
    handles = {cell.handle for shard in campaign.shards for cell in shard.cells}
    if not 0 < len(handles) == campaign.cells <= _MOST_CELLS:
        raise InvalidDocumentError("holds no cells, or one of them twice")
    return campaign


def _shard_from(shard: Fields, index: int) -> PlannedShard:
    shard.only(("index", "cells", "sealed"))
    cells = tuple(
        PlannedCell(
            handle=cell.text("handle", limit=64), expected=cell.count("expected"), reserved=cell.count("reserved")
        )
        for cell in shard.objects("cells")
    )
    if shard.count("index") != index or not 0 < len(cells) <= MAXIMUM_JOBS:
        raise InvalidDocumentError(f"has a wrong {shard.where}: shards count from 0 and hold 1 to {MAXIMUM_JOBS} cells")
    if not all(is_handle(cell.handle) and cell.expected <= cell.reserved <= MOST_MICROS for cell in cells):
        raise InvalidDocumentError(
            f"has a wrong {shard.where}: a cell is not named by a handle, or reserves too little"
        )
    return PlannedShard(index=index, cells=cells, sealed=shard.text("sealed"))
