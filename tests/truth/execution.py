"""Runs a case once, for real, under a local runner, and says what the kernel saw."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.truth.canary import Canary, random_canary
from tests.truth.case import WORKFLOW, Case, CaseError, IncompleteAuditError
from tests.truth.lines import Notes, place, read_notes
from tests.truth.trace import Exec, Trace, run_traced
from tests.truth.verdict import Truth, Witness

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
INPUT = "selected-id"
TIMEOUT = 60.0
ATTEMPTS = 3
# Programs that a case may name without the machine having them, or without wanting what they do: they do nothing.
STAND_INS = ("tool", "docker", "gh", "curl", "aws")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class Instruments:
    """Where the compiled recorder and the stand-ins are."""

    recorder: Path
    python: Path
    programs: Path


@contextmanager
def instruments() -> Iterator[Instruments]:
    """Builds the recorder and the stand-ins in a folder of their own, and removes it at the end."""
    with tempfile.TemporaryDirectory(prefix="truth-") as directory:
        root = Path(directory)
        recorder = root / "recorder.so"
        command = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(recorder), str(HERE / "recorder" / "recorder.c"), "-ldl"]
        subprocess.run(command, check=True)
        programs = root / "bin"
        programs.mkdir()
        for name in STAND_INS:
            (programs / name).symlink_to("/bin/true")
        (programs / "python3").symlink_to(Path(sys.executable).resolve())
        (programs / "python").symlink_to("python3")
        yield Instruments(recorder=recorder, python=HERE / "recorder" / "python", programs=programs)


@cache
def act() -> str:
    """The local runner: the development environment's own."""
    beside = Path(sys.executable).parent / "act"
    found = str(beside) if beside.is_file() else shutil.which("act")
    if not found:
        raise CaseError("act is not installed; run `make environment`")
    return found


def execute(case: Case, tools: Instruments, *, recorded: bool) -> Truth:
    """Runs ``case`` with a canary nobody has used; with ``recorded`` the lines are found as well.

    Without it nothing is preloaded: the plain run that shows that the recorder changes no verdict. A run whose
    record is not whole is no verdict at all and is made again.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return execute_once(case, tools, random_canary(), recorded=recorded)
        except IncompleteAuditError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def execute_once(case: Case, tools: Instruments, canary: Canary, *, recorded: bool) -> Truth:
    """One run and what it shows."""
    with tempfile.TemporaryDirectory(prefix="case-") as directory:
        root = Path(directory)
        trace = run_case(case, tools, root, canary, recorded=recorded)
        notes = read_notes((root / "notes").read_bytes())
    if trace.status != 0:
        message = f"the workflow failed with status {trace.status}, so it proves nothing"
        raise CaseError(f"{case.path}: {message}\n{trace.output}")
    return judge(case, trace, notes, canary, recorded=recorded)


def run_case(case: Case, tools: Instruments, root: Path, canary: Canary, *, recorded: bool) -> Trace:
    """One run of the local runner in ``root``; the canary is passed in the event file only."""
    repository = root / "repository"
    case.lay_out(repository)
    for folder in ("objects", "refs"):
        (repository / ".git" / folder).mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    event = root / "event.json"
    event.write_text(json.dumps({"inputs": {INPUT: canary.id}}))
    (root / "notes").touch()
    (root / "home").mkdir()
    environ = {"PATH": f"{tools.programs}:{SYSTEM_PATH}", "HOME": str(root / "home"), "LANG": "C.UTF-8"}
    if recorded:
        environ |= {
            "TRUTH_RECORD": str(root / "notes"),
            "LD_PRELOAD": str(tools.recorder),
            "PYTHONPATH": str(tools.python),
        }
    command = [act(), "workflow_dispatch", "-W", str(repository / WORKFLOW), "-C", str(repository), "-e", str(event)]
    command += ["-P", "ubuntu-latest=-self-hosted", "--no-cache-server", "--pull=false"]
    return run_traced(command, directory=root, environ=environ, secrets=[canary.case], timeout=TIMEOUT)


def judge(case: Case, trace: Trace, notes: Notes, canary: Canary, *, recorded: bool) -> Truth:
    """The verdict is the kernel's; the notes only say where."""
    leaking = [one for one in trace.execs if any(canary.is_in(word) for word in one.argv)]
    witnesses = {witness(one, trace, notes, case, canary) for one in leaking} if recorded else set()
    encodings = {name for one in trace.execs for word in one.argv for name in canary.encodings_in(word)}
    environments = {Path(one.program).name for one in trace.execs if one.holds}
    return Truth(
        verdict="leak" if leaking else "clean",
        witnesses=tuple(sorted(witnesses)),
        encodings=tuple(sorted(encodings)),
        environments=tuple(sorted(environments)),
        script=any(canary.is_in(text) for text in notes.scripts.values()),
        log=canary.is_in(trace.output),
    )


def witness(one: Exec, trace: Trace, notes: Notes, case: Case, canary: Canary) -> Witness:
    """An exec that carried the id, with its line and in words that do not change from run to run."""
    found = place(one, trace.execs, notes, case)
    argv = tuple(stable(canary.masked(word)) for word in one.argv)
    return Witness(file=found.file, line=found.line, end_line=found.end_line, argv=argv, found_by=found.found_by)


def stable(word: str) -> str:
    """A word without the random folder of this run and without the number of a descriptor."""
    word = re.sub(r"/\S*?/act/[0-9a-f]{16}/hostexecutor", "{workspace}", word)
    word = re.sub(r"/\S*?/act/[0-9a-f]{16}/", "{runner}/", word)
    word = re.sub(r"/tmp/truth-\w+/bin", "{stand-ins}", word)
    word = re.sub(r"/proc/\d+/", "/proc/{pid}/", word)
    return re.sub(r"/tmp/tmp\.\w+", "{temporary}", word)
