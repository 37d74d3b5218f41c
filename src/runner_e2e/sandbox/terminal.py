"""A terminal for the agent: a pseudo terminal of its own, carried to and from the launcher's.

The agent never holds the launcher's terminal, in which it could type commands or read what is typed there later. Three
processes share the work. The launcher switches its terminal to raw mode while it is in the foreground
(:class:`Foreground`). The process that becomes the agent opens the pseudo terminal (:func:`open_pair`) and makes it its
controlling one (:func:`take`). The first process of the launch carries what is typed and shown (:class:`Relay`).
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
import time
from contextlib import suppress

from runner_e2e import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["INPUT_OFF", "INPUT_ON", "Foreground", "Relay", "handed_over", "open_pair", "take"]

# Beside signals, the launcher tells the first process whether what is typed is meant for the agent.
INPUT_ON, INPUT_OFF = 200, 201

_BLOCK = 1 << 14
_PATIENCE = 5.0  # seconds that a terminal which takes no more output is waited for, once the agent has ended
_LOOK_AGAIN = 300  # milliseconds
_SIGTTOU, _SIGWINCH = 22, 28


def _window(terminal: int) -> bytes:
    return fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(struct.calcsize("HHHH")))


# --- the launcher -------------------------------------------------------------------------------------------------


def handed_over(streams: Sequence[int] = (0, 1, 2)) -> tuple[int, ...]:
    """Which of the standard *streams* are this process's controlling terminal; none unless the first is."""
    found = []
    for number, descriptor in enumerate(streams):
        try:
            os.tcgetpgrp(descriptor)
        except OSError:
            if number == 0:
                return ()
            continue
        found.append(number)
    return tuple(found)


class Foreground:
    """The launcher's terminal, in raw mode for as long as the launcher is in the foreground.

    A process beside the launcher gives the terminal back when the launcher is killed.
    """

    def __init__(self) -> None:
        # Opened anew: what others do with the same terminal never blocks on this descriptor.
        self.descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._former: list[Any] | None = None
        self._raw: list[Any] = []
        self._keeper = self._pipe = -1
        self._told = False

    @property
    def pause(self) -> int | None:
        """Milliseconds until it is worth asking again whether the shell has brought the launcher to the foreground."""
        return _LOOK_AGAIN if self._former is None else None

    def enter(self, control: int) -> None:
        """Switches to raw mode, unless that is done or the launcher is in the background."""
        if self._former is not None:
            return
        try:
            if os.tcgetpgrp(self.descriptor) != os.getpgrp():
                if not self._told:
                    _tell(control, INPUT_OFF)
                self._told = True
                return
            former = termios.tcgetattr(self.descriptor)
            self._raw = _raw(former)
            self._keep(former, self._raw)
            termios.tcsetattr(self.descriptor, termios.TCSANOW, self._raw)
        except (OSError, termios.error):
            self._let_go()
            return
        self._former = former
        _tell(control, INPUT_ON)
        _tell(control, _SIGWINCH)

    def resume(self, control: int) -> None:
        """After a stop that could not be prepared for: the shell has changed the terminal meanwhile."""
        if self._former is not None:
            with suppress(OSError, termios.error):
                if os.tcgetpgrp(self.descriptor) == os.getpgrp():
                    termios.tcsetattr(self.descriptor, termios.TCSANOW, self._raw)
                    _tell(control, INPUT_ON)
                    _tell(control, _SIGWINCH)

    def leave(self, control: int) -> None:
        """Gives the terminal back as it was."""
        if self._former is not None:
            _tell(control, INPUT_OFF)
        self._restore()

    def close(self) -> None:
        """Gives the terminal back and lets it go."""
        self._restore()
        os.close(self.descriptor)

    def _restore(self) -> None:
        if self._former is not None:
            with suppress(OSError, termios.error):  # where it is gone
                termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._former)
            self._former = None
        self._let_go()

    def _keep(self, former: list[Any], raw: list[Any]) -> None:
        read, write = os.pipe2(os.O_CLOEXEC)
        keeper = os.fork()
        if keeper == 0:
            _keep_until_the_end(self.descriptor, read, former, raw)
        os.close(read)
        self._keeper, self._pipe = keeper, write

    def _let_go(self) -> None:
        if self._keeper >= 0:
            os.close(self._pipe)
            os.waitpid(self._keeper, 0)
            self._keeper = self._pipe = -1


