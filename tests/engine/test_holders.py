"""Who above still shows the cell is told, without showing it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.engine.catalogs import catalog, cells

from runner_e2e.engine.holders import holder_warnings

if TYPE_CHECKING:
    from pathlib import Path

CASE = "agents.change-manager"
ID = f"suite.profile.local.{CASE}"
CELLS = cells(catalog(cases=(CASE,)))


def process(root: Path, pid: int, parent: int, *, environ: str = "", cmdline: str = "", name: str = "bash") -> None:
    directory = root / str(pid)
    directory.mkdir(exist_ok=True)
    (directory / "stat").write_text(f"{pid} ({name} x) 1) S {parent} 1 1")
    (directory / "environ").write_text(environ.replace("|", "\0"))
    (directory / "cmdline").write_text(cmdline.replace(" ", "\0"))
    (directory / "comm").write_text(f"{name}\n")


@pytest.mark.parametrize(
    ("environ", "cmdline", "place"),
    [
        (f"A=1|CELL={ID}|", "", "in its environment"),
        (f'EVENT={{"id":"{ID}"}}|', "", "in its environment"),
        ("", f"bash -c runner-e2e run --local --case {CASE}", "on its command line"),
        ("", f"timeout 60 runner-e2e run --local --case={CASE}", "on its command line"),
        (f"CELL={ID}", f"run --id {ID}", "in its environment and on its command line"),
        ("", "runner-e2e run --local --case another", ""),
        ("", f"runner-e2e run --case {CASE}-2", ""),
        ("", f"runner-e2e run --case my-{CASE}", ""),
    ],
)
def test_processes_above(tmp_path: Path, environ: str, cmdline: str, place: str) -> None:
    process(tmp_path, os.getppid(), 77, cmdline="python3")
    process(tmp_path, 77, 1, environ=environ, cmdline=cmdline)
    process(tmp_path, 1, 0, name="init")
    process(tmp_path, 99, 1, environ=f"CELL={ID}")  # not above
    warnings = holder_warnings(CELLS, processes=tmp_path)
    assert [f"process 77 (bash) above this one shows the selected cell {place}: " in text for text in warnings] == (
        [True] if place else []
    )
    assert not [text for text in warnings if CASE in text]


def test_a_short_name_of_a_case_is_no_sign(tmp_path: Path) -> None:
    process(tmp_path, os.getppid(), 0, cmdline="make one")
    assert holder_warnings(cells(catalog(cases=("one",))), processes=tmp_path) == ()


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    assert holder_warnings(CELLS, processes=tmp_path) == ()


def test_a_large_campaign_is_not_looked_at(tmp_path: Path) -> None:
    process(tmp_path, os.getppid(), 0, environ=ID)
    names = (CASE, *(f"case-{number}" for number in range(30)))
    assert holder_warnings(cells(catalog(cases=names)), processes=tmp_path) == ()
