"""Looking for canaries in files."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from runner_e2e.sandbox.canary import Canary, Finder
from runner_e2e.workflow_audit import disk as disk_module
from runner_e2e.workflow_audit.disk import CHUNK, Disk

if TYPE_CHECKING:
    from pathlib import Path

VALUE = "k3v9canary0q8w7e6r5t4z"


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(disk_module, "SHARED", (tmp_path / "shared",))
    for name in ("home", "shared", "base"):
        (tmp_path / name).mkdir()
    return Disk(
        Finder([Canary(name="id", value=VALUE)]),
        (tmp_path / "home",),
        base=tmp_path / "shared" / "base",
        since=time.time() - 1,
    )


def names(disk: Disk) -> list[str]:
    return sorted(found.path.name for found in disk.changed())


def settle(path: Path) -> None:
    """As if the file had been written a while ago."""
    os.utime(path, ns=(time.time_ns(), time.time_ns() - 10**9))


def test_a_file_is_told_once_until_it_changes(disk: Disk, tmp_path: Path) -> None:
    file = tmp_path / "home" / "a"
    file.write_text(f"x{VALUE}")
    settle(file)
    assert names(disk) == ["a"]
    assert names(disk) == []
    file.write_text(VALUE)
    assert names(disk) == ["a"]


def test_a_file_that_was_just_written_is_read_again(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "home" / "a"
    file.write_text("nothing here")
    moment = file.stat().st_mtime_ns
    monkeypatch.setattr(time, "time_ns", lambda: moment + disk_module.TICK)
    assert names(disk) == []
    file.write_text(VALUE[:12])
    os.utime(file, ns=(moment, moment))
    assert names(disk) == ["a"]


def test_names_links_and_binary_content(disk: Disk, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / f"in-{VALUE}").write_text("")
    (home / "link").symlink_to(f"/nowhere/{VALUE}")
    (home / "binary").write_bytes(b"\0\xff" + VALUE.upper().encode() + b"\0")
    os.mkfifo(home / "pipe")
    found = {(each.path.name[:6], each.in_name) for each in disk.changed()}
    assert found == {(f"in-{VALUE}"[:6], True), ("link", False), ("binary", False)}


def test_the_name_of_a_directory(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "home" / f"of-{VALUE}" / "below").mkdir(parents=True)
    assert [(found.path.name, found.in_name) for found in disk.changed()] == [(f"of-{VALUE}", True)]
    (tmp_path / "home" / f"of-{VALUE}" / "later").mkdir()
    assert disk.changed() == []


def test_a_value_across_two_chunks(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "home" / "big").write_bytes(b"." * (CHUNK - 5) + VALUE.encode() + b"." * CHUNK)
    assert names(disk) == ["big"]


def test_shared_directories_only_as_far_as_they_are_new(disk: Disk, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "base").mkdir()
    (shared / "base" / "ours").write_text(VALUE)
    (shared / "theirs").write_text(VALUE)
    assert names(disk) == ["theirs"]
    late = Disk(disk.finder, (), base=disk.base, since=time.time() + 60)
    assert names(late) == []


def test_too_many_files_are_said(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "SHARED_ENTRIES", 3)
    for number in range(5):
        (tmp_path / "shared" / str(number)).write_text("")
    disk.changed()
    assert disk.cut_short
