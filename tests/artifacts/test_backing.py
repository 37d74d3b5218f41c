"""Devices under devices, in a tree of files that looks like ``/sys``."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.artifacts.descriptors import open_descriptors

from runner_e2e import kernel
from runner_e2e.artifacts import backing
from runner_e2e.artifacts.backing import Backing, find_backing, writers
from runner_e2e.artifacts.reasons import Reason, reason
from runner_e2e.sandbox.facts import Mount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Tree:
    """A ``/sys`` of block devices, and a ``/dev`` without nodes."""

    def __init__(self, place: Path) -> None:
        self.sys, self.dev = place / "sys", place / "dev"
        (self.sys / "dev" / "block").mkdir(parents=True)
        self.dev.mkdir()

    def device(
        self, name: str, number: str, files: Mapping[str, str] | None = None, *, slaves: tuple[str, ...] = ()
    ) -> int:
        directory = self.sys / "devices" / name
        directory.mkdir(parents=True)
        for path, content in {"dev": f"{number}\n", "ro": "1\n", **(files or {})}.items():
            (directory / path).parent.mkdir(exist_ok=True)
            (directory / path).write_text(content)
        (directory / "slaves").mkdir()
        for other in slaves:
            (directory / "slaves" / other.rpartition("/")[2]).symlink_to(self.sys / "devices" / other)
        (self.sys / "dev" / "block" / number).symlink_to(directory)
        major, _, minor = number.partition(":")
        return os.makedev(int(major), int(minor))

    def find(self, device: int) -> Backing | Reason:
        return find_backing(device, system=str(self.sys), nodes=str(self.dev))


@pytest.fixture(name="tree")
def _tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


class OfRoot:
    """Facts of a file with root as its owner, on no block device: what lies below the tests' disk does not matter."""

    st_uid, st_dev = 0, 20

    def __init__(self, facts: os.stat_result) -> None:
        self.facts = facts

    def __getattr__(self, name: str) -> object:
        return getattr(self.facts, name)


@pytest.fixture(name="image")
def _image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image that looks as if it were root's, whoever runs the tests."""
    path = tmp_path / "rom.img"
    path.write_bytes(b"image")
    path.chmod(0o644)
    original = os.fstat
    monkeypatch.setattr(os, "fstat", lambda descriptor: OfRoot(original(descriptor)))
    monkeypatch.setattr(backing, "read_mounts", lambda: ())
    return path


def lines(found: Backing | Reason) -> list[str]:
    assert isinstance(found, Backing), found
    found.close()
    return found.lines


def test_a_disk(tree: Tree) -> None:
    assert lines(tree.find(tree.device("vda", "254:0"))) == ["device vda"]


def test_a_device_that_nothing_is_known_of(tree: Tree) -> None:
    assert lines(tree.find(os.makedev(99, 1))) == ["device 99:1"]


def test_a_loop_device_is_followed_to_its_image(tree: Tree, image: Path) -> None:
    device = tree.device("loop0", "7:0", {"loop/backing_file": f"{image}\n"})
    assert lines(tree.find(device)) == [f"loop0, image {image}, which only root can write"]
    image.chmod(0o646)
    assert tree.find(device) == reason("image-writable", image=image, whom="everybody")


def test_a_partition_of_a_loop_device(tree: Tree, image: Path) -> None:
    tree.device("loop0", "7:0", {"loop/backing_file": f"{image}\n"})
    part = tree.device("loop0/loop0p1", "259:0", {"partition": "1\n"})
    assert lines(tree.find(part)) == [f"loop0, image {image}, which only root can write"]


def test_a_stacked_device_over_loop_devices(tree: Tree, image: Path) -> None:
    tree.device("loop0", "7:0", {"loop/backing_file": f"{image}\n"})
    tree.device("loop1", "7:1", {"loop/backing_file": f"{image}x (deleted)\n"})
    stacked = tree.device("dm-0", "253:0", {"dm/uuid": "LVM-abc\n", "dm/name": "vg-rom\n"}, slaves=("loop0", "loop1"))
    assert tree.find(stacked) == reason("image-deleted", image=f"{image}x")


