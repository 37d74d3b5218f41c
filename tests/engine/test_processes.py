"""A harness and everything that comes of it ends: after exit, timeout, cancellation, and the death of the engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.engine.cancellation import GRACE, Cancellation
from runner_e2e.engine.processes import SOURCE, SUPERVISOR_LIMIT, Ended, run_harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATH = os.environ["PATH"]
# Seconds that a shell on a busy machine has, until its time is over, to set the trap that is tested.
TIME_TO_START = 3.0


@pytest.fixture
def cancellation() -> Iterator[Cancellation]:
    made = Cancellation()
    yield made
    made.close()


def run(
    script: str,
    cancellation: Cancellation,
    *,
    timeout: float = 20.0,
    grace: float = 1.0,
    program: str = "/bin/sh",
    directory: str = "/",
    output: Callable[[bytes], None] | None = None,
) -> tuple[Ended, str]:
    printed: list[bytes] = []
    ended = run_harness(
        {
            "program": program,
            "command": [program, "-c", script],
            "environment": {"PATH": PATH, "MARKER": "harness"},
            "directory": directory,
            "timeout": timeout,
            "grace": grace,
        },
        environ={},
        output=output or printed.append,
        cancellation=cancellation,
    )
    return ended, b"".join(printed).decode()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def pids(printed: str) -> list[int]:
    return [int(word) for word in printed.split() if word.isdigit()]


def test_status_and_output(cancellation: Cancellation) -> None:
    ended, printed = run("echo out; echo err >&2; exit 3", cancellation)
    assert (ended.code, ended.signal, ended.left, ended.timed_out, ended.complete) == (3, None, 0, False, True)
    assert printed == "out\nerr\n"


def test_the_environment_is_exactly_what_was_given(cancellation: Cancellation) -> None:
    _, printed = run("/usr/bin/env | sort", cancellation)
    assert [line for line in printed.split() if not line.startswith(("PWD=", "_=", "SHLVL="))] == [
        "MARKER=harness",
        f"PATH={PATH}",
    ]


def test_nothing_else_is_inherited(cancellation: Cancellation) -> None:
    look = (
        "import os, resource, stat;"
        "print(*[fd for fd in range(256) if os.path.lexists(f'/proc/self/fd/{fd}')]);"
        "print(os.read(0, 1), *[stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in (1, 2)]);"
        "print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        _, printed = run(f'exec {sys.executable} -I -S -c "{look}"', cancellation)
    finally:
        os.close(reader)
        os.close(writer)
    # 0 is empty, 1 and 2 are the output; no core dump would keep the environment.
    assert printed.splitlines() == ["0 1 2", "b'' True True", "0"]


def test_signals_have_their_default_dispositions(cancellation: Cancellation) -> None:
    ended, printed = run("cat /proc/self/status", cancellation)
    assert ended.code == 0
    values = dict(line.split(":", 1) for line in printed.splitlines())
    # Signals 32 and 33 belong to the C library, which lets nobody set them back; some shells hand one on as ignored.
    settable = ~(1 << 31 | 1 << 32)
    assert [int(values[name], 16) & settable for name in ("SigBlk", "SigIgn", "SigCgt")] == [0, 0, 0]


def test_a_session_of_its_own_without_a_terminal(cancellation: Cancellation) -> None:
    _, printed = run("ps -o pid=,sid=,tty= -p $$", cancellation)
    pid, session, terminal = printed.split()
    assert pid == session
    assert terminal == "?"


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (11, "SIGSEGV"), (40, "SIG40")])
def test_death_by_signal(cancellation: Cancellation, number: int, name: str) -> None:
    ended, _ = run(f"kill -{number} $$", cancellation)
    assert (ended.code, ended.signal) == (None, name)


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (lambda _: None, 2),
        (lambda path: path.mkdir(), 13),
        (lambda path: path.write_text("#!/bin/sh\n"), 13),
        (lambda path: (path.write_text("no program"), path.chmod(0o755)), 8),
        (lambda path: (path.write_text("#!/no/interpreter\n"), path.chmod(0o755)), 2),
    ],
)
def test_what_cannot_be_executed(cancellation: Cancellation, tmp_path: Path, make: object, number: int) -> None:
    path = tmp_path / "harness"
    make(path)  # type: ignore[operator]
    ended, printed = run("", cancellation, program=str(path))
    assert ended.not_started is not None
    assert (ended.not_started.errno, ended.not_started.path) == (number, str(path))
    assert printed == ""


def test_a_missing_directory_is_named(cancellation: Cancellation) -> None:
    ended, _ = run("", cancellation, directory="/no/such/directory")
    assert ended.not_started is not None
    assert ended.not_started.path == "/no/such/directory"


def test_a_timeout_asks_first(cancellation: Cancellation) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo on; while :; do sleep 0.02; done"
    ended, printed = run(script, cancellation, timeout=TIME_TO_START, grace=60.0)
    assert (ended.timed_out, ended.code) == (True, 0)
    assert printed.splitlines()[0] == "on"
    assert printed.splitlines()[-1] == "bye"
    assert ended.seconds < 60


def test_a_timeout_kills_what_does_not_listen(cancellation: Cancellation) -> None:
    script = "trap '' TERM; sleep 600 & echo $! $$; while :; do sleep 600; done"
    ended, printed = run(script, cancellation, timeout=TIME_TO_START, grace=0.3)
    assert (ended.timed_out, ended.signal, ended.complete) == (True, "SIGKILL", True)
    assert not any(map(alive, pids(printed)))


DAEMON = """
import os, signal, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write(f"{os.getpid()}\\n"); sys.stdout.flush()
open("ready", "w").close()
os.chdir("/")
for fd in range(3): os.close(fd)
time.sleep(600)
"""
UNTIL_READY = "while [ ! -e ready ]; do sleep 0.02; done"


def test_double_forked_and_reparented_daemons_are_ended(cancellation: Cancellation, tmp_path: Path) -> None:
    script = f"{sys.executable} -I -S -c '{DAEMON}'; {UNTIL_READY}; echo done"
    ended, printed = run(script, cancellation, directory=str(tmp_path))
    assert ended.code == 0
    assert ended.left >= 1
    assert ended.complete
    (daemon,) = pids(printed)
    assert not alive(daemon)
    assert ended.seconds < 60


def test_polite_daemons_are_asked_first(cancellation: Cancellation, tmp_path: Path) -> None:
    trap = 'trap "echo asked > farewell; exit" TERM; : > ready; while :; do sleep 0.02; done'
    ended, _ = run(f"setsid sh -c '{trap}' & {UNTIL_READY}", cancellation, directory=str(tmp_path))
    assert ended.left >= 1
    assert (tmp_path / "farewell").read_text() == "asked\n"


def test_what_ends_with_the_harness_by_itself_is_not_left(cancellation: Cancellation, tmp_path: Path) -> None:
    """It hears of the end by a pipe, as the server of launches does by the process."""
    follower = "read line; echo $line; : > ready; read line"
    script = f"mkfifo way; setsid sh -c '{follower}' < way & exec 3> way; echo out >&3; {UNTIL_READY}; exit 3"
    ended, printed = run(script, cancellation, directory=str(tmp_path))
    assert (ended.code, ended.left, printed) == (3, 0, "out\n")


# A moving target, linear on purpose: one process, that is another one every few milliseconds.
RUNAWAY = """
import os, time
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork(): os._exit(0)
    os.setsid()
    time.sleep(0.003)
