"""Launches from a terminal: job control, window size, end of input, and the terminal as it was afterwards."""

from __future__ import annotations

import ast
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import tty
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from runner_e2e.sandbox.terminal import INPUT_ON, Relay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.sandbox_actors import Actor

WAYS = {"usual": [], "locked": ["--wall", "locked-mounts"], "landlock-alone": ["--without", "mounts"]}
PATIENCE = 60.0


class Desk:
    """A terminal with somebody in front of it, and the first process of its session."""

    def __init__(self, actor: Actor, words: Sequence[str]) -> None:
        self.said = ""
        ready, go = os.pipe()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.close(go)
                os.read(ready, 1)  # until the terminal has its size
                os.chdir(actor.work)
                program = [*actor.prefix, *words]
                os.execvpe(program[0], program, {**actor.environment(), "TERM": "dumb"})
            finally:
                os._exit(99)
        self.resize(30, 100)
        self.before = self.modes()
        os.close(go)
        os.close(ready)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.master)

    def raw(self) -> bool:
        return not self.modes()[3] & termios.ICANON

    def until_raw(self, *, raw: bool = True) -> None:
        end = time.monotonic() + PATIENCE
        while self.raw() != raw:
            assert time.monotonic() < end, f"the terminal stays as it is; it showed {self.said!r}"
            time.sleep(0.01)

    def until_foreground(self, command: str) -> None:
        """Waits until *command*, somewhere below this terminal, is what keys of its own terminal go to."""
        words = command.replace(" ", "\0") + "\0"
        end = time.monotonic() + PATIENCE
        while not any(_is_in_front(process) for process in Path("/proc").glob("[0-9]*") if _words(process) == words):
            assert time.monotonic() < end, f"{command} does not run"
            time.sleep(0.01)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def expect(self, text: str) -> str:
        """Reads until *text* is shown; returns what was shown before it."""
        end = time.monotonic() + PATIENCE
        while text not in self.said:
            assert self.read(end - time.monotonic()), f"{text!r} is not shown, but {self.said!r}"
        before, _, self.said = self.said.partition(text)
        return before

    def read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], max(0, seconds))
        try:
            block = os.read(self.master, 4096) if ready else b""
        except OSError:
            block = b""
        self.said += block.decode("utf-8", "replace")
        return bool(block)

    def end(self) -> int:
        """Reads to the end and returns the status of the first process."""
        while self.read(PATIENCE):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


