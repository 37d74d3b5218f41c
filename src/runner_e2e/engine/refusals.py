"""The record of a cell that was refused before anything was started: it has cost nothing, and that is known.

Without it the cell of a paid job would count as unknown, and what was reserved for it would stay reserved.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from runner_e2e import __version__
from runner_e2e.cells.handles import PUBLIC_KEY, handle, random_key
from runner_e2e.engine.campaign_plan import campaign_name, this_host
from runner_e2e.engine.record import NOTHING_SPENT
from runner_e2e.report.results import RESULT_FILE, Exit, Failure, Output, Result, Retry, time_text, write_result

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.cells.model import Catalog, Cell

__all__ = ["record_refusal"]


def record_refusal(
    catalog: Catalog, cell: Cell, reason: str, *, output: Path, key: bytes | None = None
) -> tuple[Result, Path]:
    """Writes below *output* that *cell* was not run, for *reason*; returns the record and its file.

    The cell is named by *key*, or by a random one. Raises :class:`OSError` where the record cannot be written.
    """
    name, now = campaign_name(), time_text(time.time())
    public = handle(PUBLIC_KEY if catalog.plain_ids else key or random_key(), cell.id)
    result = Result(
        id=cell.id, handle=public, campaign=name, attempt=1, attempts=1 + min(1, catalog.retries), selection="env",
        verdict="not_run", failure=Failure(failure_class="permanent_infrastructure", message=reason),
        started=now, ended=now, duration_s=0.0, exit=Exit(), usage=NOTHING_SPENT,
        retry=Retry(allowed=False, reason="nothing was started"), output=Output(), left_processes=0, sandbox=(),
        notes=(), definition_hash=cell.definition_hash, engine=__version__, host=this_host(),
    )  # fmt: skip
    directory = output / name / public / "attempt-1"
    directory.mkdir(mode=0o700, parents=True)
    write_result(result, directory / RESULT_FILE)
    return result, directory / RESULT_FILE
