"""How an old target's harness is told its cell: never on a command line without permission."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner_e2e.cells.model import SelectedId
from runner_e2e.engine.old_targets import selection_of
from runner_e2e.errors import ConfigurationError, RefusedError

if TYPE_CHECKING:
    from pathlib import Path

READS = "cell = process.env.PAPERCLIP_RUNNER_E2E_SELECTED_ID;"
OLD = "const cell = argument('--id');"


def target(tmp_path: Path, *contents: str) -> Path:
    (tmp_path / "e2e").mkdir()
    for number, content in enumerate(contents):
        (tmp_path / "e2e" / f"harness-{number}.ts").write_text(content)
    return tmp_path


def auto(fallback: bool) -> SelectedId:
    return SelectedId(detection="auto", argv_fallback=fallback, sources=("e2e/**/*.ts",))


def test_env_is_taken_at_its_word(tmp_path: Path) -> None:
    assert selection_of(SelectedId(), tmp_path, cells=5) == "env"


def test_auto_finds_the_name_in_any_source(tmp_path: Path) -> None:
    assert selection_of(auto(fallback=False), target(tmp_path, OLD, READS), cells=5) == "env"


def test_auto_falls_back_where_allowed(tmp_path: Path) -> None:
    assert selection_of(auto(fallback=True), target(tmp_path, OLD), cells=1) == "argv"


def test_auto_is_refused_where_not_allowed(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="does not read PAPERCLIP_RUNNER_E2E_SELECTED_ID"):
        selection_of(auto(fallback=False), target(tmp_path, OLD), cells=1)


def test_argv_is_refused_without_permission(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        selection_of(SelectedId(detection="argv"), tmp_path, cells=1)


@pytest.mark.parametrize("detection", ["argv", "auto"])
def test_there_is_no_fallback_for_campaigns(tmp_path: Path, detection: str) -> None:
    selected = SelectedId(detection=detection, argv_fallback=True, sources=("e2e/*.ts",))  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="2 cells were selected"):
        selection_of(selected, target(tmp_path, OLD), cells=2)


@pytest.mark.parametrize("sources", [(), ("src/*.ts",)])
def test_auto_without_sources_is_no_guess(tmp_path: Path, sources: tuple[str, ...]) -> None:
    selected = SelectedId(detection="auto", argv_fallback=True, sources=sources)
    with pytest.raises(ConfigurationError, match="found no harness source"):
        selection_of(selected, target(tmp_path, OLD), cells=1)
