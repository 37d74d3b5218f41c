"""Which steps make the agent's view, in which order. Pure: everything it needs is given to it."""

from __future__ import annotations

import os
import stat

from runner_e2e.sandbox.facts import beneath
from runner_e2e.sandbox.plan import Step
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from runner_e2e.sandbox.facts import PathFact
    from runner_e2e.sandbox.plan import Role

__all__ = ["Entry", "barriers", "decides", "movable", "order", "step_of"]


class Entry(Record):
    """A directory above a path: whether *user* and *group* of it and its mode bits let a stranger pass."""

    path: str
    mode: int
    user: int
    group: int

    def lets_pass(self, user: int, group: int) -> bool:
        """Whether *user*, with no other group than *group*, may search this directory."""
        if self.user == user:
            return bool(self.mode & 0o100)
        return bool(self.mode & (0o010 if self.group == group else 0o001))

    def lets_rename(self, entry: Entry, user: int) -> bool:
        """Whether *user* may have the right to rename *entry* in this directory; its groups are not looked at."""
        if self.user == user:
            return True  # a missing right is one chmod away
        return bool(self.mode & 0o022) and (entry.user == user or not self.mode & stat.S_ISVTX)


def step_of(fact: PathFact, role: Role) -> Step:
    """The step that does *role* at the path of *fact*."""
    return Step(
        path=fact.real,
        role=role,
        directory=fact.kind == "directory",
        device=fact.device,
        inode=fact.inode,
        user=fact.user,
        group=fact.group,
    )


def decides(path: str, steps: Iterable[Step]) -> Step | None:
    """The deepest step at or above *path*: what decides whether and how *path* is seen. None: it is as it was."""
    known: dict[str, Step] = {}
    for step in steps:
        known.setdefault(step.path, step)
    return _nearest(path, known)


def _nearest(path: str, known: Mapping[str, Step]) -> Step | None:
    if path in known:
        return known[path]
    return next((known[place] for place in reversed(ancestors(path)) if place in known), None)


# What a step under another one, by role, adds nothing to: it is hidden, shown, or locked already.
_POINTLESS = {
    "hide": {"hide"},
    "expose": {"expose", "own"},
    "own": {"expose", "own"},
    "share": {"share", "lock", "expose", "own"},
    "lock": {"hide", "lock"},
    "link": {"hide"},
    "home": {"hide"},
    "pin": {"hide", "lock"},
}
_RANK = {"hide": 0, "expose": 1, "own": 2, "home": 3, "lock": 4, "share": 5, "link": 6, "pin": 7}
_PINNED = {"hide", "expose", "own", "lock", "pin"}


def order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Steps shallow before deep, so that what is hidden inside an exposure stays hidden; pointless ones left out.

    Of several steps at one path the one that hides more stays.
    """
    kept: dict[str, Step] = {}
    for step in sorted(steps, key=lambda step: (step.path.count("/"), step.path, _RANK[step.role])):
        around = _nearest(step.path, kept)
        if around is not None and (around.path == step.path or around.role in _POINTLESS[step.role]):
            continue
        kept[step.path] = step
    return tuple(kept.values())


def barriers(needed: Iterable[str], entries: Iterable[Entry], *, user: int, group: int) -> tuple[str, ...]:
    """Directories above *needed* paths that *user* cannot pass: covered, they let the needed paths through.

    What the agent could not read there before, it does not read then either.
    """
    paths = tuple(needed)
    closed = sorted({entry.path for entry in entries if not entry.lets_pass(user, group)})
    kept: list[str] = []
    for path in closed:
        if path != "/" and any(beneath(other, path) for other in paths) and not any(beneath(path, k) for k in kept):
            kept.append(path)
    return tuple(kept)


def movable(steps: Sequence[Step], entries: Iterable[Entry], *, user: int) -> tuple[str, ...]:
    """Directories above what *steps* hide, show, lock or give that *user* could rename, and put others in their place.

    *entries* are those directories as they are on disk. In what the agent has as its own, every entry is its own.
    """
    known = {entry.path: entry for entry in entries}
    above = {path for step in steps if step.role in _PINNED for path in ancestors(step.path)} - {"/"}
    found = []
    for path in sorted(above & known.keys()):
        parent = os.path.dirname(path)
        around = decides(parent, steps)
        own = around is not None and around.role in {"expose", "own"}
        if own or (parent in known and known[parent].lets_rename(known[path], user)):
            found.append(path)
    return tuple(found)


def ancestors(path: str) -> Sequence[str]:
    """The directories above *path*, from ``/`` down."""
    found, at = ["/"], path.find("/", 1)
    while at > 0:
        found.append(path[:at])
        at = path.find("/", at + 1)
    return found
