"""Keeps an agent that stays root from the kernel itself: root needs no capability to write its settings.

What the kernel starts by a setting, as for a process that crashes, it starts outside of every namespace; and a disk
shows every file, whatever covers it.
"""

from __future__ import annotations

import os
import stat

from runner_e2e import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.sandbox.plan import Plan

__all__ = ["hold_off", "stays_root"]

# Where the kernel takes orders from whoever is root, by the modes of the files alone.
_SETTINGS = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/acpi",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/mtrr",
    "/proc/scsi",
    "/sys",
)
_DEVICES = "/dev"
# A copy of the first finds no terminals: it looks for them beside itself.
_TERMINALS = {"/dev/ptmx": "/dev/pts/ptmx"}
_EVERYONE = stat.S_IROTH | stat.S_IWOTH
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def stays_root(plan: Plan) -> bool:
    """Whether the agent of *plan* is the root that launched it."""
    return plan.user <= 0 and plan.launcher_user == 0


def hold_off() -> None:
    """Makes the kernel's settings read-only, and leaves those devices that every user may open.

    Comes last in a new mount namespace. Raises :class:`OSError`.
    """
    for path in _SETTINGS:
        if os.path.exists(path):
            tree = kernel.clone_tree(path)
            kernel.set_mount_attributes(tree, add=kernel.MOUNT_ATTR_RDONLY, recursive=True)
            _lay(tree, path)
    left = [(path, kernel.clone_tree(_TERMINALS.get(path, path), recursive=False)) for path in _common_devices()]
    tree = kernel.clone_tree(_DEVICES)
    kernel.set_mount_attributes(tree, add=kernel.MOUNT_ATTR_NODEV)
    _lay(tree, _DEVICES)
    for path, device in left:
        _lay(device, path)


def _lay(tree: int, path: str) -> None:
    target = os.open(path, _PATH)
    try:
        kernel.move_mount(tree, target)
    finally:
        os.close(target)
        os.close(tree)


def _common_devices() -> Iterator[str]:
    """Character devices that every user may open, but for those on file systems of their own."""
    own = os.stat(_DEVICES).st_dev
    for directory, names, files in os.walk(_DEVICES):
        names[:] = [name for name in names if os.lstat(os.path.join(directory, name)).st_dev == own]
        for name in files:
            path = os.path.join(directory, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISCHR(mode) and mode & _EVERYONE == _EVERYONE:
                yield path
