"""Landlock: what each ABI of the kernel can do, the rules of a launch, and the restriction itself.

With covers in place one rule on ``/`` is enough: the domain is there to forbid mounts, traces and signals, not to
find paths, so opening a file costs nothing more inside. Where nothing can be mounted, the rules themselves hide:
everything beside the hidden paths is granted, entry by entry.
"""

from __future__ import annotations

import os
import stat

from runner_e2e import kernel
from runner_e2e.sandbox.facts import beneath
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from runner_e2e.sandbox.plan import Step

__all__ = [
    "Rights",
    "add_rules",
    "grants",
    "restrict_connections",
    "restrict_paths",
    "restrict_privileges",
    "restrict_scopes",
    "restrict_to_reading",
    "rights_of",
]

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIRECTORY = 1 << 3
MAKE_CHARACTER_DEVICE = 1 << 6
MAKE_BLOCK_DEVICE = 1 << 11
REFER = 1 << 13
TRUNCATE = 1 << 14
DEVICE_CONTROL = 1 << 15
RESOLVE_SOCKET = 1 << 16

BIND_TCP = 1 << 0
CONNECT_TCP = 1 << 1
_NETWORK_ABI = 4

SCOPE_ABSTRACT_SOCKETS = 1 << 0
SCOPE_SIGNALS = 1 << 1

# First ABI with a right -> the rights it brought (include/uapi/linux/landlock.h; scopes apart).
_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: DEVICE_CONTROL, 9: RESOLVE_SOCKET}
_SCOPES_BY_ABI = {6: SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS}
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_CONTROL | RESOLVE_SOCKET

# What each ABI leaves open; the newest line that applies is the one to read.
_LIMITS_BY_ABI = (
    (2, "renames and hard links between directories fail (Landlock ABI 1)"),
    (3, "files whose directory is hidden can be truncated through a path (Landlock ABI below 3)"),
    (6, "abstract sockets and signals of processes outside are reachable (Landlock ABI below 6)"),
    (9, "pathname sockets are reachable even where they are hidden (Landlock ABI below 9)"),
)


class Rights(Record):
    """What a kernel with Landlock *abi* can handle: bit sets of file-system rights and of scopes."""

    abi: int
    paths: int
    scopes: int

    @property
    def files(self) -> int:
        """The rights that mean something for what is not a directory."""
        return self.paths & _FILE_RIGHTS

    @property
    def limits(self) -> tuple[str, ...]:
        """What a launch walled by this ABI alone leaves open."""
        return tuple(text for first, text in _LIMITS_BY_ABI if self.abi < first)


def rights_of(abi: int) -> Rights:
    """The rights of *abi* (0: no Landlock). A newer ABI than we know has at least the rights of the newest known."""
    paths = scopes = 0
    for first, rights in _RIGHTS_BY_ABI.items():
        paths |= rights if abi >= first else 0
    for first, bits in _SCOPES_BY_ABI.items():
        scopes |= bits if abi >= first else 0
    return Rights(abi=abi, paths=paths, scopes=scopes)


def grants(steps: Sequence[Step], list_directory: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Paths to grant so that everything but what *steps* hides stays reachable, by enumerating siblings.

    *list_directory* gives the names in a directory; one that it cannot list has none.
    """
    hidden = [step.path for step in steps if step.hidden]
    pending = ["/", *(step.path for step in steps if step.role == "expose")]
    while pending:
        path = pending.pop()
        if path in hidden:
            continue
        if any(beneath(other, path) for other in hidden):
            pending += [os.path.join(path, name) for name in list_directory(path)]
        else:
            yield path


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def restrict_paths(rights: Rights, steps: Sequence[Step]) -> int:
    """Confines this process to everything but what *steps* hides; returns how many rules that took.

    Raises :class:`OSError` when a rule would reveal a hidden path through another name of it or of a directory above.
    """
    forbidden = _identities_above([step.path for step in steps if step.hidden])
    ruleset = kernel.create_ruleset(fs=rights.paths, scoped=rights.scopes)
    try:
        count = add_rules(ruleset, rights, grants(steps, _names), forbidden)
        kernel.forbid_new_privileges()
        kernel.restrict_self(ruleset)
    finally:
        os.close(ruleset)
    return count


def add_rules(ruleset: int, rights: Rights, paths: Iterable[str], forbidden: dict[tuple[int, int], str]) -> int:
    """Adds a rule for each of *paths* that still exists and is no symbolic link; returns the number of rules."""
    count = 0
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # gone, or beyond this user's reach: then beyond the agent's too
        try:
            found = os.fstat(descriptor)
            if stat.S_ISLNK(found.st_mode):
                continue
            if name := forbidden.get((found.st_dev, found.st_ino)):
                raise OSError(1, f"{path} is another name of {name}, which a hidden path is or lies beneath")
            access = rights.paths if stat.S_ISDIR(found.st_mode) else rights.files
            kernel.add_path_rule(ruleset, descriptor, access)
            count += 1
        finally:
            os.close(descriptor)
    return count


def _identities_above(paths: Iterable[str]) -> dict[tuple[int, int], str]:
    """Device and inode of each path and of every directory above it."""
    found: dict[tuple[int, int], str] = {}
    for path in paths:
        current = path
        while True:
            state = os.stat(current)
            found[state.st_dev, state.st_ino] = current
            if current == "/":
                break
            current = os.path.dirname(current)
    return found


def restrict_privileges(rights: Rights) -> None:
    """Forbids mounts, traces of outsiders and, where the ABI can, signals and abstract sockets to the outside.

    Files are not looked up: covers hide them. Moving files between directories must be handled to be allowed.
    """
    handled = (MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE | REFER) & rights.paths
    ruleset = kernel.create_ruleset(fs=handled, scoped=rights.scopes)
    root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        kernel.add_path_rule(ruleset, root, handled)
        kernel.forbid_new_privileges()
        kernel.restrict_self(ruleset)
    finally:
        os.close(root)
        os.close(ruleset)


def restrict_scopes(rights: Rights) -> None:
    """Forbids signals and abstract sockets to the outside, and traces; mounts stay possible."""
    ruleset = kernel.create_ruleset(fs=0, scoped=rights.scopes)
    try:
        kernel.restrict_self(ruleset)
    finally:
        os.close(ruleset)


def restrict_connections(abi: int) -> None:
    """Forbids TCP, where *abi* can; its rules are of ports, not of addresses, so that none is granted."""
    if abi < _NETWORK_ABI:
        return
    ruleset = kernel.create_ruleset(fs=0, net=BIND_TCP | CONNECT_TCP)
    try:
        kernel.restrict_self(ruleset)
    finally:
        os.close(ruleset)


def restrict_to_reading(abi: int) -> None:
    """Forbids writing, making and executing files, everywhere; does nothing without Landlock."""
    if abi == 0:
        return
    ruleset = kernel.create_ruleset(fs=rights_of(abi).paths & ~(READ_FILE | READ_DIRECTORY | RESOLVE_SOCKET))
    try:
        kernel.restrict_self(ruleset)
    finally:
        os.close(ruleset)
