"""What an exec audit is told and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from runner_e2e.sandbox.canary import PIECE_LENGTH, Canary, Kind, Occurrence

if TYPE_CHECKING:
    from runner_e2e.sandbox.process_tree import Process

__all__ = ["ArgvLeak", "Audit", "Exec", "HeldVariable", "Options", "Verdict", "Where"]

Verdict = Literal["clean", "leak", "incomplete", "not-searched"]
Where = Literal["argument", "program", "interpreter"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ArgvLeak:
    """A piece of the value in what an exec showed of itself.

    ``where``: an argument (``argument`` is its index in argv), the program's path, or the interpreter that the
    kernel took from the script's first line (``argument`` indexes its words). ``start`` and ``end`` count characters.
    """

    where: Where
    argument: int
    occurrence: Occurrence


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldVariable:
    """An environment variable that held the value, or (``in_name``) whose name did."""

    name: str
    kind: Kind
    canary: str
    in_name: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Exec:
    """One exec, as the kernel recorded it. Text is UTF-8; other bytes are surrogate escapes.

    ``time`` is in seconds since the epoch. ``error`` is empty, or the kernel's name of the failure (``ENOENT``) when
    the exec did not take place. ``attempts`` counts execs that differ in the program's path alone, as a search along
    ``PATH`` makes them. ``interpreter`` is what the kernel put in front of a script's arguments. ``own`` marks an exec
    of :attr:`Options.own_programs`, which counts nowhere.
    """

    index: int
    time: float
    process: int
    pid: int
    program: str
    argv: tuple[str, ...]
    interpreter: tuple[str, ...] = ()
    privilege: str = ""
    error: str = ""
    attempts: int = 1
    whole: bool = True
    own: bool = False
    leaks: tuple[ArgvLeak, ...] = ()
    environ: tuple[HeldVariable, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to audit.

    ``linger``: seconds to go on watching what outlives the command. ``end_survivors``: kill what is left after that.
    ``timeout``: seconds that the command may run before everything is killed. ``seccomp``: let the kernel stop at the
    calls that count alone (several times faster, but no program gains privileges). ``allow_environ``: programs (path
    or name) that may hold the value in their environment; None asks nothing of environments. ``own_programs``: paths
    of programs that belong to whoever audits and count as no exec of the command.
    """

    linger: float = 2.0
    end_survivors: bool = False
    timeout: float | None = None
    seccomp: bool = True
    allow_environ: frozenset[str] | None = None
    own_programs: frozenset[str] = frozenset()
    piece_length: int = PIECE_LENGTH
    public: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Audit:
    """What an audit saw. ``status`` is the command's own as a shell gives it (128+n for a signal)."""

    command: tuple[str, ...]
    canaries: tuple[Canary, ...]
    options: Options
    started: float = 0.0
    seconds: float = 0.0
    strace: str = ""
    status: int = 0
    signal: str = ""
    timed_out: bool = False
    execs: int = 0
    failed_execs: int = 0
    leaking_execs: int = 0
    holding_execs: int = 0
    disallowed_execs: int = 0
    leaks: list[Exec] = field(default_factory=list)
    holders: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    disallowed: list[Exec] = field(default_factory=list)
    unprivileged: dict[str, str] = field(default_factory=dict)
    outlived: list[Process] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """``leak`` stands above ``incomplete``: a leak seen is proven whatever else was missed."""
        if self.leaking_execs or self.disallowed_execs:
            return "leak"
        if self.gaps:
            return "incomplete"
        return "clean" if self.canaries else "not-searched"

    def lineage(self, index: int) -> list[Process]:
        """Process *index* and its ancestors as far as they are known, nearest first."""
        found: list[Process] = []
        step: int | None = index
        while step is not None and len(found) <= len(self.processes):
            found.append(self.processes[step])
            step = found[-1].parent
        return found
