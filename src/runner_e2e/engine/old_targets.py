"""Decides how a target's harness is told its cell: in the variable, or, for old targets only, with ``--id``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner_e2e.errors import ConfigurationError, RefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.cells.model import SelectedId
    from runner_e2e.report.results import Selection

__all__ = ["ARGV_WARNING", "selection_of"]

ARGV_WARNING: Final = (
    "this target's harness does not read the selected id's variable, so the id stands on its command line, "
    "where every process on the machine can read it"
)
_MAXIMUM_SOURCE_BYTES: Final = 8 * 1024 * 1024


def selection_of(selected_id: SelectedId, target: Path, *, cells: int) -> Selection:
    """Returns ``env`` or ``argv``. ``argv`` needs the catalog's ``argv-fallback: true`` and a single cell.

    Raises :class:`RefusedError` where an id would stand on a command line without that, and
    :class:`ConfigurationError` where ``auto`` finds no source to look into.
    """
    detected = selected_id.detection
    if detected == "auto":
        detected = "env" if _reads_variable(selected_id, target) else "argv"
    if detected == "env":
        return "env"
    if not selected_id.argv_fallback:
        raise RefusedError(
            f"the target's harness does not read {selected_id.variable}",
            why="it would need the id on its command line, where every process on the machine can read it",
            fix="let the harness read the variable, or say `argv-fallback: true` below `selected-id` in the catalog",
        )
    if cells != 1:
        raise RefusedError(
            f"the target's harness does not read {selected_id.variable}, and {cells} cells were selected",
            why="an id on a command line is accepted for a single cell only",
            fix="select one cell, or let the harness read the variable",
        )
    return "argv"


def _reads_variable(selected_id: SelectedId, target: Path) -> bool:
    """Whether the variable's name stands in one of the declared sources."""
    name = selected_id.variable.encode()
    files = [path for pattern in selected_id.sources for path in sorted(target.glob(pattern)) if path.is_file()]
    if not files:
        raise ConfigurationError(
            "`selected-id: auto` found no harness source to look into",
            why=f"no file matches {', '.join(selected_id.sources) or 'an empty list of sources'} below {target}",
            fix="name the harness's sources below `selected-id` in the catalog, or say `env` or `argv`",
        )
    return any(name in _content(path) for path in files)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_MAXIMUM_SOURCE_BYTES)
    except OSError as error:
        raise ConfigurationError(
            f"the harness source {path} cannot be read",
            why=error.strerror or str(error),
            fix="make it readable, or take it out of the sources below `selected-id` in the catalog",
        ) from error
