"""Matrices: selected cells as jobs of GitHub Actions, at most 256 to a matrix.

A matrix is public: its JSON stands in job outputs, job names and logs. So an entry carries a keyed handle instead
of the id, and entries stand in the order of their handles: the order of the catalog would give the ids away.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from runner_e2e.cells.handles import DEFAULT_KEY_VARIABLE, PUBLIC_KEY, handle
from runner_e2e.errors import DefectError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.cells.model import Catalog, Cell

__all__ = ["JOB_MARGIN_MINUTES", "MAXIMUM_JOBS", "SCHEMA", "Entry", "Matrix", "Shard", "make_matrix", "minutes"]

SCHEMA = "runner-e2e.matrix/v1"

# https://docs.github.com/en/actions/reference/limits: a matrix makes at most 256 jobs.
MAXIMUM_JOBS = 256

# Checkout, set-up and evidence around the cell. A job that GitHub ends first leaves no result behind.
JOB_MARGIN_MINUTES = 15


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One job. Empty credentials mean none; ``timeout`` and ``job_timeout`` are whole minutes.

    ``timeout`` is the cell's own, ``job_timeout`` that of the job around all its attempts, as an expression
    of a workflow cannot calculate one from the other. ``id`` is None unless the catalog publishes plain ids.
    """

    index: int
    handle: str
    credential: str
    environment_credential: str
    environment: str
    timeout: int
    job_timeout: int
    id: str | None = None

    def to_data(self) -> dict[str, str | int]:
        """Returns the entry as plain data; an id that is not published has no key either."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The jobs of one matrix, as ``strategy.matrix`` takes them."""

    entries: tuple[Entry, ...]

    def to_data(self) -> dict[str, list[dict[str, str | int]]]:
        """Returns ``{"include": […]}``."""
        return {"include": [entry.to_data() for entry in self.entries]}


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """All shards of a selection. ``max_parallel`` is never zero, so that a workflow can use it as it is."""

    cells: int
    max_parallel: int
    plain_ids: bool
    shards: tuple[Shard, ...]

    def to_data(self) -> dict[str, object]:
        """Returns the whole as plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "cells": self.cells,
            "max_parallel": self.max_parallel,
            "plain_ids": self.plain_ids,
            "shards": [shard.to_data() for shard in self.shards],
        }


def make_matrix(
    catalog: Catalog, cells: Sequence[Cell], *, key: bytes | None, max_parallel: int | None = None
) -> Matrix:
    """Spreads *cells* over as few matrices of nearly equal size as 256 jobs a matrix allow.

    *key* names the cells; *max_parallel* (jobs at once, over all shards of one matrix) replaces the catalog's.
    Raises :class:`RefusedError` without a key, unless the catalog says ``plain-ids: true``.
    """
    if key is None and not catalog.plain_ids:
        raise RefusedError(
            "a matrix needs a campaign key",
            why="its JSON is public, and without a key it could only show ids",
            fix=f"store the output of `runner-e2e dispatch keygen` as a secret and pass it in the variable "
            f"{DEFAULT_KEY_VARIABLE}, or say `plain-ids: true` in {catalog.path}",
        )
    named = [(handle(key or PUBLIC_KEY, cell.id), cell) for cell in cells]
    if len({name for name, _ in named}) != len(named):
        raise DefectError("two cells have one handle", why="64 bits collided", fix="use another campaign key")
    if not catalog.plain_ids:
        named.sort(key=lambda pair: pair[0])
    entries = [_entry(catalog, cell, index=index, name=name) for index, (name, cell) in enumerate(named)]
    return Matrix(
        cells=len(entries),
        max_parallel=max_parallel or catalog.max_parallel or MAXIMUM_JOBS,
        plain_ids=catalog.plain_ids,
        shards=_shards(entries),
    )


def _shards(entries: Sequence[Entry]) -> tuple[Shard, ...]:
    number = math.ceil(len(entries) / MAXIMUM_JOBS)
    size, larger = divmod(len(entries), number or 1)
    starts = [shard * size + min(shard, larger) for shard in range(number + 1)]
    return tuple(Shard(entries=tuple(entries[start:end])) for start, end in pairwise(starts))


def _entry(catalog: Catalog, cell: Cell, *, index: int, name: str) -> Entry:
    environment = catalog.environments[cell.environment]
    attempts = 1 + catalog.retries
    return Entry(
        index=index,
        handle=name,
        credential=catalog.profiles[cell.profile].credential or "",
        environment_credential=environment.credential or "",
        environment=environment.kind,
        timeout=minutes(cell.timeout),
        job_timeout=minutes(attempts * (cell.timeout + catalog.grace)) + JOB_MARGIN_MINUTES,
        id=cell.id if catalog.plain_ids else None,
    )


def minutes(seconds: float) -> int:
    """Rounds up to whole minutes, which is the unit of ``timeout-minutes``."""
    return math.ceil(seconds / 60)
