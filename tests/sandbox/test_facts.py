from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from runner_e2e.sandbox.facts import beneath, observe, read_mounts, same_or_beneath

if TYPE_CHECKING:
    from pathlib import Path


def test_what_stands_at_a_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    kinds = {
        "": "directory",
        "file": "file",
        "link": "file",
        "pipe": "socket, pipe or device",
        "dangling": "dangling symbolic link",
        "loop": "symbolic links in a circle",
        "none": "missing",
        "file/below": "missing",
    }
    assert {name: observe(str(tmp_path / name)).kind for name in kinds} == kinds
    assert observe("relative").kind == "relative"
    assert observe("/a\0b").kind == "missing"
    assert not observe("/a\0b").exists


def test_links_are_followed_and_named(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    fact = observe(f"{tmp_path}/link/../link//deep/")
    assert fact.given == f"{tmp_path}/link/deep"
    assert fact.real == f"{tmp_path}/real/deep"
    assert (fact.link, fact.link_target) == (f"{tmp_path}/link", f"{tmp_path}/real")
    state = (tmp_path / "real" / "deep").stat()
    assert (fact.device, fact.inode, fact.user) == (state.st_dev, state.st_ino, state.st_uid)


@pytest.mark.parametrize(
    ("path", "directory", "is_beneath"),
    [("/a/b", "/a", True), ("/ab", "/a", False), ("/a", "/a", False), ("/a", "/", True), ("/", "/", False)],
)
def test_beneath(path: str, directory: str, is_beneath: bool) -> None:
    assert beneath(path, directory) is is_beneath
    assert same_or_beneath(path, directory) is (is_beneath or path == directory)


def test_the_root_is_mounted() -> None:
    assert any(mount.point == "/" for mount in read_mounts())
