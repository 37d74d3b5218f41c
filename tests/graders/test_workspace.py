from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import ConfigurationError, UsageError
from runner_e2e.graders.workspace import Difference, compare, read_manifest, take_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    (place / "sub").mkdir(parents=True)
    (place / "a.txt").write_text("a")
    (place / "sub" / "b.txt").write_text("b")
    (place / "link").symlink_to("a.txt")
    os.mkfifo(place / "fifo")
    return place


def write_and_remove(place: Path) -> None:
    (place / "sub" / "probe").write_text("x")
    (place / "sub" / "probe").unlink()


def rewrite(place: Path) -> None:
    before = (place / "a.txt").stat()
    (place / "a.txt").write_text("a")
    os.utime(place / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def relink(place: Path) -> None:
    (place / "link").unlink()
    (place / "link").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        (lambda _: None, []),
        (lambda place: (place / "a.txt").read_text(), []),
        (lambda place: (place / "new").write_text("x"), [("new", "created")]),
        (lambda place: (place / "sub" / "b.txt").unlink(), [("sub/b.txt", "removed")]),
        (lambda place: (place / "a.txt").write_text("b"), [("a.txt", "modified")]),
        (lambda place: (place / "a.txt").chmod(0o600), [("a.txt", "modified")]),
        (write_and_remove, [("sub", "touched")]),
        (rewrite, [("a.txt", "touched")]),
        (relink, [(".", "touched"), ("link", "modified")]),
        (lambda place: (place / "new\udcff\n").write_text("x"), [("new\udcff\n", "created")]),
        (lambda place: (place / "sub").rename(place / "other"), None),
    ],
)
def test_what_differs(
    workspace: Path, change: Callable[[Path], object], differences: list[tuple[str, str]] | None, tmp_path: Path
) -> None:
    before = tmp_path / "before.json"
    before.write_text(take_manifest(workspace).to_json())
    change(workspace)
    found = compare(read_manifest(before), take_manifest(workspace))
    if differences is None:
        assert {one.path for one in found} == {"other", "other/b.txt", "sub", "sub/b.txt"}
    else:
        assert list(found) == [Difference(path=path, what=what) for path, what in differences]


def test_odd_entries_are_neither_opened_nor_followed(workspace: Path) -> None:
    (workspace / "loop").symlink_to(".")
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(workspace):
        server.bind("socket")
    kinds = {path: entry.kind for path, entry in take_manifest(workspace).entries.items()}
    assert kinds == {
        ".": "directory",
        "a.txt": "file",
        "fifo": "fifo",
        "link": "link",
        "loop": "link",
        "socket": "socket",
        "sub": "directory",
        "sub/b.txt": "file",
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": "other"}',
        b"\xff",
        b"[" * 100_000,
        json.dumps({"schema": "runner-e2e.manifest/v1", "entries": {"a": [1]}}).encode(),
        json.dumps({"schema": "runner-e2e.manifest/v1", "entries": []}).encode(),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="no manifest"):
        read_manifest(path)


def test_a_missing_directory_or_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a directory"):
        take_manifest(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_manifest(tmp_path / "none")
