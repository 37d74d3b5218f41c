"""The base set of paths that every launch of an agent hides, and the policy file that says so.

Hidden are the whole output directory (records, private directories and instances of every attempt, also of other
and later campaigns), the harness's own sources, the Git store of the target, and the CI runner's files. Of the
output, an attempt's agents are shown their own instance alone.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import UsageError
from runner_e2e.existence import exists, is_directory, is_file
from runner_e2e.sandbox.deputies import own_code
from runner_e2e.sandbox.policy import DROPPED_VARIABLES, OPEN_NETWORK, Network

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DEFAULT_HIDDEN", "SCHEMA", "HiddenSet", "hidden_set", "policy_document"]

SCHEMA: Final = "runner-e2e.sandbox-policy/v1"

# What is hidden of a target whose catalog says nothing: where harnesses keep their cases and graders.
DEFAULT_HIDDEN: Final = ("tests",)


@dataclass(frozen=True, kw_only=True)
class HiddenSet:
    """Paths to hide, resolved: ``paths`` exist, those ``if_present`` may come or go before a launch.

    ``absent`` are names of the catalog that the target does not have. ``git`` are those of ``paths`` that are Git
    stores: clones on one disk share the files of their objects.
    """

    paths: tuple[Path, ...]
    git: tuple[Path, ...] = ()
    if_present: tuple[Path, ...] = ()
    absent: tuple[str, ...] = ()


def hidden_set(*, target: Path, output: Path, hide: Iterable[str], runner_files: Iterable[Path] = ()) -> HiddenSet:
    """Collects the base set. *hide* is relative to *target*; all paths must be below it.

    Raises :class:`UsageError` for a path that leads out of the target.
    """
    named = tuple(hide)
    root = target.resolve()
    git = git_stores(root)
    found: list[Path] = [output.resolve(), *git]
    later: list[Path] = []
    absent = []
    for name in named or DEFAULT_HIDDEN:
        path = (root / name).resolve()
        if not path.is_relative_to(root) or path == root:
            raise UsageError(
                f"harness.hide names {name}, which is not below the target's root",
                fix="name files or directories inside the target",
            )
        if exists(path):
            found.append(path)
            continue
        later.append(path)
        if named:
            absent.append(name)
    later += [path.resolve() for path in runner_files]
    return HiddenSet(
        paths=tuple(dict.fromkeys(found)),
        git=tuple(git),
        if_present=tuple(dict.fromkeys(later)),
        absent=tuple(absent),
    )


def git_stores(root: Path) -> list[Path]:
    """The Git stores that serve *root*: of a clone, a worktree (with its common store) or a submodule.

    With them the stores on this machine that they were cloned from: those hold the same objects.
    """
    for directory in (root, *root.parents):
        entry = directory / ".git"
        if is_directory(entry):
            return [entry.resolve(), *_local_origins(entry.resolve())]
        if is_file(entry):
            return [entry.resolve(), *_linked_stores(entry)]
    return []


def _local_origins(store: Path) -> list[Path]:
    """The stores that *store* was cloned from by a path or borrows objects from (gitrepository-layout(5))."""
    found = []
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for url in re.findall(
            r"^\s*url\s*=\s*\"?(?:file://)?(/[^\"\n]*)", (store / "config").read_text(), re.MULTILINE
        ):
            origin = Path(url.rstrip())
            found += [place for place in (origin / ".git", origin) if is_directory(place / "objects")][:1]
    with contextlib.suppress(OSError, UnicodeDecodeError):
        borrowed = (store / "objects" / "info" / "alternates").read_text().splitlines()
        found += [place for line in borrowed if line and is_directory(place := store / "objects" / line)]
    return [place.resolve() for place in found]


def _linked_stores(entry: Path) -> list[Path]:
    """What a ``.git`` file leads to (gitrepository-layout(5))."""
    stores = []
    with contextlib.suppress(OSError, UnicodeDecodeError):
        head, _, name = entry.read_text().strip().partition(": ")
        store = (entry.parent / name).resolve()
        if head == "gitdir" and is_directory(store):
            stores.append(store)
            common = store / "commondir"
            if is_file(common):
                stores.append((store / common.read_text().strip()).resolve())
    return stores


def policy_document(
    hidden: HiddenSet, *, instance: Path, confidential: Iterable[str], network: Network = OPEN_NETWORK
) -> dict[str, object]:
    """The policy of one attempt, as ``runner-e2e sandbox exec`` reads it.

    *confidential* names variables that no agent is to have, beside those that the sandbox drops always; *network* is
    what agents reach at most.
    """
    return {
        "schema": SCHEMA,
        "hide": [str(path) for path in hidden.paths],
        "hide_if_present": [str(path) for path in hidden.if_present],
        "expose": [str(instance)],
        "read_only": _own_code(),
        "allow_hard_links_in": [str(path) for path in hidden.git],
        "network": network.to_document(),
        "environment": {"drop": [*DROPPED_VARIABLES, *dict.fromkeys(confidential)]},
    }


def _own_code() -> list[str]:
    """What the engine runs from, where its user may write: an agent as that user must not change the next attempt."""
    return [place for place in own_code() if os.geteuid() != 0 and os.access(place, os.W_OK)]
