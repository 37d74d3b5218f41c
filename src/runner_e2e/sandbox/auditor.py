"""Judges the records of one traced run: what counts, what leaks, and what the audit could not see."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import CommandNotExecutableError, CommandNotFoundError, LaunchError
from runner_e2e.sandbox.audit_model import ArgvLeak, Audit, Exec, HeldVariable, Where
from runner_e2e.sandbox.canary import BORDER, Canary, Finder
from runner_e2e.sandbox.process_tree import Process, ProcessTree
from runner_e2e.sandbox.programs import NOTHING, Program, Programs
from runner_e2e.sandbox.strace_text import ChildRecord, EndRecord, ExecRecord, Record, environment_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Auditor", "text_of"]

# Details kept of leaks and of environments; their numbers are always exact, and every exec carries its own.
WITNESSES = 1000
WORDS_LENGTH = 160
ENVIRONMENTS = 128
ENVIRONMENT_LENGTH = 1 << 16


@dataclass(kw_only=True)
class Plant:
    """The planted exec and what came back of it."""

    canary: Canary
    program: bytes
    argv: tuple[bytes, ...]
    environ: Mapping[bytes, bytes]
    process: Process | None = None


def make_plant() -> Plant:
    """An exec with a fresh random value among bytes that are hard to write down."""
    value = secrets.token_hex(16)
    program = next((path for path in ("/bin/true", "/usr/bin/true") if os.access(path, os.X_OK)), None)
    program = program or shutil.which("true")
    if not program:
        raise LaunchError(
            "there is no program `true` to plant",
            why="the audit first proves that it sees an exec that it made itself",
            fix="install it (coreutils), or put it on PATH",
        )
    awkward = b'\n\t"\\\x01\x7f\xff0, ["\xc3\xa9"] = -1 <unfinished ...>'
    return Plant(
        canary=Canary(name="planted value", value=value),
        program=os.fsencode(program),
        argv=(b"true", b"plant " + value.encode() + awkward, b"", b"x" * 4096),
        environ={b"PLANT": value.encode() + awkward, b"EMPTY": b""},
    )


def text_of(data: bytes) -> str:
    """UTF-8 as text; other bytes become surrogate escapes."""
    return data.decode("utf-8", "surrogateescape")


class Auditor:
    """Takes the records of one run one by one."""

    def __init__(self, audit: Audit, finder: Finder, sink: Callable[[Exec], None] | None) -> None:
        self.audit = audit
        self.finder = finder
        self.sink = sink
        self.plant = make_plant()
        self.plant_finder = Finder([self.plant.canary])
        self.tree = ProcessTree()
        audit.processes = self.tree.processes
        self.programs = Programs()
        self.environments: dict[bytes, tuple[HeldVariable, ...]] = {}
        self.root: int | None = None
        self.root_execs = 0
        self.started = False
        self.root_end: EndRecord | None = None
        # The last failed exec of a process, held back until it is known whether it was one step of a search.
        self.searching: dict[int, tuple[ExecRecord, int]] = {}

    def take(self, record: Record) -> None:
        """Takes the next record of the trace."""
        if isinstance(record, ExecRecord):
            self._take_exec(record)
        elif isinstance(record, ChildRecord):
            self.tree.add(record.pid, record.child, thread=record.thread)
        elif isinstance(record, EndRecord):
            self._take_end(record)
        elif self.started:
            self.gap(f"a line of the trace could not be read: {self.finder.redact(text_of(record.line[:200]))}")

    def gap(self, text: str) -> None:
        """Notes once that the audit could not see something."""
        if text not in self.audit.gaps:
            self.audit.gaps.append(text)

    def _take_exec(self, record: ExecRecord) -> None:
        if self.root is None:
            self.root = self.tree.at(record.pid).pid
        if record.pid == self.root:
            self.root_execs += 1
        if not self.started:
            self._begin(record)
        if not self.started:
            return
        before = self.searching.pop(record.pid, None)
        attempts = 1
        if before and before[0].argv == record.argv and before[0].environ == record.environ:
            attempts += before[1]
        elif before:
            self._report(*before)
        if record.error:
            self.searching[record.pid] = (record, attempts)
        else:
            self._report(record, attempts)

    def _begin(self, record: ExecRecord) -> None:
        """The first exec of the root is ours, then comes the plant, then the command: from there on all counts."""
        if record.pid != self.root:
            self._check_plant(record)
        elif self.root_execs > 1:
            if self.plant.process is None:
                raise LaunchError(
                    "the audit did not see the exec that it planted itself",
                    why="strace did not report it, or not byte for byte, so nothing that it reports proves anything",
                    fix="run `strace -f -e trace=execve true` and see what it says",
                )
            if self.plant.process.parent != 0:
                self.gap("strace does not report which process made which")
            if record.error:
                raise refusal(record)
            self.started = True
            self.tree.keep_first()

    def _check_plant(self, record: ExecRecord) -> None:
        plant = self.plant
        held = dict(entry.split(b"=", 1) for entry in environment_entries(record) if b"=" in entry)
        exact = record.program == plant.program and record.argv == plant.argv and held == plant.environ
        found = self._leaks_of(record, NOTHING, self.plant_finder)
        held_by = self._held_by(record, self.plant_finder)
        if exact and record.whole and not record.error and found and held_by:
            plant.process = self.tree.at(record.pid)

    def _report(self, record: ExecRecord, attempts: int) -> None:
        """Counts one exec and hands it on."""
        process = self.tree.exec(record.pid) if not record.error else self.tree.at(record.pid)
        program = NOTHING if record.error else self.programs.look(record.program, record.pid)
        own = text_of(record.program) in self.audit.options.own_programs
        made = Exec(
            index=-1 if own else self.audit.execs,
            time=record.time,
            process=process.index,
            pid=record.pid,
            program=text_of(record.program),
            argv=tuple(text_of(argument) for argument in record.argv),
            interpreter=tuple(text_of(word) for word in program.interpreter),
            privilege=program.privilege,
            error=record.error,
            attempts=attempts,
            whole=record.whole,
            own=own,
            leaks=() if own else self._leaks_of(record, program, self.finder),
            environ=() if own else self._held_by(record, self.finder),
        )
        if not own:
            self._count(made)
        if not made.error:
            process.words = self._words(made)
        if self.sink:
            self.sink(made)

    def _count(self, made: Exec) -> None:
        audit = self.audit
        audit.execs += 1
        audit.failed_execs += bool(made.error)
        if not made.whole and not made.error:
            self.gap(f"exec {made.index} of pid {made.pid} could not be read in full")
        if made.privilege and self.audit.options.seccomp:
            audit.unprivileged.setdefault(self.finder.redact(made.program), made.privilege)
        if made.leaks:
            audit.leaking_execs += 1
            if len(audit.leaks) < WITNESSES:
                audit.leaks.append(made)
        if made.environ:
            audit.holding_execs += 1
            self._count_holder(made)

    def _count_holder(self, made: Exec) -> None:
        audit = self.audit
        key = (self.finder.redact(made.program), tuple(sorted({held.name for held in made.environ})))
        if key in audit.holders or len(audit.holders) < WITNESSES:
            audit.holders[key] = audit.holders.get(key, 0) + 1
        allowed = audit.options.allow_environ
        if allowed is not None and made.index and not {made.program, Path(made.program).name} & allowed:
            audit.disallowed_execs += 1
            if len(audit.disallowed) < WITNESSES:
                audit.disallowed.append(made)

    def _words(self, made: Exec) -> str:
        text = " ".join(argument[:WORDS_LENGTH] for argument in made.argv[:8]) or made.program
        text = self.finder.redact(text)
        return text if len(text) <= WORDS_LENGTH else text[: WORDS_LENGTH - 1] + "…"

    def _leaks_of(self, record: ExecRecord, program: Program, finder: Finder) -> tuple[ArgvLeak, ...]:
        if not finder.may_hold(BORDER.join((record.program, *record.argv, *program.interpreter))):
            return ()
        found: list[ArgvLeak] = []
        texts: list[tuple[Where, int, bytes]] = [("program", 0, record.program)]
        texts += [("argument", index, argument) for index, argument in enumerate(record.argv)]
        texts += [("interpreter", index, word) for index, word in enumerate(program.interpreter)]
        for where, index, data in texts:
            found += [
                ArgvLeak(where=where, argument=index, occurrence=occurrence)
                for occurrence in finder.find(text_of(data))
            ]
        return tuple(found)

    def _held_by(self, record: ExecRecord, finder: Finder) -> tuple[HeldVariable, ...]:
        if not finder.may_hold(record.environ):
            return ()
        # Most processes of a tree have one environment: it is written again for each, and read once here.
        if finder is self.finder and (known := self.environments.get(record.environ)) is not None:
            return known
        entries = finder.which_may_hold(environment_entries(record))
        found = tuple(held for entry in entries for held in held_variables(entry, finder))
        if finder is self.finder and len(record.environ) <= ENVIRONMENT_LENGTH:
            if len(self.environments) >= ENVIRONMENTS:
                self.environments.clear()
            self.environments[record.environ] = found
        return found

    def _take_end(self, record: EndRecord) -> None:
        if before := self.searching.pop(record.pid, None):
            self._report(*before)
        self.tree.end(record.pid, time=record.time, status=record.status, signal=record.signal)
        if record.pid == self.root and self.root_end is None:
            self.root_end = record

    @property
    def survivors(self) -> list[Process]:
        """Processes that still run although the command has ended."""
        return list(self.tree.live.values()) if self.root_end else []


def held_variables(entry: bytes, finder: Finder) -> list[HeldVariable]:
    """What one ``NAME=value`` holds, at most once for a canary in the name and once in the value."""
    name, _, value = text_of(entry).partition("=")
    shown = finder.redact(name)
    found: list[HeldVariable] = []
    for text, in_name in ((name, True), (value, False)):
        kinds = {each.canary: each.kind for each in reversed(finder.find(text))}
        found += [HeldVariable(name=shown, kind=kind, canary=canary, in_name=in_name) for canary, kind in kinds.items()]
    return found


def refusal(record: ExecRecord) -> LaunchError:
    """Why the kernel did not start the command, although its file is there and executable."""
    shown = text_of(record.program)
    if record.error == "ENOENT":
        return CommandNotFoundError(
            f"{shown} cannot be started",
            why="the interpreter that it names does not exist",
            fix="correct its #! line, or install the interpreter",
        )
    if record.error == "ENOEXEC":
        return CommandNotExecutableError(
            f"{shown} is no program",
            why="it is neither a binary of this machine nor a script with a #! line",
            fix="name its interpreter before it, or give it a #! line",
        )
    if record.error == "E2BIG":
        return LaunchError(
            f"{shown} cannot be started",
            why="its arguments and environment are longer than Linux allows",
            fix="pass the long ones in a file or on standard input",
        )
    return CommandNotExecutableError(
        f"{shown} cannot be started",
        why=f"the kernel answers {record.error}",
        fix="check its permissions, and whether it starts without the audit",
    )
