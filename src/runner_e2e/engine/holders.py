"""Looks at the processes above this one: whether any still shows which cell is to be run.

This process erases its own copy. A shell that started it without ``exec``, or a wrapper such as ``timeout``, keeps
one for as long as it waits, and only whoever wrote that call can change it. So it is said, before anything starts.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.cells.model import Cell

__all__ = ["holder_warnings"]

# A shorter name of a case is too common a word to be told apart in a command line.
_SHORTEST_CASE: Final = 8
# In a larger campaign a name on a command line says little about any single cell.
_MOST_CELLS: Final = 20


def holder_warnings(cells: tuple[Cell, ...], *, processes: Path = Path("/proc")) -> tuple[str, ...]:
    """Returns a sentence for each process above this one that shows an id, or a telling case, of *cells*.

    No sentence shows what was found. A process that cannot be read by this one is not looked at.
    """
    if len(cells) > _MOST_CELLS:
        return ()
    names = {cell.id for cell in cells} | {cell.case for cell in cells if len(cell.case) >= _SHORTEST_CASE}
    wanted = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in sorted(names)).encode())
    return tuple(
        f"process {pid} ({program}) above this one shows the selected cell {places}: "
        "start this command with exec, or hand the id over in a variable of this command alone"
        for pid, program, places in _found(wanted, processes)
    )


def _found(wanted: re.Pattern[bytes], processes: Path) -> Iterator[tuple[int, str, str]]:
    for pid in _ancestors(processes):
        places = [
            place
            for file, place in (("environ", "in its environment"), ("cmdline", "on its command line"))
            if wanted.search(_content(processes / str(pid) / file))
        ]
        if places:
            program = _content(processes / str(pid) / "comm").decode(errors="replace").strip()
            yield pid, program if program.isprintable() else "?", " and ".join(places)


def _ancestors(processes: Path) -> Iterator[int]:
    seen: set[int] = set()
    pid = os.getppid()
    while pid > 0 and pid not in seen:
        seen.add(pid)
        yield pid
        # The name in parentheses may hold anything; the parent is the second field behind it (proc_pid_stat(5)).
        fields = _content(processes / str(pid) / "stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