def _keep_until_the_end(terminal: int, pipe: int, former: list[Any], raw: list[Any]) -> None:
    """Waits for the launcher's end, then gives the terminal back unless somebody has already. Never returns."""
    try:
        os.setpgid(0, 0)  # whoever kills the launcher's group leaves this process
        kernel.ignore(_SIGTTOU)
        kernel.set_name("sandbox")
        # 0 to 2 too: who waits for the end of the launcher's output must not wait for this process.
        for descriptor in (*range(3), *map(int, os.listdir("/proc/self/fd"))):
            if descriptor not in {terminal, pipe}:
                try:
                    os.close(descriptor)
                except OSError:
                    continue
        os.read(pipe, 1)
        if termios.tcgetattr(terminal) == raw:
            termios.tcsetattr(terminal, termios.TCSANOW, former)
    finally:
        os._exit(0)


def _tell(control: int, message: int) -> None:
    with suppress(BrokenPipeError):
        os.write(control, bytes([message, 0]))


def _raw(modes: list[Any]) -> list[Any]:
    """*modes* as cfmakeraw(3) changes them."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, characters = modes
    iflag &= ~(
        termios.IGNBRK
        | termios.BRKINT
        | termios.PARMRK
        | termios.ISTRIP
        | termios.INLCR
        | termios.IGNCR
        | termios.ICRNL
        | termios.IXON
    )
    lflag &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    cflag = cflag & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    characters = list(characters)
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    return [iflag, oflag & ~termios.OPOST, cflag, lflag, ispeed, ospeed, characters]


# --- the process that becomes the agent -----------------------------------------------------------------------------

_UNLOCK, _OPEN_PEER = 0x40045431, 0x5441  # TIOCSPTLCK, TIOCGPTPEER


def open_pair(like: int, *, user: int) -> tuple[int, int]:
    """A new pseudo terminal with the settings of the terminal *like*: its master and its slave.

    *user* owns the slave; -1 leaves it to this process's user.
    """
    try:
        master = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:  # the host's file system of terminals has its master elsewhere
        master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    fcntl.ioctl(master, _UNLOCK, struct.pack("i", 0))
    slave = fcntl.ioctl(master, _OPEN_PEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(like))
    fcntl.ioctl(master, termios.TIOCSWINSZ, _window(like))
    if user >= 0:
        os.fchown(slave, user, -1)
    return master, slave


def take(slave: int) -> None:
    """Makes *slave* the controlling terminal of this process, which must lead a session without one."""
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


# --- the first process of a launch ----------------------------------------------------------------------------------


class Relay:
    """Carries bytes between the launcher's terminal (*outer*) and the agent's (*master*); neither may block.

    *slave* is kept open, so that the agent may close its terminal and open it again.
    """

    def __init__(self, outer: int, master: int, slave: int, waiting: select.poll) -> None:
        self._outer = outer
        self._master = master
        self._slave = slave
        self._waiting = waiting
        self._typed = b""
        self._shown = b""
        # None until the launcher has said it first: how lines end depends on it.
        self._listens: bool | None = None
        self._update()

    def hears(self, message: int) -> bool:
        """Takes what the launcher tells of its terminal; whether *message* was that and no signal for the agent."""
        if message == _SIGWINCH:
            self._resize()
        elif message in {INPUT_ON, INPUT_OFF}:
            self._listens = message == INPUT_ON
            self._update()
        else:
            return False
        return True

    def _resize(self) -> None:
        """Gives the agent's terminal the size of the outer one; the kernel tells its foreground processes."""
        if self._outer >= 0 and self._master >= 0:
            with suppress(OSError):
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, _window(self._outer))

    def move(self) -> None:
        """Carries what can be carried now."""
        if self._outer >= 0:
            self._shown = self._write_outer(self._shown)
        if self._master >= 0 and not self._shown and self._listens is not None:
            self._shown = self._write_outer(self._read_master())
        if self._master >= 0:
            self._typed = self._write_master(self._typed)
        if self._outer >= 0 and self._listens and not self._typed:
            self._typed = self._write_master(self._read_outer())
        self._update()

    def finish(self, control: int) -> None:
        """Shows what the agent wrote before it ended, then lets both go. A terminal that takes nothing is left.

        *control* brings what the launcher tells: an agent may have ended before its first word.
        """
        self._close_slave()
        end = time.monotonic() + _PATIENCE
        self._hear_out(control)
        while self._outer >= 0 and time.monotonic() < end:
            if not self._shown and self._master >= 0:
                self._shown = self._read_master()
            before, self._shown = self._shown, self._write_outer(self._shown)
            if not before:
                break
            if before == self._shown:
                patience = select.poll()
                patience.register(self._outer, select.POLLOUT)
                patience.poll(100)
        self._close_master()
        self._close_outer()

    def _hear_out(self, control: int) -> None:
        waiting = select.poll()
        waiting.register(control, select.POLLIN)
        while self._listens is None and waiting.poll(int(_PATIENCE * 1000)):
            message = os.read(control, 512)
            if not message:  # the launcher is gone
                return
            for number in message[::2]:
                self.hears(number)

    def _read_master(self) -> bytes:
        try:
            block = os.read(self._master, _BLOCK)
            # A terminal that is not in raw mode puts the carriage returns itself.
            return block if self._listens is not False else block.replace(b"\r\n", b"\n")
        except BlockingIOError:
            return b""
        except OSError:  # EIO: the agent, which leads the session, has ended
            self._close_master()
            return b""

    def _read_outer(self) -> bytes:
        try:
            block = os.read(self._outer, _BLOCK)
        except BlockingIOError:
            return b""
        except OSError:
            if self._is_in_the_background():
                self._listens = False  # until the launcher says otherwise
                return b""
            block = b""
        if not block:  # hung up: closing the agent's terminal hangs that up as well
            self._close_outer()
            self._close_slave()
            self._close_master()
        return block

    def _is_in_the_background(self) -> bool:
        """Whether the kernel refuses to read only because the launcher is in the background: it was stopped."""
        try:
            os.tcgetpgrp(self._outer)
        except OSError:
            return False
        return True

    def _write_outer(self, block: bytes) -> bytes:
        if self._outer < 0:
            return b""
        return self._write(self._outer, block)

    def _write_master(self, block: bytes) -> bytes:
        return self._write(self._master, block) if self._master >= 0 else b""

    def _write(self, descriptor: int, block: bytes) -> bytes:
        """Writes what fits and returns the rest."""
        if not block:
            return b""
        try:
            return block[os.write(descriptor, block) :]
        except BlockingIOError:
            return block
        except OSError:
            return b""

    def _update(self) -> None:
        """Waits for what there is room for."""
        if self._outer >= 0:
            wanted = (select.POLLOUT if self._shown else 0) | (
                select.POLLIN if self._listens and not self._typed else 0
            )
            self._wait(self._outer, wanted)
        if self._master >= 0:
            shows = self._listens is not None and not self._shown
            wanted = (select.POLLIN if shows else 0) | (select.POLLOUT if self._typed else 0)
            self._wait(self._master, wanted)

    def _wait(self, descriptor: int, wanted: int) -> None:
        # poll(2) tells of a hang-up whatever is asked for: a terminal that nothing is wanted of is not asked at all.
        if wanted:
            self._waiting.register(descriptor, wanted)
        else:
            self._forget(descriptor)

    def _forget(self, descriptor: int) -> None:
        with suppress(KeyError):
            self._waiting.unregister(descriptor)

    def _close_outer(self) -> None:
        if self._outer >= 0:
            self._forget(self._outer)
            os.close(self._outer)
            self._outer = -1

    def _close_slave(self) -> None:
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1

    def _close_master(self) -> None:
        if self._master >= 0:
            self._forget(self._master)
            os.close(self._master)
            self._master = -1