"""


def test_a_process_that_keeps_forking_away_is_ended(cancellation: Cancellation) -> None:
    runaway = f"{sys.executable} -I -S -c '{RUNAWAY}'"
    ended, _ = run(f"{runaway} & {runaway} & sleep 0.3; exit 0", cancellation)
    assert ended.code == 0
    assert ended.complete
    assert ended.left >= 1


def test_a_flood_does_not_block(cancellation: Cancellation) -> None:
    ended, printed = run("yes | head -c 30000000", cancellation)
    assert ended.code == 0
    assert len(printed) == 30_000_000


def test_a_held_pipe_is_not_waited_for(cancellation: Cancellation, tmp_path: Path) -> None:
    """A process outside the tree may hold the output's other end: here this test itself, through /proc."""
    held: list[int] = []
    since: list[float] = []

    def hold(chunk: bytes) -> None:
        held.append(os.open(f"/proc/{int(chunk)}/fd/1", os.O_WRONLY | os.O_NONBLOCK))
        since.append(time.monotonic())
        (tmp_path / "ready").touch()

    ended, _ = run(f"echo $$; {UNTIL_READY}", cancellation, output=hold, directory=str(tmp_path), timeout=60.0)
    assert time.monotonic() - since[0] < SUPERVISOR_LIMIT
    os.close(held[0])
    assert (ended.code, ended.timed_out) == (0, False)


