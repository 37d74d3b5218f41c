"""Limits on what a launch may use: their names, how values are written, and what the kernel enforces of them.

The kernel's resource limits (setrlimit(2)) hold for each process and cannot be outrun. What counts for the whole tree
is looked at by :mod:`runner_e2e.sandbox.watch`.
"""

from __future__ import annotations

import os

from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LIMITS", "Crossing", "InvalidLimitError", "LimitKind", "apply", "parse_limit", "show", "tasks_of"]

_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_TIMES = {"s": 1, "m": 60, "h": 3600}
_HIGHEST = 1 << 62


class LimitKind(Record):
    """``unit`` is "bytes", "seconds" or "" for a count; ``least`` the smallest value that lets a program start."""

    unit: str
    least: int
    summary: str


LIMITS: Mapping[str, LimitKind] = {
    "memory": LimitKind(unit="bytes", least=8 << 20, summary="memory of all processes together"),
    "processes": LimitKind(unit="", least=1, summary="processes and threads at a time"),
    "file-size": LimitKind(unit="bytes", least=1, summary="size of a file that is written"),
    "open-files": LimitKind(unit="", least=8, summary="open files of a process"),
    "scratch": LimitKind(unit="bytes", least=4096, summary="the private home, and /dev/shm, each"),
    "cpu": LimitKind(unit="seconds", least=1, summary="processor time of all processes together"),
    "time": LimitKind(unit="seconds", least=1, summary="time from start to end"),
}


class InvalidLimitError(ValueError):
    """A limit that is not one: the message says why, ``fix`` what to write."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.fix = fix


def parse_limit(name: str, value: object) -> int:
    """The limit *name* in bytes, seconds or pieces from a number or a text such as ``2G`` or ``10m``."""
    if name not in LIMITS:
        raise InvalidLimitError(f"there is no limit {name!r}", f"use one of {', '.join(LIMITS)}")
    kind = LIMITS[name]
    suffixes = _SIZES if kind.unit == "bytes" else _TIMES if kind.unit == "seconds" else {}
    example = {"bytes": "512M", "seconds": "10m"}.get(kind.unit, "512")
    with_suffix = f", with one of {', '.join(suffixes)} where you like" if suffixes else ""
    fix = f"write a whole number{with_suffix}, for example {example}"
    number = value
    if isinstance(value, str):
        factor = suffixes.get(value[-1:], 0)
        digits = value[:-1] if factor else value
        # ASCII alone: str.isdigit knows many more digits than int() should be asked to read here
        number = int(digits) * (factor or 1) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
    if not isinstance(number, int) or isinstance(number, bool) or number >= _HIGHEST:
        raise InvalidLimitError(f"{value!r} is not a value for the limit {name}", fix)
    if number < kind.least:
        raise InvalidLimitError(f"the limit {name} is {value}, less than {show(name, kind.least)}", "allow more")
    return number


def show(name: str, value: float) -> str:
    """A value of the limit *name* for people."""
    unit = LIMITS[name].unit
    if unit == "seconds":
        return f"{value:g} s"
    if unit == "bytes":
        for suffix, factor in reversed(_SIZES.items()):
            if value >= factor:
                return f"{value / factor:.1f}".removesuffix(".0") + f" {suffix}iB"
        return f"{value:g} B"
    return f"{value:g}"


class Crossing(Record):
    """A limit that was passed: which one, and what was seen."""

    limit: str
    seen: str


def apply(limits: Mapping[str, int], *, others: int) -> list[str]:
    """Sets the kernel's limits of this process, which every child inherits; returns what the host made smaller.

    *others* is how many processes count to the agent's user that are not part of the launch.
    """
    import resource

    wanted: dict[int, tuple[str, int]] = {}
    if size := limits.get("memory"):
        # For one process that allocates faster than anybody looks. Twice the limit: what is promised to a program and
        # never used counts here, stacks of threads above all, and whoever passes the limit itself shall get a verdict.
        wanted[resource.RLIMIT_DATA] = ("memory", 2 * size)
    if count := limits.get("processes"):
        wanted[resource.RLIMIT_NPROC] = ("processes", count + others)
    if size := limits.get("file-size"):
        wanted[resource.RLIMIT_FSIZE] = ("file-size", size)
    if count := limits.get("open-files"):
        wanted[resource.RLIMIT_NOFILE] = ("open-files", count)
    if seconds := limits.get("cpu"):
        wanted[resource.RLIMIT_CPU] = ("cpu", seconds + 1)
    notes = []
    for number, (name, value) in wanted.items():
        _, most = resource.getrlimit(number)
        if most != resource.RLIM_INFINITY and value > most:
            notes.append(f"{name}: the host allows {show(name, most)}, less than the limit of the policy")
            resource.setrlimit(number, (most, most))
        else:
            # At the lower limit of processor time comes SIGXCPU, which tells why, at the upper one SIGKILL.
            resource.setrlimit(number, (value, most if name == "cpu" else value))
    return notes


def tasks_of(user: int) -> int:
    """How many processes and threads *user* has on this machine, as far as ``/proc`` shows them."""
    count = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if os.stat(f"/proc/{name}").st_uid == user:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue  # it has ended
    return count
