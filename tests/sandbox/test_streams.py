from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import LaunchError
from runner_e2e.sandbox.plan import Step
from runner_e2e.sandbox.streams import refuse_reopening, reopens_hidden

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def steps(tmp_path: Path) -> tuple[Step, ...]:
    (tmp_path / "hidden" / "own").mkdir(parents=True)
    return (
        Step(path=str(tmp_path / "hidden"), role="hide"),
        Step(path=str(tmp_path / "hidden" / "own"), role="expose"),
    )


@pytest.mark.parametrize(("name", "hidden"), [("hidden/log", True), ("hidden/own/log", False), ("log", False)])
def test_only_hidden_files_reopen(tmp_path: Path, steps: tuple[Step, ...], name: str, hidden: bool) -> None:
    with (tmp_path / name).open("w") as file:
        assert reopens_hidden(file.fileno(), 1, steps) is hidden
        (tmp_path / name).unlink()
        assert reopens_hidden(file.fileno(), 1, steps) is hidden


def test_pipes_and_devices_do_not_reopen(steps: tuple[Step, ...]) -> None:
    read, write = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    refuse_reopening((read, write, nothing), steps)
    for descriptor in (read, write, nothing):
        os.close(descriptor)


def test_directories_and_closed_descriptors_are_refused(tmp_path: Path, steps: tuple[Step, ...]) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(LaunchError, match="standard stream 2 is refused"):
        reopens_hidden(directory, 2, steps)
    os.close(directory)
    with pytest.raises(LaunchError, match="standard stream 0 is refused") as caught:
        reopens_hidden(directory, 0, steps)
    assert "closed" in caught.value.problem.why
