"""The trusted launch root: a read-only image whose files run in place, without a copy and without a hash.

Off by default. A process sets it at most once, at its start. Every artifact is decided anew, on its open descriptor.
"""

from __future__ import annotations

import os
import stat
import sys

from runner_e2e import kernel
from runner_e2e.artifacts.backing import find_backing
from runner_e2e.artifacts.opening import kernel_path
from runner_e2e.artifacts.reasons import Reason, reason
from runner_e2e.sandbox.facts import beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.artifacts.backing import Backing

__all__ = [
    "IMAGE_KINDS",
    "RefusedRoot",
    "TrustedRoot",
    "examine_root",
    "file_system",
    "process_root",
    "set_process_root",
]

# Numbers from the kernel's linux/magic.h; both kinds can only be mounted read-only.
IMAGE_KINDS = {0xE0F5E1E2: "erofs", 0x73717368: "squashfs"}
_OTHER_KINDS = {
    0xEF53: "ext4",
    0x01021994: "tmpfs",
    0x794C7630: "overlay",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x9660: "iso9660",
    0x6969: "nfs",
    0x65735546: "fuse",
    0x01021997: "9p",
    0x858458F6: "ramfs",
    0x9FA0: "proc",
    0x2FC12FC1: "zfs",
    0x4D44: "vfat",
    0xF2F52010: "f2fs",
}


class RefusedRoot:
    """A trusted launch root that was asked for and is not used: every artifact is run from a snapshot."""

    def __init__(self, path: str, why: Reason) -> None:
        self.path = path
        self.reason = why


class TrustedRoot:
    """An admitted root. ``backing`` is what its bytes come from."""

    def __init__(self, *, path: str, device: int, kind: str, backing: Backing) -> None:
        self.path = path
        self.device = device
        self.kind = kind
        self.backing = backing

    def __str__(self) -> str:
        return f"{self.path} ({self.kind} on {'; '.join(self.backing.lines) or 'an unknown device'})"

    def doubt(self, descriptor: int, device: int) -> Reason | None:
        """Why the artifact open as *descriptor*, on *device* (``st_dev``), may not run in place, or None."""
        for _, doubt in self.judge(descriptor, device):
            if doubt:
                return doubt
        return None

    def judge(self, descriptor: int, device: int) -> Iterator[tuple[str, Reason | None]]:
        """Every condition in its order: what is asked, and what speaks against the artifact. Ends with the first no."""
        elsewhere = device != self.device
        numbers = {"found": _numbers(device), "root": self.path, "device": _numbers(self.device)} if elsewhere else {}
        yield "on the device of the root", reason("other-device", **numbers) if elsewhere else None
        real = kernel_path(descriptor)
        outside = not beneath(real, self.path)
        yield "beneath the root", reason("outside", real=real, root=self.path) if outside else None
        flags = os.fstatvfs(descriptor).f_flag
        yield "on a read-only mount", None if flags & os.ST_RDONLY else reason("not-read-only")
        yield "on a mount that permits execution", reason("noexec") if flags & os.ST_NOEXEC else None
        magic = kernel.file_system_magic(descriptor)
        other = magic not in IMAGE_KINDS
        yield "on erofs or squashfs", reason("file-system", kind=file_system(magic)) if other else None
        yield "from an image that only root can write", self.backing.doubt()

    def close(self) -> None:
        """Closes what is held of the images below."""
        self.backing.close()


def file_system(magic: int) -> str:
    """The name of a kind of file system, or its number."""
    return IMAGE_KINDS.get(magic) or _OTHER_KINDS.get(magic) or f"file system {magic:#x}"


def examine_root(path: str, *, platform: str = sys.platform) -> TrustedRoot | RefusedRoot:
    """Judges *path* as a trusted launch root. Never raises for a bad one: snapshots are always possible."""
    if platform != "linux":
        return RefusedRoot(path, reason("root-not-linux"))
    if not path.startswith("/"):
        return RefusedRoot(path, reason("root-not-absolute"))
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        return RefusedRoot(path, reason("root-not-opened", error=getattr(error, "strerror", None) or error))
    try:
        found = _examine(path, descriptor)
    finally:
        os.close(descriptor)
    return RefusedRoot(path, found) if isinstance(found, Reason) else found


def _examine(path: str, descriptor: int) -> TrustedRoot | Reason:
    facts = os.fstat(descriptor)
    if (real := kernel_path(descriptor)) != path:
        return reason("root-not-canonical", real=real)
    if not stat.S_ISDIR(facts.st_mode):
        return reason("root-not-directory")
    if (magic := kernel.file_system_magic(descriptor)) not in IMAGE_KINDS:
        return reason("root-file-system", kind=file_system(magic))
    flags = os.fstatvfs(descriptor).f_flag
    if not flags & os.ST_RDONLY:
        return reason("root-not-read-only")
    if flags & os.ST_NOEXEC:
        return reason("root-noexec")
    backing = find_backing(facts.st_dev)
    if isinstance(backing, Reason):
        return backing
    return TrustedRoot(path=path, device=facts.st_dev, kind=IMAGE_KINDS[magic], backing=backing)


def _numbers(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


_process_root: list[TrustedRoot | RefusedRoot] = []


def set_process_root(path: str) -> TrustedRoot | RefusedRoot:
    """Sets the root of this process. Raises :class:`UsageError` when it was set before, whatever came of that."""
    from runner_e2e.errors import UsageError

    if _process_root:
        raise UsageError(
            f"the trusted launch root cannot be set to {path}",
            why=f"this process has one already: {_process_root[0].path}",
            fix="set it once, at the start",
        )
    _process_root.append(examine_root(path))
    return _process_root[0]


def process_root() -> TrustedRoot | RefusedRoot | None:
    """The root of this process: None where none was asked for."""
    return _process_root[0] if _process_root else None
