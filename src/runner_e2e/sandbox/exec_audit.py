"""Runs a command and proves from the kernel's own record of every exec where a confidential value went.

:func:`audit` runs the command under strace. Each run first plants an exec with a random value of its own, and goes
on only when that exec, its every byte, its environment and its place in the process tree came back from the trace.
What cannot be read in full makes the audit incomplete, never clean.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import CommandNotExecutableError, CommandNotFoundError, LaunchError
from runner_e2e.sandbox.audit_model import ArgvLeak, Audit, Exec, HeldVariable, Options, Verdict
from runner_e2e.sandbox.auditor import Auditor, text_of
from runner_e2e.sandbox.canary import Canary, Finder
from runner_e2e.sandbox.process_tree import Process
from runner_e2e.sandbox.strace_text import Reader
from runner_e2e.sandbox.tracer import Request, Tracer, find_strace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["ArgvLeak", "Audit", "Canary", "Exec", "HeldVariable", "Options", "Process", "Verdict", "audit"]

STARTING_SECONDS = 60.0
_TRY_STRACE = "see whether `strace true` works here"


def resolve(command: Sequence[bytes], environ: Mapping[bytes, bytes], directory: Path) -> bytes:
    """The path of the program that a shell in *directory* would start. Raises errors with statuses 126 and 127."""
    name = command[0]
    shown = text_of(name)
    if b"/" in name:
        candidates = [directory / os.fsdecode(name)]
    else:
        path = os.fsdecode(environ.get(b"PATH", os.defpath.encode()))
        candidates = [directory / entry / os.fsdecode(name) for entry in path.split(os.pathsep)]
    existing = [candidate for candidate in candidates if candidate.is_file()]
    for candidate in existing:
        if os.access(candidate, os.X_OK):
            return os.fsencode(candidate)
    if existing or (b"/" in name and candidates[0].exists()):
        if not existing:
            raise CommandNotExecutableError(f"{shown} is no file", fix="name a program after --")
        raise CommandNotExecutableError(f"{shown} is not executable", fix="chmod +x, or name its interpreter")
    why = "there is no such file" if b"/" in name else "no directory of PATH holds it"
    raise CommandNotFoundError(f"{shown} was not found", why=why, fix="check its name")


def audit(  # noqa: PLR0913 - the command's whole surroundings
    command: Sequence[str | bytes],
    *,
    canaries: Sequence[Canary] = (),
    options: Options | None = None,
    environ: Mapping[bytes, bytes] | None = None,
    directory: Path | None = None,
    descriptors: Mapping[int, int] | None = None,
    sink: Callable[[Exec], None] | None = None,
    strace: str | None = None,
) -> Audit:
    """Runs *command* to its end and returns what every exec below it carried of the *canaries*.

    *environ* (default: this process's) is what the command gets; *directory* where it starts; *descriptors* which of
    this process's descriptors it gets under which number (default: 0, 1 and 2). Every exec is handed to *sink* as it
    happens; nothing else keeps them all. On the main thread, signals that this process receives go to the command.

    Raises :class:`LaunchError` when strace is missing, may not trace or does not report what the audit plants, and
    when the command cannot be started (126 and 127 as shells do); :class:`UsageError` for a value that is too short.
    """
    options = options or Options()
    words = [os.fsencode(word) for word in command]
    if not words or not words[0]:
        raise LaunchError("there is no command to audit", fix="put it after `--`")
    variables = dict(os.environb if environ is None else environ)
    start = Path.cwd() if directory is None else directory.absolute()
    finder = Finder(canaries, piece_length=options.piece_length, public=options.public)
    program = resolve(words, variables, start)
    outcome = Audit(command=tuple(text_of(word) for word in words), canaries=tuple(canaries), options=options)
    outcome.strace = strace or find_strace()
    auditor = Auditor(outcome, finder, sink)
    request = Request(
        program=program,
        command=words,
        environ=variables,
        directory=os.fsencode(start),
        descriptors=descriptors if descriptors is not None else {0: 0, 1: 1, 2: 2},
        plant_program=auditor.plant.program,
        plant_command=auditor.plant.argv,
        plant_environ=auditor.plant.environ,
        seccomp=options.seccomp,
    )
    outcome.started = time.time()
    before = time.monotonic()
    with Tracer(request, strace=outcome.strace) as tracer:
        Watch(tracer, auditor, options).run()
    outcome.seconds = time.monotonic() - before
    return outcome


class Watch:
    """Reads the trace to its end, or until the time is up."""

    def __init__(self, tracer: Tracer, auditor: Auditor, options: Options) -> None:
        self.tracer = tracer
        self.auditor = auditor
        self.options = options
        self.reader = Reader()
        self.begun = time.monotonic()
        self.deadline: float | None = None
        self.linger_end: float | None = None
        self.killing = False

    def run(self) -> None:
        """Returns when all is read; raises when the audit could not begin."""
        try:
            while self._step():
                pass
        except BaseException:
            self.killing = True
            self._kill()
            self.tracer.abandon()
            raise
        audit = self.auditor.audit
        audit.outlived = [] if self.killing else self.auditor.survivors
        if audit.outlived:
            self.auditor.gap(f"{len(audit.outlived)} processes outlived the command and are no longer watched")
        self._conclude()

    def _step(self) -> bool:
        """Reads what is there; False when nothing more is to be read."""
        lines = self.tracer.lines(self._patience())
        if lines is None:
            self.tracer.finish()
            self._check_start()
            return False
        for line in lines:
            for record in self.reader.read(line):
                self.auditor.take(record)
        now = time.monotonic()
        if self.auditor.started and self.deadline is None and self.options.timeout is not None:
            self.deadline = now + self.options.timeout
        if self.auditor.root and not self.tracer.root:
            self.tracer.started_root(self.auditor.root)
        if self.auditor.root_end and self.linger_end is None:
            self.tracer.ended_root()
            self.linger_end = now + self.options.linger
        if not self.auditor.started and now > self.begun + STARTING_SECONDS:
            raise LaunchError(
                f"strace did not begin within {STARTING_SECONDS:.0f} seconds",
                why=self.tracer.said() or "it said nothing",
                fix=_TRY_STRACE,
            )
        if self.deadline is not None and now >= self.deadline and not self.auditor.root_end:
            self.auditor.audit.timed_out = True
            self.killing = True
        over = self.linger_end is not None and now >= self.linger_end
        if over and self.options.end_survivors:
            self.killing = True
        if self.killing:
            self._kill()
        return self.killing or not over

    def _patience(self) -> float:
        """Seconds that the next read may wait."""
        if self.killing:
            return 0.1
        ends = [self.begun + STARTING_SECONDS if not self.auditor.started else None, self.deadline, self.linger_end]
        return min((max(0.0, end - time.monotonic()) for end in ends if end is not None), default=3600.0)

    def _kill(self) -> None:
        """Kills every process of the command that the trace shows alive."""
        for pid in [*self.auditor.tree.live, *([] if self.auditor.started else [self.tracer.pid])]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _check_start(self) -> None:
        """Explains a trace that ended before the command began."""
        if self.auditor.started:
            return
        said = self.tracer.said()
        if "not permitted" in said or "PTRACE" in said:
            raise LaunchError(
                f"strace may not trace here: {said}",
                why="another tracer holds this process, or the container or the kernel forbids ptrace",
                fix="run the audit outside of other tracers; in a container allow it (docker run --cap-add "
                "SYS_PTRACE); elsewhere see /proc/sys/kernel/yama/ptrace_scope (3 forbids it to all)",
            )
        raise LaunchError("strace ended before the command began", why=said or "it said nothing", fix=_TRY_STRACE)

    def _conclude(self) -> None:
        """Fills in how the command ended."""
        audit, end = self.auditor.audit, self.auditor.root_end
        if end is None:
            self.auditor.gap("the trace ends before the command does: strace was killed")
            audit.status = 125
        elif end.status is not None:
            audit.status = end.status
        else:
            audit.signal = end.signal
            audit.status = 128 + signal.Signals[end.signal] if end.signal in signal.Signals.__members__ else 128
