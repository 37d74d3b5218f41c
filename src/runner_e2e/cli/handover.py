"""Gives a command that was called with selectors a clean command line, before it starts anything.

A command line can be read by every process on the machine, and a selector may name the cell. The selection is
written to a memory file that only this process holds, and the program executes itself again without it.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.cells.selectors import Selection
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["RunRequest", "execute_again", "receive", "stands_on_command_line"]


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What ``runner-e2e run`` was asked for."""

    selection: Selection
    catalog: str
    key_variable: str
    local: bool
    target: str
    output: str
    jobs: int
    as_json: bool
    quiet: bool
    show_ids: bool
    relay: bool | None
    probe: bool
    audit: bool = False


def stands_on_command_line(selection: Selection) -> bool:
    """Whether the command line of this process names a part of *selection*."""
    words = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    names = [*selection.suites, *selection.groups, *selection.profiles, *selection.environments]
    names += [*selection.cases, *selection.ids]
    given = [name.encode() for name in names if name]
    return any(word == name or word.endswith(b"=" + name) for name in given for word in words)


def execute_again(request: RunRequest) -> NoReturn:
    """Replaces this process by itself with the command ``run`` and a descriptor instead of selectors."""
    descriptor = os.memfd_create("runner-e2e-request", 0)
    document = asdict(request) | {"selection": request.selection.to_json()}
    os.write(descriptor, json.dumps(document).encode())
    os.set_inheritable(descriptor, True)
    # The interpreter, its options and the script as they were; our own arguments replaced.
    program = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [*program, "run", "--handed-over", str(descriptor)])  # noqa: S606


def receive(descriptor: int) -> RunRequest:
    """Reads and closes what :func:`execute_again` handed over. Raises :class:`UsageError` for anything else."""
    try:
        with os.fdopen(descriptor, "rb") as stream:
            stream.seek(0)
            given = json.load(stream)
        given["selection"] = Selection.from_json(given["selection"])
        request = RunRequest(**given)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError("--handed-over is for this program's own use", fix="use the selectors instead") from error
    if sys.argv[1:] != ["run", "--handed-over", str(descriptor)]:
        raise UsageError("--handed-over is for this program's own use", fix="use the selectors instead")
    return request
