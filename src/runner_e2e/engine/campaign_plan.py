"""What a campaign is to run, where, and for whom: the plain data that edges hand to the engine."""

from __future__ import annotations

import os
import platform
import secrets
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from runner_e2e.report.results import Host

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.engine.policy import HiddenSet
    from runner_e2e.redact import Redactor
    from runner_e2e.report.results import Result, Selection

__all__ = ["Campaign", "PlannedCell", "Reporter", "RunOptions", "campaign_name", "this_host"]


class Reporter(Protocol):
    """Is told what happens, one call at a time, from the threads of the attempts. No text holds an id or a secret."""

    def campaign_started(self, campaign: Campaign) -> None:
        """Everything was checked; cells start now."""

    def attempt_started(self, cell: PlannedCell, attempt: int) -> None:
        """An attempt of *cell* starts, counted from 1."""

    def output(self, cell: PlannedCell, line: str) -> None:
        """The harness printed a line: redacted, without control characters and line end."""

    def attempt_ended(self, cell: PlannedCell, result: Result) -> None:
        """An attempt has its record; also for cells that were not run."""

    def warning(self, text: str) -> None:
        """Something that a person should know and that stops nothing."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where and how to run. ``environ`` is what harnesses' environments are chosen from, credentials included.

    ``jobs`` attempts run at once. ``handle_key`` is the campaign key (None: a random one for this run).
    ``runner_files`` are the CI runner's own files, to be hidden from agents. ``relay`` asks for the harness's output.
    ``probe`` says what a sandbox that does not hold means before the first paid cell: ``insist`` refuses the campaign,
    ``warn`` goes on, ``off`` does not try. ``audit`` keeps the kernel's record of every program that an attempt starts.
    """

    target: Path
    output: Path
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    jobs: int = 1
    handle_key: bytes | None = field(default=None, repr=False)
    runner_files: tuple[Path, ...] = ()
    relay: bool = False
    probe: Literal["insist", "warn", "off"] = "off"
    audit: bool = False


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """A cell of a campaign: its public handle, the directory of its attempts, and how its harness is told the id."""

    cell: Cell
    handle: str
    directory: Path
    selection: Selection
    attempts: int


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A checked campaign. ``programs`` is the directory with this product's command, first on a harness's PATH.

    ``started`` is in seconds since the epoch. ``probe`` is the summary of how the sandbox was tried, for every record.
    """

    name: str
    directory: Path
    catalog: Catalog
    cells: tuple[PlannedCell, ...]
    target: Path
    environ: Mapping[str, str] = field(repr=False)
    hidden: HiddenSet
    programs: Path
    redactor: Redactor = field(repr=False)
    relay: bool
    audit: bool = False
    probe: Mapping[str, object] = field(default_factory=lambda: {"why_not": "not asked for"})
    started: float = field(default_factory=time.time)


def campaign_name() -> str:
    """A new name: UTC time of the start, so that names sort, and 6 random hexadecimal digits."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"


def this_host() -> Host:
    """The facts of this machine that a result records."""
    return Host(kernel=platform.release(), machine=platform.machine(), python=sys.version.split()[0])