def _words(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _is_in_front(process: Path) -> bool:
    """Whether a process runs, in the foreground of its terminal."""
    try:
        state, _, group, _, _, foreground, *_ = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return state in "RS" and group == foreground


def number(of: int) -> str:
    """A length of sleep that no other test has."""
    return f"100.{of}{os.getpid()}{time.monotonic_ns() % 100000}"


def read_pid(path: Path) -> int:
    """The process whose number a shell writes to *path*."""
    end = time.monotonic() + PATIENCE
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end, f"{path} is not written"
        time.sleep(0.01)
    return int(path.read_text())


def sit(actor: Actor, command: Sequence[object], *options: object) -> Desk:
    """A terminal whose only process is the launcher."""
    return Desk(actor, actor.words("--quiet", "--hide", actor.hidden, *options, command=command))


def shell(actor: Actor, *options: object) -> Desk:
    return sit(actor, ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"], *options)


@pytest.fixture
def outer_shell(actor: Actor) -> Iterator[Desk]:
    """A terminal with an interactive shell, which starts launches as jobs."""
    with Desk(actor, ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"]) as desk:
        desk.type("PS1='out''side> '\n")
        desk.expect("outside> ")
        yield desk


def launch_line(actor: Actor, script: str) -> str:
    """A line for a shell, from a file because a terminal takes no long ones."""
    path = actor.place / "launch.sh"
    words = actor.words("--quiet", "--hide", actor.hidden, command=["/bin/sh", "-c", script])
    path.write_text("exec " + " ".join("'" + word.replace("'", "'\\''") + "'" for word in words) + "\n")
    path.chmod(0o644)
    return f"sh {path}"


@pytest.mark.parametrize("way", WAYS)
def test_jobs_in_an_interactive_shell(actor: Actor, way: str) -> None:
    with shell(actor, *WAYS[way]) as desk:
        desk.type("PS1='in''side> '\n")
        desk.expect("inside> ")
        assert "no job control" not in desk.said
        first, second = f"sleep {number(1)}", f"sleep {number(2)}"
        desk.type(f"{first}; echo status $?\n")
        desk.until_foreground(first)
        desk.type("\x03")
        desk.expect("inside> ")
        desk.type(f"{second}\n")
        desk.until_foreground(second)
        desk.type("\x1a")
        desk.expect("Stopped")
        desk.expect("inside> ")
        desk.type("jobs | wc -l; fg\n")
        desk.expect("\r\n1\r\n")
        desk.until_foreground(second)
        desk.type("\x03")
        desk.expect("inside> ")
        desk.type("sleep 102 &\n")
        desk.expect("inside> ")
        desk.type("kill %1; wait %1; echo got $?\n")
        desk.expect("got 143")
        desk.type("tty > /dev/null && echo na''med; exit 7\n")
        desk.expect("named\r\n")
        assert desk.end() == 7


@pytest.mark.parametrize("way", WAYS)
def test_a_terminal_where_the_code_of_the_launcher_is_hidden(actor: Actor, way: str) -> None:
    script = "tty > /dev/null && echo na''med"
    with sit(actor, ["/bin/sh", "-c", script], "--hide", actor.source, *WAYS[way]) as desk:
        desk.expect("named\r\n")
        assert desk.end() == 0


def test_the_window_and_its_changes(actor: Actor) -> None:
    script = "trap 'stty size; exit 3' WINCH; stty size; while :; do sleep 0.05; done"
    with sit(actor, ["/bin/bash", "-c", script]) as desk:
        desk.expect("30 100")
        desk.until_raw()
        desk.resize(44, 132)
        desk.expect("44 132")
        assert desk.end() == 3


def test_keys_reach_a_program_that_is_no_shell(actor: Actor) -> None:
    with sit(actor, ["/bin/cat"]) as desk:
        desk.until_raw()
        desk.type("a line\n")
        desk.expect("a line\r\na line\r\n")  # the echo of the agent's terminal, and its answer
        desk.type("\x04")
        assert desk.end() == 0
    with sit(actor, ["/bin/sleep", "100"]) as desk:
        desk.until_raw()
        desk.type("\x03")
        assert desk.end() == 130
    with sit(actor, ["/bin/sleep", "100"]) as desk:
        desk.until_raw()
        desk.type("\x1c")
        assert desk.end() == 131


@pytest.mark.parametrize("way", WAYS)
def test_the_agent_does_not_hold_the_terminal_of_the_launcher(actor: Actor, way: str) -> None:
    script = (
        "import os\n"
        "open_ = []\n"
        "for number in range(256):\n"
        "    try:\n        found = os.fstat(number)\n    except OSError:\n        continue\n"
        "    open_.append((number, found.st_dev, found.st_ino))\n"
        "print('open', open_, 'end')\n"
    )
    with sit(actor, [actor.python, "-I", "-c", script], *WAYS[way]) as desk:
        number = struct.unpack("I", fcntl.ioctl(desk.master, 0x80045430, bytes(4)))[0]  # TIOCGPTN
        outer = Path(f"/dev/pts/{number}").stat()
        desk.expect("open ")
        held = ast.literal_eval(desk.expect(" end"))
        assert desk.end() == 0
    assert [entry[0] for entry in held] == [0, 1, 2]
    assert len({entry[1:] for entry in held}) == 1
    assert held[0][1:] != (outer.st_dev, outer.st_ino)


def test_terminals_of_the_same_user_are_not_there(actor: Actor) -> None:
    master, slave = os.openpty()
    name = os.ttyname(slave)
    if os.geteuid() == 0:
        os.chown(name, actor.user, -1)
    opened = "import os, sys; print(os.write(os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY), b'typed'))"
    try:
        keep = ["--keep-user"] if actor.root else []
        outside = actor.run([actor.python, "-I", "-c", opened, name])
        inside = actor.launch("--hide", actor.hidden, *keep, command=[actor.python, "-I", "-c", opened, name])
    finally:
        os.close(master)
        os.close(slave)
    assert outside.stdout == "5\n"
    assert inside.stdout == ""
    assert "No such file" in inside.stderr


def test_much_output_arrives_whole_and_last(actor: Actor) -> None:
    with sit(actor, ["/bin/sh", "-c", "seq 1 100000; echo end of it"]) as desk:
        time.sleep(1)  # whoever reads slowly loses nothing
        assert desk.end() == 0
    assert desk.said.split() == [*map(str, range(1, 100001)), "end", "of", "it"]


def test_much_input_arrives_whole(actor: Actor) -> None:
    with sit(actor, ["/bin/sh", "-c", "stty raw -echo; echo ready; head -c 200000 | cksum"]) as desk:
        desk.until_raw()
        desk.expect("ready")
        block = bytes(range(1, 201)) * 1000
        expected = subprocess.run(["cksum"], input=block, capture_output=True, check=True).stdout.decode().split()
        while block:
            block = block[os.write(desk.master, block[:4096]) :]
        desk.expect(expected[0])
        assert desk.end() == 0


def test_a_stream_that_is_no_terminal_stays_as_it_is(actor: Actor) -> None:
    script = "test -t 0 && test -t 2 && ! test -t 1 && echo to the file && echo to the terminal >&2"
    launch = launch_line(actor, script)
    with Desk(actor, ["/bin/sh", "-c", f"{launch} > out"]) as desk:
        assert desk.end() == 0
    assert desk.said == "to the terminal\r\n"
    assert (actor.work / "out").read_text() == "to the file\n"
    with Desk(actor, ["/bin/sh", "-c", f"echo piped | {launch_line(actor, 'test -t 0 || cat')}"]) as desk:
        assert desk.end() == 0
    assert desk.said == "piped\r\n"


def test_an_agent_that_ends_before_the_launcher_is_ready_is_shown_as_any_other() -> None:
    """Its lines end with a carriage return; an outer terminal that is not yet in raw mode would put a second."""
    outer, shown = pty.openpty()
    master, slave = pty.openpty()
    control, launcher = os.pipe()
    os.write(slave, b"quick\n")
    relay = Relay(shown, master, slave, select.poll())

    def start_late() -> None:
        time.sleep(0.2)
        tty.setraw(outer)
        os.write(launcher, bytes([INPUT_ON, 0]))

    late = threading.Thread(target=start_late)
    late.start()
    relay.finish(control)
    late.join()
    assert os.read(outer, 100) == b"quick\r\n"
    for descriptor in (outer, control, launcher):
        os.close(descriptor)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_terminal_is_as_it_was_after_a_signal(actor: Actor, way: str, how: signal.Signals) -> None:
    with sit(actor, ["/bin/sleep", "100"], *WAYS[way]) as desk:
        desk.until_raw()
        os.kill(desk.pid, how)
        assert desk.end() == 128 + how
        assert desk.modes() == desk.before


def test_the_terminal_is_as_it_was_after_the_launcher_was_killed(actor: Actor, outer_shell: Desk) -> None:
    before = outer_shell.modes()
    mark = actor.work / "pid"
    outer_shell.type(f"{launch_line(actor, 'echo started; sleep 100')} & echo $! > {mark}; fg\n")
    outer_shell.expect("started")
    outer_shell.until_raw()
    os.kill(read_pid(mark), signal.SIGKILL)
    outer_shell.expect("Killed")
    outer_shell.expect("outside> ")
    outer_shell.until_raw(raw=False)
    assert outer_shell.modes() == before
    outer_shell.type("pgrep -x sleep | wc -l; echo typed and $((40 + 2))\n")
    outer_shell.expect("typed and 42")


def test_the_terminal_is_as_it_was_though_no_shell_cares(actor: Actor) -> None:
    """The launcher alone in its session is killed; the process beside it gives the terminal back."""
    script = f"{launch_line(actor, 'echo started; sleep 100')} & echo $! > pid; wait $!; stty -a | grep -o '[-]*icanon'"
    with Desk(actor, ["/bin/bash", "-c", f"{script.replace(' &', ' < /dev/tty &')}"]) as desk:
        desk.expect("started")
        desk.until_raw()
        os.kill(read_pid(actor.work / "pid"), signal.SIGKILL)
        desk.until_raw(raw=False)
        desk.expect("icanon")


def test_background_and_foreground(actor: Actor, outer_shell: Desk) -> None:
    outer_shell.type(f"{launch_line(actor, 'echo up; read line; echo got $line')} &\n")
    outer_shell.expect("up\r\n")
    outer_shell.type("echo the shell still $((1 + 1)) hears\n")
    outer_shell.expect("still 2 hears")
    assert not outer_shell.raw()
    outer_shell.type("fg\n")
    outer_shell.until_raw()
    outer_shell.type("a line\n")
    outer_shell.expect("got a line")
    outer_shell.expect("outside> ")


@pytest.mark.parametrize("how", [signal.SIGTSTP, signal.SIGSTOP])
def test_a_launch_that_was_stopped_comes_back(actor: Actor, outer_shell: Desk, how: signal.Signals) -> None:
    mark = actor.work / "pid"
    outer_shell.type(f"{launch_line(actor, 'echo up; read line; echo got $line')} & echo $! > {mark}; fg\n")
    outer_shell.expect("up\r\n")
    outer_shell.until_raw()
    os.kill(read_pid(mark), how)
    outer_shell.expect("Stopped")
    outer_shell.expect("outside> ")
    outer_shell.type("echo the shell $((2 + 3)) hears\n")
    outer_shell.expect("shell 5 hears")
    outer_shell.type("fg\n")
    outer_shell.until_raw()
    outer_shell.type("a line\n")
    outer_shell.expect("got a line")
    outer_shell.expect("outside> ")


def test_a_terminal_that_goes_away_ends_the_tree(actor: Actor) -> None:
    mark = actor.work / "pid"
    with sit(actor, ["/bin/sh", "-c", "echo up; sleep 100"]) as desk:
        desk.expect("up")
        desk.until_raw()
        mark.write_text(str(desk.pid))
        os.close(desk.master)
        desk.master = os.open(os.devnull, os.O_RDWR)
        end = time.monotonic() + PATIENCE
        while os.waitpid(desk.pid, os.WNOHANG) == (0, 0):
            assert time.monotonic() < end
            time.sleep(0.05)
        desk.pid = 0
