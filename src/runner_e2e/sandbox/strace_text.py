r"""Reads what ``strace -f -ttt -v -y`` writes: one line, one record.

strace escapes strings as C does (``\n``, ``\"``, ``\\``, octal for the rest), so that a line is a record whatever
bytes an argument holds, and every argument is read back exactly. A call that another one interrupts is written in
two parts (``<unfinished ...>``, later ``<... execve resumed>``); :class:`Reader` joins them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ChildRecord", "EndRecord", "ExecRecord", "Reader", "Record", "UnreadableRecord", "environment_entries"]

STRING = rb'"(?:[^"\\]++|\\.)*+"'
ELEMENT = rb"(?:" + STRING + rb"(?:\.\.\.)?|0x[0-9a-f]++|NULL)"
LIST = rb"\[(?:" + ELEMENT + rb"|, |\.\.\.(?: /\* [^*]*\*/)?)*+\]"
POINTER = rb"NULL|0x[0-9a-f]++(?: /\* \d+ vars? \*/)?+"
# `3</usr/bin/true>`; strace escapes `<` and `>` inside the path.
DESCRIPTOR = rb"-?\d+|AT_FDCWD"

HEAD = (
    rb"execve(?:at)?\((?:(?P<descriptor>(?:" + DESCRIPTOR + rb")(?:<(?P<at>[^>]*+)>)?), )?"
    rb"(?P<program>" + STRING + rb"(?:\.\.\.)?|" + POINTER + rb"), "
    rb"(?P<argv>" + LIST + rb"|" + POINTER + rb")"
)
TAIL = rb"(?:, [A-Z0-9_|x]++)?(?P<rest>(?:\) += | <unfinished \.\.\.>| <pid changed to ).*+)\Z"
EXEC = re.compile(HEAD + rb", (?P<environ>" + LIST + rb"|" + POINTER + rb")" + TAIL, re.DOTALL)
EXEC_HEAD = re.compile(HEAD + rb"\Z", re.DOTALL)
EXEC_TAIL = re.compile(TAIL, re.DOTALL)
TOKEN = re.compile(rb'"((?:[^"\\]++|\\.)*+)"(\.\.\.)?|(0x[0-9a-f]++|NULL|\.\.\.)')
RESUMED = re.compile(rb"<\.\.\. (\w+) resumed>(.*)\Z", re.DOTALL)
CALL = re.compile(rb"(clone3?|v?fork)\((.*)\Z", re.DOTALL)
RESULT = re.compile(rb"\) += (-?\d+|\?)(?: ([A-Z]\w+))?(?: \(.*\))?(?: /\* (\d+) in strace's PID NS \*/)?\Z")
ENDED = re.compile(rb"\+\+\+ (?:exited with (\d+)|killed by (\w+)(?: \(core dumped\))?) \+\+\+")
SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d+) \+\+\+")
PID_CHANGED = re.compile(rb" <pid changed to (\d+) \.\.\.>")
ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|(.))", re.DOTALL)
# A thread that strace has just met: its first call, rseq, can be shown under the thread's own number instead of 334.
MISNUMBERED = re.compile(rb"syscall_0x[0-9a-f]++\(0x[0-9a-f]++, 0x20, 0, 0x53053053, ")
LETTERS = {b"n": b"\n", b"t": b"\t", b"v": b"\v", b"f": b"\f", b"r": b"\r"}

UNFINISHED = b"<unfinished ...>"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecRecord:
    """One exec as the process asked for it. ``error`` is empty when it took place, else the kernel's name (ENOENT)."""

    time: float
    pid: int
    program: bytes
    argv: tuple[bytes, ...]
    environ: bytes  # as strace wrote it; see environment_entries
    error: str
    whole: bool  # False: an argument, the program or the environment could not be read in full


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildRecord:
    """A process or, with ``thread``, a thread was made: ``child`` by ``pid``."""

    time: float
    pid: int
    child: int
    thread: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class EndRecord:
    """A process (or thread) ended: with an exit ``status``, or else by the ``signal`` of this name (SIGKILL)."""

    time: float
    pid: int
    status: int | None
    signal: str


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadableRecord:
    """A line that is none of the forms known here."""

    time: float
    pid: int
    line: bytes


Record = ExecRecord | ChildRecord | EndRecord | UnreadableRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class HalfExec:
    """An exec whose result has not been written yet."""

    time: float
    program: bytes
    argv: tuple[bytes, ...]
    environ: bytes
    whole: bool


def unescape(text: bytes) -> bytes:
    """Undoes the escapes that strace writes inside a string."""
    if b"\\" not in text:
        return text
    return ESCAPE.sub(lambda found: bytes((int(found[1], 8),)) if found[1] else LETTERS.get(found[2], found[2]), text)


def elements(listing: bytes) -> tuple[tuple[bytes, ...], bool]:
    """The strings of ``["a", "b"]``, and whether all of them were read in full."""
    whole = listing.startswith(b"[")
    found: list[bytes] = []
    for text, cut, address in TOKEN.findall(listing) if whole else ():
        if address or cut:
            whole = False
        if not address:
            found.append(unescape(text))
    return tuple(found), whole


def environment_entries(record: ExecRecord) -> tuple[bytes, ...]:
    """The ``NAME=value`` strings of the environment that an exec passed."""
    return elements(record.environ)[0]