def test_dm_verity_ends_the_search(tree: Tree, image: Path) -> None:
    image.chmod(0o666)
    tree.device("loop0", "7:0", {"loop/backing_file": f"{image}\n"})
    files = {"dm/uuid": "CRYPT-VERITY-abc-rom\n", "dm/name": "rom\n"}
    assert lines(tree.find(tree.device("dm-0", "253:0", files, slaves=("loop0",)))) == ["rom, checked by dm-verity"]


def test_devices_in_a_circle_end(tree: Tree) -> None:
    device = tree.device("dm-0", "253:0", slaves=("dm-0",))
    assert lines(tree.find(device)) == []


def test_an_image_that_cannot_be_seen_is_said_so(tree: Tree, tmp_path: Path) -> None:
    for number, path in enumerate((f"{tmp_path}/elsewhere.img", "(unreachable)/rom.img", "/rom.img/x")):
        device = tree.device(f"loop{number}", f"7:{number}", {"loop/backing_file": f"{path}\n"})
        assert lines(tree.find(device)) == [f"loop{number}, whose image {path} cannot be seen from here"]


def test_an_image_on_fuse(tree: Tree, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tree.device("loop0", "7:0", {"loop/backing_file": f"{image}\n"})
    monkeypatch.setattr(kernel, "file_system_magic", lambda _: 0x65735546)
    assert tree.find(device) == reason("image-on-fuse", image=image)


def test_an_image_mounted_without_a_device(tree: Tree, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = image.with_name("blob.img")
    other.write_bytes(b"more")
    other.chmod(0o606)

    def mounted(options: str) -> Callable[[], tuple[Mount, ...]]:
        entry = Mount(device="0:41", root="/", point="/rom", kind="erofs", options=options, source=str(image))
        return lambda: (entry,)

    monkeypatch.setattr(backing, "read_mounts", mounted("ro,acl"))
    assert lines(tree.find(os.makedev(0, 41))) == [f"erofs, image {image}, which only root can write"]
    assert lines(tree.find(os.makedev(0, 42))) == []
    monkeypatch.setattr(backing, "read_mounts", mounted(f"ro,device={other}"))
    assert tree.find(os.makedev(0, 41)) == reason("image-writable", image=other, whom="everybody")


def test_a_device_file_that_everybody_may_write(tree: Tree) -> None:
    """``/dev/zero`` plays a device that others may write; a read-only device cannot be written through its file."""
    number = Path("/dev/zero").stat().st_rdev
    device = tree.device("zero", f"{os.major(number)}:{os.minor(number)}", {"ro": "0\n"})
    (tree.dev / "zero").symlink_to("/dev/zero")
    assert tree.find(device) == reason("device-writable", device=f"{tree.dev}/zero", whom="everybody")
    (tree.sys / "devices" / "zero" / "ro").write_text("1\n")
    assert lines(tree.find(device)) == ["device zero"]


def test_an_admitted_image_is_asked_again(tree: Tree, image: Path) -> None:
    found = tree.find(tree.device("loop0", "7:0", {"loop/backing_file": f"{image}\n"}))
    assert isinstance(found, Backing)
    assert found.doubt() is None
    image.chmod(0o664)
    doubt = found.doubt()
    assert doubt
    assert doubt.code == "image-writable"
    found.close()


def test_no_descriptor_is_left(tree: Tree, image: Path) -> None:
    before = open_descriptors()
    device = tree.device("loop0", "7:0", {"loop/backing_file": f"{image}\n"})
    lines(tree.find(device))
    image.chmod(0o666)
    assert isinstance(tree.find(device), Reason)
    assert open_descriptors() <= before


@pytest.mark.parametrize(
    ("user", "mode", "whom"),
    [
        (0, 0o644, ""),
        (0, 0o600, ""),
        (0, 0o664, "group 5"),
        (0, 0o646, "everybody"),
        (1000, 0o444, "its owner, user 1000"),
        (1000, 0o666, "its owner, user 1000 and group 5 and everybody"),
    ],
)
def test_who_may_write(user: int, mode: int, whom: str) -> None:
    facts = SimpleNamespace(st_uid=user, st_gid=5, st_mode=stat.S_IFREG | mode)
    assert writers(cast("os.stat_result", facts)) == whom
