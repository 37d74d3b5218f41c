from __future__ import annotations

import itertools
import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from runner_e2e import kernel
from runner_e2e.artifacts import trusted_root
from runner_e2e.artifacts.backing import Backing
from runner_e2e.artifacts.launch import prepare
from runner_e2e.artifacts.reasons import Reason, reason
from runner_e2e.artifacts.trusted_root import (
    IMAGE_KINDS,
    RefusedRoot,
    TrustedRoot,
    examine_root,
    process_root,
    set_process_root,
)
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

EROFS, SQUASHFS = 0xE0F5E1E2, 0x73717368
EXT4 = 0xEF53


class Machine:
    """What the kernel says of one open file, for conditions that no real mount can bring about."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.flags, self.magic = "/rom/bin/tool", os.ST_RDONLY, EROFS
        monkeypatch.setattr(trusted_root, "kernel_path", lambda _: self.path)
        monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(f_flag=self.flags))
        monkeypatch.setattr(kernel, "file_system_magic", lambda _: self.magic)


@pytest.fixture(name="machine")
def _machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def root(path: str = "/rom", device: int = 7) -> TrustedRoot:
    return TrustedRoot(path=path, device=device, kind="erofs", backing=Backing())


@pytest.mark.parametrize("magic", IMAGE_KINDS)
def test_all_conditions_together_admit(machine: Machine, magic: int) -> None:
    machine.magic = magic
    assert root().doubt(3, 7) is None


@pytest.mark.parametrize(
    ("path", "directory", "inside"),
    [
        ("/rom/tool", "/rom", True),
        ("/rom/a/b/tool", "/rom/a", True),
        ("/rom2/tool", "/rom", False),
        ("/rom", "/rom", False),
        ("/romtool", "/rom", False),
        ("/other/rom/tool", "/rom", False),
        ("/tool", "/", True),
        ("(unreachable)/rom/tool", "/rom", False),
        ("/ROM/tool", "/rom", False),
    ],
)
def test_paths_count_by_components(machine: Machine, path: str, directory: str, inside: bool) -> None:
    machine.path = path
    doubt = root(directory).doubt(3, 7)
    assert (doubt is None) == inside
    if doubt:
        assert doubt == reason("outside", real=path, root=directory)


def test_each_condition_alone_refuses(machine: Machine) -> None:
    good = {"path": machine.path, "flags": os.ST_RDONLY, "magic": EROFS}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"flags": 0}, "not-read-only"),
        ({"flags": os.ST_RDONLY | os.ST_NOEXEC}, "noexec"),
        ({"magic": EXT4}, "file-system"),
        ({"path": "/rom2/tool"}, "outside"),
    ]
    for change, code in cases:
        for name, value in {**good, **change}.items():
            setattr(machine, name, value)
        doubt = root().doubt(3, 7)
        assert doubt
        assert doubt.code == code
    doubt = root().doubt(3, os.makedev(8, 1))
    assert doubt
    assert doubt.text == "it lies on device 8:1, the trusted launch root /rom on 0:7"


def test_nothing_but_the_whole_set_admits(machine: Machine) -> None:
    """Every combination of good and bad answers: admitted exactly when none is bad."""
    bad = {"path": "/tmp/tool", "flags": os.ST_RDONLY | os.ST_NOEXEC, "magic": EXT4}
    good = {"path": "/rom/tool", "flags": os.ST_RDONLY, "magic": SQUASHFS}
    for choice in itertools.product([True, False], repeat=4):
        for (name, value), wrong in zip(good.items(), choice, strict=False):
            setattr(machine, name, bad[name] if wrong else value)
        assert (root().doubt(3, 8 if choice[3] else 7) is None) == (not any(choice))


def test_off_linux_no_root_is_ever_used(tmp_path: Path) -> None:
    for platform in ("darwin", "win32", "freebsd14"):
        found = examine_root(str(tmp_path), platform=platform)
        assert isinstance(found, RefusedRoot)
        assert found.reason == reason("root-not-linux")


def test_roots_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    cases = {
        "": "root-not-absolute",
        ".": "root-not-absolute",
        f"{tmp_path}/absent": "root-not-opened",
        f"{tmp_path}\0": "root-not-opened",
        f"{tmp_path}/": "root-not-canonical",
        f"{tmp_path}/.": "root-not-canonical",
        f"/{tmp_path}": "root-not-canonical",
        f"{tmp_path}/link": "root-not-canonical",
        f"{tmp_path}/file": "root-not-directory",
        str(tmp_path): "root-file-system",
        "/proc": "root-file-system",
    }
    for path, code in cases.items():
        found = examine_root(path)
        assert isinstance(found, RefusedRoot), path
        assert found.reason.code == code, path


@pytest.mark.parametrize(("flags", "code"), [(0, "root-not-read-only"), (os.ST_RDONLY | os.ST_NOEXEC, "root-noexec")])
def test_mounts_that_are_none(tmp_path: Path, machine: Machine, flags: int, code: str) -> None:
    machine.path, machine.flags = str(tmp_path), flags
    found = examine_root(str(tmp_path))
    assert isinstance(found, RefusedRoot)
    assert found.reason.code == code


@pytest.fixture(name="fresh")
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusted_root, "_process_root", [])


@pytest.mark.usefixtures("fresh")
def test_a_process_sets_its_root_once(tmp_path: Path) -> None:
    assert process_root() is None
    first = set_process_root(str(tmp_path))
    assert process_root() is first
    for again in (str(tmp_path), "/rom"):
        with pytest.raises(UsageError, match="cannot be set"):
            set_process_root(again)
    assert process_root() is first


def test_a_refused_root_and_an_assigned_executable_mean_a_snapshot(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_bytes(b"content")
    tool.chmod(0o755)
    digest = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    for trusted, assigned, code in (
        (None, False, "no-root"),
        (None, True, "no-root"),
        (RefusedRoot("/rom", reason("root-noexec")), False, "root-unused"),
        (root(), True, "assigned"),
        (root(), False, "other-device"),
    ):
        with prepare(str(tool), sha256=f"sha256:{digest.upper()}", root=trusted, assigned=assigned) as launch:
            assert launch.how == "sealed-snapshot"
            assert isinstance(launch.reason, Reason)
            assert launch.reason.code == code
            assert bool(launch.warnings()) == (code != "no-root")
            assert launch.memory == 7
            assert launch.to_document()["reason"] == {"code": code, "text": launch.reason.text}


@pytest.mark.parametrize("text", ["", "sha256:", "0" * 63, "0" * 65, "g" * 64, "sha512:" + "0" * 64, " " * 64])
def test_what_is_no_digest(text: str) -> None:
    with pytest.raises(UsageError, match="is not a SHA-256 digest"):
        prepare("/bin/sh", sha256=text)


def test_the_decision_takes_microseconds(tmp_path: Path, machine: Machine) -> None:
    """A generous bound for a busy machine; the benchmark has the figure."""
    del machine
    trusted, best = root(), 1.0
    for _ in range(200):
        began = time.perf_counter()
        trusted.doubt(3, 7)
        best = min(best, time.perf_counter() - began)
    assert best < 0.001
