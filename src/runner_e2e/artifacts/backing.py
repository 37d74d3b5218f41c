"""Who else may write the bytes below a read-only file system: its image, its devices.

A read-only mount does not protect its image: whoever writes the file below changes what runs. Loop devices are
followed to their image, partitions and stacked devices to what they lie on; dm-verity ends the search, because then
the kernel checks every block itself.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct

from runner_e2e import kernel
from runner_e2e.artifacts.reasons import Reason, reason
from runner_e2e.sandbox.facts import read_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Backing", "find_backing", "writers"]

_LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO_BYTES = 232  # struct loop_info64; its first two words are the device and inode of the image
_FUSE_MAGIC = 0x65735546
_MAXIMUM_DEPTH = 8
_DELETED = " (deleted)"


class Backing:
    """What a file system's bytes come from.

    ``lines`` describe it for a log. ``images`` are path descriptors of the image files, kept open so that
    :meth:`doubt` can ask again before each launch without trusting a path.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.images: list[tuple[str, int]] = []

    def doubt(self) -> Reason | None:
        """Why the bytes cannot be trusted at this moment, or None."""
        for path, descriptor in self.images:
            if whom := writers(os.fstat(descriptor)):
                return reason("image-writable", image=path, whom=whom)
        return None

    def close(self) -> None:
        """Closes the descriptors of the images."""
        while self.images:
            os.close(self.images.pop()[1])


def writers(facts: os.stat_result, *, group: bool = True) -> str:
    """Who but root may write a file of these facts; empty for nobody. With *group* its group counts too.

    An access list shows as rights of the group, so that it is seen here.
    """
    found = []
    if facts.st_uid != 0:
        found.append(f"its owner, user {facts.st_uid}")
    if group and facts.st_mode & stat.S_IWGRP:
        found.append(f"group {facts.st_gid}")
    if facts.st_mode & stat.S_IWOTH:
        found.append("everybody")
    return " and ".join(found)


def find_backing(device: int, *, system: str = "/sys", nodes: str = "/dev") -> Backing | Reason:
    """What lies below the file system on *device* (as in ``st_dev``), or why it is not to be trusted.

    What cannot be found (an image in another mount namespace, say) is described and not held against it.
    """
    search = _Search(system, nodes)
    try:
        doubt = search.device(device, 0)
    except BaseException:
        search.backing.close()
        raise
    if doubt:
        search.backing.close()
        return doubt
    return search.backing


class _Search:
    def __init__(self, system: str, nodes: str) -> None:
        self.system = system
        self.nodes = nodes
        self.backing = Backing()

    def device(self, device: int, depth: int) -> Reason | None:
        """Follows one device down; returns the first doubt."""
        if depth > _MAXIMUM_DEPTH:
            return None
        if os.major(device) == 0:
            return self.mount(device, depth)
        directory = os.path.realpath(f"{self.system}/dev/block/{os.major(device)}:{os.minor(device)}")
        name = _read(f"{directory}/dm/name") or os.path.basename(directory)
        if _read(f"{directory}/dm/uuid").startswith("CRYPT-VERITY-"):
            self.backing.lines.append(f"{name}, checked by dm-verity")
            return None
        if doubt := self.node(directory, device):
            return doubt
        if image := _read(f"{directory}/loop/backing_file"):
            return self.image(image, name, depth)
        below = [*self.below(directory)]
        if not below:
            self.backing.lines.append(f"device {name}")
        for other in below:
            if doubt := self.device(other, depth + 1):
                return doubt
        return None

    def below(self, directory: str) -> Iterator[int]:
        """The devices that this one is made of."""
        places = [f"{directory}/slaves/{name}" for name in _names(f"{directory}/slaves")]
        if os.path.exists(f"{directory}/partition"):
            places.append(os.path.dirname(directory))
        for place in places:
            major, colon, minor = _read(f"{place}/dev").partition(":")
            if colon:
                yield os.makedev(int(major), int(minor))

    def node(self, directory: str, device: int) -> Reason | None:
        """Judges the file in ``/dev``. Its group (``disk``) is root's equal on every system that has it."""
        if _read(f"{directory}/ro") == "1":
            return None
        path = f"{self.nodes}/{os.path.basename(directory).replace('!', '/')}"
        try:
            facts = os.stat(path)
        except OSError:
            return None
        if facts.st_rdev == device and (whom := writers(facts, group=False)):
            return reason("device-writable", device=path, whom=whom)
        return None

    def mount(self, device: int, depth: int) -> Reason | None:
        """A file system without a device of its own: erofs can be mounted from a file."""
        shown = f"{os.major(device)}:{os.minor(device)}"
        for entry in read_mounts():
            if entry.device != shown:
                continue
            options = [option.partition("=") for option in entry.options.split(",")]
            for path in (entry.source, *(value for key, _, value in options if key == "device")):
                if doubt := self.image(path, entry.kind, depth):
                    return doubt
            return None
        return None

    def image(self, path: str, reader: str, depth: int) -> Reason | None:
        """Judges a file that *reader* (a loop device or a kind of file system) takes its bytes from."""
        unseen = f"{reader}, whose image {path} cannot be seen from here"
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC) if path.startswith("/") else -1
        except OSError:
            if path.endswith(_DELETED):
                return reason("image-deleted", image=path.removesuffix(_DELETED))
            descriptor = -1
        if descriptor < 0:
            self.backing.lines.append(unseen)
            return None
        self.backing.images.append((path, descriptor))
        facts = os.fstat(descriptor)
        if stat.S_ISBLK(facts.st_mode):
            return self.device(facts.st_rdev, depth + 1)
        identity = self.identity(reader)
        if identity and identity != (facts.st_dev, facts.st_ino):
            return reason("image-replaced", image=path, device=reader)
        if kernel.file_system_magic(descriptor) == _FUSE_MAGIC:
            return reason("image-on-fuse", image=path)
        if whom := writers(facts):
            return reason("image-writable", image=path, whom=whom)
        self.backing.lines.append(f"{reader}, image {path}, which only root can write")
        return self.device(facts.st_dev, depth + 1) if os.major(facts.st_dev) else None

    def identity(self, reader: str) -> tuple[int, int] | None:
        """Device and inode of what a loop device reads, where this process may ask it."""
        try:
            descriptor = os.open(f"{self.nodes}/{reader}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            facts = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(_LOOP_INFO_BYTES))
        except OSError:
            return None
        finally:
            os.close(descriptor)
        device, inode = struct.unpack_from("=QQ", facts)
        return device, inode


def _read(path: str) -> str:
    """The content of a file of ``/sys`` without its line end, or empty."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().removesuffix("\n")
    except OSError:
        return ""


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