@pytest.mark.parametrize(
    ("numbers", "least", "most"),
    [
        ([signal.SIGTERM], GRACE[signal.SIGTERM], 30.0),
        ([signal.SIGINT, signal.SIGTERM], 0.0, GRACE[signal.SIGINT]),
        ([signal.SIGINT, signal.SIGINT], 0.0, GRACE[signal.SIGINT]),
    ],
)
def test_cancellation(cancellation: Cancellation, numbers: list[signal.Signals], least: float, most: float) -> None:
    printed: list[bytes] = []

    def ask() -> None:
        while not printed:
            time.sleep(0.01)
        asked.append(time.monotonic())
        for number in numbers:
            cancellation.request(number)
            time.sleep(0.2)

    asked: list[float] = []
    thread = threading.Thread(target=ask)
    thread.start()
    script = "trap '' TERM; echo $$; while :; do sleep 600; done"
    ended, _ = run(script, cancellation, timeout=600.0, grace=30.0, output=printed.append)
    seconds = time.monotonic() - asked[0]
    thread.join()
    assert ended.cancelled == numbers[0]
    assert ended.signal == "SIGKILL"
    assert least <= seconds <= most
    assert not any(map(alive, pids(b"".join(printed).decode())))


def test_a_cancelled_run_starts_nothing_that_lasts(cancellation: Cancellation) -> None:
    cancellation.request(signal.SIGTERM)
    ended, _ = run("while :; do sleep 600; done", cancellation, timeout=600.0)
    assert ended.cancelled == signal.SIGTERM
    assert ended.seconds < 60


ENGINE = f"""
import sys
sys.path.insert(0, {str(SOURCE)!r})
from runner_e2e.engine.cancellation import Cancellation
from runner_e2e.engine.processes import run_harness
def show(chunk):
    sys.stdout.buffer.write(chunk)
    sys.stdout.flush()
specification = dict(program="/bin/sh", command=["sh", "-c", sys.argv[1]], environment={{"PATH": "/usr/bin:/bin"}})
specification |= dict(directory="/", timeout=600.0, grace=30.0)
run_harness(specification, environ={{}}, output=show, cancellation=Cancellation())
"""


def test_a_killed_engine_leaves_no_process() -> None:
    script = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo $$; sleep 600' &); echo $$; sleep 600"
    engine = subprocess.Popen([sys.executable, "-I", "-c", ENGINE, script], stdout=subprocess.PIPE, text=True)
    assert engine.stdout is not None
    started = [int(engine.stdout.readline()) for _ in range(2)]
    supervisor = Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text().split()
    assert len(supervisor) == 1
    engine.kill()
    engine.wait()
    engine.stdout.close()
    limit = time.monotonic() + 60
    while time.monotonic() < limit and any(map(alive, [*started, int(supervisor[0])])):
        time.sleep(0.02)
    assert not any(map(alive, [*started, int(supervisor[0])]))


def test_a_killed_supervisor_takes_the_harness_with_it(cancellation: Cancellation) -> None:
    def kill() -> None:
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            time.sleep(0.02)
            children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
            for child in " ".join(path.read_text() for path in children).split():
                grandchildren = Path(f"/proc/{child}/task/{child}/children").read_text().split()
                for grandchild in grandchildren:
                    if Path(f"/proc/{grandchild}/cmdline").read_bytes() == b"sleep\000600.125\0":
                        os.kill(int(child), signal.SIGKILL)
                        return

    thread = threading.Thread(target=kill)
    thread.start()
    # One process only: what else the harness had would go to the engine's own process, which is not this one.
    ended, printed = run("echo $$; exec sleep 600.125", cancellation, timeout=600.0)
    thread.join()
    assert ended.supervisor_lost
    assert not ended.complete
    (harness,) = pids(printed)
    limit = time.monotonic() + 60  # the kernel kills it when its parent has ended, which is not before this is told
    while alive(harness) and time.monotonic() < limit:
        time.sleep(0.02)
    assert not alive(harness)