class Reader:
    """Turns lines into records; keeps only the calls that are under way."""

    def __init__(self) -> None:
        self.execs: dict[int, HalfExec] = {}
        self.children: dict[int, bytes] = {}

    def read(self, line: bytes) -> Iterator[Record]:
        """The records (none, one or rarely two) that *line*, without its newline, completes."""
        number, _, rest = line.partition(b" ")
        stamp, _, text = rest.lstrip(b" ").partition(b" ")
        try:
            pid, time = int(number), float(stamp)
        except ValueError:
            yield UnreadableRecord(time=0.0, pid=0, line=line)
            return
        if text.startswith(b"exec"):
            yield from self._begin_exec(pid, time, text)
        elif text.startswith(b"<... "):
            yield from self._resume(pid, time, text)
        elif text.startswith(b"+++ "):
            yield from self._end(pid, time, text)
        elif call := CALL.match(text):
            yield from self._call(pid, time, call[2])
        # `???` stands for a call whose process was killed before strace could look at it: it never took place.
        elif not text.startswith((b"--- ", b"???", b") = ")) and not MISNUMBERED.match(text):
            yield UnreadableRecord(time=time, pid=pid, line=line)

    def _begin_exec(self, pid: int, time: float, text: bytes) -> Iterator[Record]:
        parts = split_exec(text)
        if not parts:
            yield UnreadableRecord(time=time, pid=pid, line=text)
            return
        found, environ, rest = parts
        program, program_whole = elements(b"[" + found["program"] + b"]")
        argv, argv_whole = elements(found["argv"])
        name = program[0] if program else b""
        if found["at"] is not None and not name.startswith(b"/"):
            at = unescape(found["at"])
            name = at + b"/" + name if name else at
        # A null environment is an empty one: Linux takes it so.
        environ_whole = environ == b"NULL" or (environ.startswith(b"[") and not has_gap(environ))
        half = HalfExec(
            time=time,
            program=name,
            argv=argv,
            environ=b"" if environ == b"NULL" else environ,
            whole=program_whole and (argv_whole or found["argv"] == b"NULL") and environ_whole,
        )
        if changed := PID_CHANGED.match(rest):
            # A thread that is not the first of its process called exec, and took the first one's number: it succeeded.
            yield finished(half, pid=int(changed[1]), error="")
        elif rest.endswith(UNFINISHED):
            self.execs[pid] = half
        else:
            yield finished(half, pid=pid, error=error_of(rest))

    def _resume(self, pid: int, time: float, text: bytes) -> Iterator[Record]:
        found = RESUMED.match(text)
        if not found:
            yield UnreadableRecord(time=time, pid=pid, line=text)
        elif found[1].startswith(b"execve"):
            if half := self.execs.pop(pid, None):
                yield finished(half, pid=pid, error=error_of(found[2]))
        elif found[2].endswith(UNFINISHED):
            self.children[pid] = self.children.get(pid, b"") + found[2]
        else:
            yield from self._call(pid, time, self.children.pop(pid, b"") + found[2])

    def _call(self, pid: int, time: float, text: bytes) -> Iterator[Record]:
        if text.endswith(UNFINISHED):
            self.children[pid] = text
            return
        result = RESULT.search(text)
        if not result:
            yield UnreadableRecord(time=time, pid=pid, line=text)
        elif (child := result[3] or result[1]) != b"?" and int(child) > 0:
            yield ChildRecord(time=time, pid=pid, child=int(child), thread=b"CLONE_THREAD" in text)

    def _end(self, pid: int, time: float, text: bytes) -> Iterator[Record]:
        if superseded := SUPERSEDED.match(text):
            # The exec of another thread took over this number; its record has been made.
            self.execs.pop(int(superseded[1]), None)
            return
        # What was under way when the process was killed never took place, and still says what it wanted.
        if half := self.execs.pop(pid, None):
            yield finished(half, pid=pid, error="KILLED")
        self.children.pop(pid, None)
        found = ENDED.match(text)
        if not found:
            yield UnreadableRecord(time=time, pid=pid, line=text)
            return
        status = int(found[1]) if found[1] else None
        yield EndRecord(time=time, pid=pid, status=status, signal=(found[2] or b"").decode())


def split_exec(text: bytes) -> tuple[re.Match[bytes], bytes, bytes] | None:
    """Program and arguments, the environment as written, and what follows.

    The environment is most of the line. Where both lists hold strings, ``"], ["`` stands between them and nowhere
    else (a quote inside a string has a backslash before it), so the environment need not be read to be found.
    """
    border, last = text.find(b'"], ["'), text.rfind(b'"]')
    if 0 < border < last:
        head = EXEC_HEAD.match(text[: border + 2])
        tail = EXEC_TAIL.match(text, last + 2)
        if head and tail:
            return head, text[border + 4 : last + 2], tail["rest"]
    found = EXEC.match(text)
    return (found, found["environ"], found["rest"]) if found else None


def has_gap(environ: bytes) -> bool:
    """Whether strace could not read an entry, or shortened one (rarely true, so the cheap test comes first)."""
    if b"..." not in environ and b"0x" not in environ:
        return False
    return not elements(environ)[1]


def error_of(rest: bytes) -> str:
    result = RESULT.search(rest)
    if not result:
        return "UNKNOWN"
    if result[1] == b"0":
        return ""
    return (result[2] or b"UNKNOWN").decode() if result[1] != b"?" else "KILLED"


def finished(half: HalfExec, *, pid: int, error: str) -> ExecRecord:
    return ExecRecord(
        time=half.time,
        pid=pid,
        program=half.program,
        argv=half.argv,
        environ=half.environ,
        error=error,
        whole=half.whole,
    )
