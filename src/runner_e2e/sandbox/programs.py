"""What the program file of an exec says: the interpreter that the kernel puts in front, privileges it would gain.

Read when the exec's record arrives, a moment after the exec: a file that was replaced or removed meanwhile is not
seen, and a program inside another root directory is looked for through its process.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

__all__ = ["NOTHING", "Program", "Programs"]

# The kernel reads this much of a script's first line (BINPRM_BUF_SIZE).
FIRST_LINE = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """``interpreter`` is what ``#!`` names and its one argument; ``privilege`` is ``set-user-id root`` or the like."""

    interpreter: tuple[bytes, ...] = ()
    privilege: str = ""


NOTHING = Program()


class Programs:
    """Facts of program files, kept by the identity of the file."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int, int, int], Program] = {}

    def look(self, path: bytes, pid: int) -> Program:
        """The facts of the file at *path* as process *pid* sees it, or :data:`NOTHING`."""
        absolute = path.startswith(b"/")
        candidates = [path, b"/proc/%d/root" % pid + path] if absolute else [b"/proc/%d/cwd/" % pid + path]
        for candidate in candidates:
            try:
                facts = os.stat(candidate)
            except (OSError, ValueError):
                continue
            key = (facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns)
            found = self.known.get(key)
            if found is None:
                found = self.known[key] = Program(
                    interpreter=interpreter(candidate, facts), privilege=privilege(candidate, facts)
                )
            return found
        return NOTHING


def interpreter(path: bytes, facts: os.stat_result) -> tuple[bytes, ...]:
    """The interpreter and its argument in the first line of a script, split as Linux splits it."""
    if not stat.S_ISREG(facts.st_mode):
        return ()
    try:
        with open(path, "rb", buffering=0) as file:
            start = file.read(FIRST_LINE)
    except OSError:
        return ()
    if not start.startswith(b"#!"):
        return ()
    line = start[2:].split(b"\n", 1)[0].strip(b" \t")
    return tuple(word for word in line.replace(b"\t", b" ").split(b" ", 1) for word in [word.strip(b" \t")] if word)


def privilege(path: bytes, facts: os.stat_result) -> str:
    """What the file would grant the process: another user, group, or capabilities."""
    found: list[str] = []
    if facts.st_mode & stat.S_ISUID:
        found.append("set-user-id root" if facts.st_uid == 0 else f"set-user-id {facts.st_uid}")
    if facts.st_mode & stat.S_ISGID and facts.st_mode & stat.S_IXGRP:
        found.append(f"set-group-id {facts.st_gid}")
    try:
        os.getxattr(path, "security.capability")
        found.append("file capabilities")
    except OSError:
        pass
    return ", ".join(found)
