"""Other names of hidden files: bind mounts, layers of overlays, hard links. One that stays visible is refused.

Covers and rules bind to one place of a file; another name of it would show what was to be hidden.
"""

from __future__ import annotations

import os
import stat
import time

from runner_e2e.sandbox.answers import ask
from runner_e2e.sandbox.facts import beneath, same_or_beneath
from runner_e2e.sandbox.record import Record
from runner_e2e.sandbox.view import decides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from runner_e2e.sandbox.facts import Mount, PathFact
    from runner_e2e.sandbox.plan import Step

__all__ = ["Alias", "HardLinks", "candidates", "count_hard_links", "mount_aliases"]

MOST_SECONDS = 1.0  # some 300,000 entries
_BATCH = 256  # entries between two looks at the clock


class Alias(Record):
    """Another name of what stands at ``path``; ``same`` where both must be one file for it to be true."""

    path: str
    alias: str
    how: str
    same: bool = True


def candidates(path: str, mounts: Sequence[Mount]) -> Iterator[Alias]:
    """The names under which *mounts* would show *path*, or something beneath it, a second time. Pure."""
    own = _mount_of(path, mounts)
    if own is None:
        return
    inside = _joined(own.root, path[len(own.point) :] if own.point != "/" else path)
    for mount in mounts:
        if mount.kind == "overlay":
            yield from _through_overlay(path, mount, own, inside)
        if mount is own or mount.device != own.device:
            continue
        if same_or_beneath(inside, mount.root):
            alias = _joined(mount.point, inside[len(mount.root) :] if mount.root != "/" else inside)
            yield Alias(path=path, alias=alias, how="a bind mount")
        elif beneath(mount.root, inside):
            shown = _joined(path, mount.root[len(inside) :])
            yield Alias(path=shown, alias=mount.point, how="a bind mount")


def _through_overlay(path: str, overlay: Mount, own: Mount, inside: str) -> Iterator[Alias]:
    """An overlay shows its layers, and its layers show it."""
    layers = [
        layer
        for option in overlay.options.split(",")
        if option.startswith(("lowerdir=", "upperdir="))
        for layer in option.partition("=")[2].split(":")
        if layer.startswith("/")
    ]
    for layer in layers:
        if overlay is own:
            yield Alias(path=path, alias=_joined(layer, inside), how="a layer of an overlay", same=False)
        elif beneath(path, layer):
            yield Alias(path=path, alias=_joined(overlay.point, path[len(layer) :]), how="an overlay", same=False)


def _mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that shows *path*: the deepest one above it, of those at one place the last."""
    best = None
    for mount in mounts:
        if same_or_beneath(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def _joined(directory: str, rest: str) -> str:
    rest = rest.strip("/")
    return f"{directory.rstrip('/')}/{rest}" if rest else directory


def mount_aliases(hidden: Iterable[PathFact], mounts: Sequence[Mount], steps: Sequence[Step]) -> list[Alias]:
    """The names among :func:`candidates` that exist, show the same, and are not hidden by *steps* themselves."""
    found = []
    for fact in hidden:
        for alias in candidates(fact.real, mounts):
            around = decides(alias.alias, steps)
            if alias.alias != alias.path and not (around and around.hidden) and _is_true(alias):
                found.append(alias)
    return list({alias.alias: alias for alias in found}.values())


def _is_true(alias: Alias) -> bool:
    try:
        one, other = ask(_identity, alias.path), ask(_identity, alias.alias)
    except OSError:
        return False
    return one[:2] == other[:2] if alias.same else one[2:] == other[2:]


def _identity(path: str) -> tuple[int, int, int, int]:
    """Device, inode, mode and size of what *path* leads to."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_mode, found.st_size


class HardLinks(Record):
    """Files in hidden places that have more names than were found there, and the places too large to look through."""

    outside: tuple[str, ...]
    unseen: tuple[str, ...]


def count_hard_links(hidden: Iterable[PathFact], steps: Sequence[Step], *, most: float = MOST_SECONDS) -> HardLinks:
    """Looks through the hidden places, for *most* seconds in all, exposures left out: those are visible."""
    names: dict[tuple[int, int], list[str]] = {}
    wanted: dict[tuple[int, int], int] = {}
    unseen = []
    deadline = time.monotonic() + most
    exposed = {step.path for step in steps if step.role == "expose"}
    for fact in hidden:
        for index, (path, state) in enumerate(_files(fact, exposed)):
            if index % _BATCH == _BATCH - 1 and time.monotonic() > deadline:
                unseen.append(fact.real)
                break
            if stat.S_ISREG(state.st_mode) and state.st_nlink > 1:
                names.setdefault((state.st_dev, state.st_ino), []).append(path)
                wanted[state.st_dev, state.st_ino] = state.st_nlink
    outside = [paths[0] for identity, paths in names.items() if len(set(paths)) < wanted[identity]]
    return HardLinks(outside=tuple(sorted(outside)), unseen=tuple(unseen))


def _files(fact: PathFact, exposed: Collection[str]) -> Iterator[tuple[str, os.stat_result]]:
    pending = [fact.real]
    if fact.kind != "directory":
        yield fact.real, os.stat(fact.real)
        return
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.path in exposed:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    yield entry.path, entry.stat(follow_symlinks=False)
        except OSError:
            continue  # not for this user, so not for the agent either; or gone
