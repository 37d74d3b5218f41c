"""The agent's standard streams: which must not be handed over as they are, and the pipes that carry those."""

from __future__ import annotations

import os
import select
import stat

from runner_e2e.sandbox.view import decides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.errors import LaunchError
    from runner_e2e.sandbox.plan import Step

__all__ = ["Relays", "refuse_reopening", "reopens_hidden"]

_BLOCK = 1 << 16


def reopens_hidden(descriptor: int, number: int, steps: Sequence[Step]) -> bool:
    """Whether the file open as *descriptor*, meant as standard stream *number*, lies where *steps* hide.

    Such a file can be opened again through ``/proc/self/fd``, behind every cover. A directory, which opens everything
    beneath it, and a closed descriptor are refused with :class:`LaunchError`.
    """
    try:
        found = os.fstat(descriptor)
    except OSError as error:
        raise _refused(number, "it is closed", "redirect it, for example from /dev/null") from error
    if stat.S_ISDIR(found.st_mode):
        raise _refused(number, "it is a directory, which opens paths behind every cover", "redirect it elsewhere")
    if not stat.S_ISREG(found.st_mode):
        return False
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return True  # without /proc its place is not known
    # A file that was removed is shown with a suffix, which may also be the end of a real name.
    around = [decides(name, steps) for name in (path, path.removesuffix(" (deleted)"))]
    itself = any(step.hidden and (step.device, step.inode) == (found.st_dev, found.st_ino) for step in steps)
    return itself or any(step is not None and step.hidden for step in around)


def refuse_reopening(descriptors: Sequence[int], steps: Sequence[Step]) -> None:
    """Raises :class:`LaunchError` for the first of three streams that would reopen something hidden."""
    for number, descriptor in enumerate(descriptors):
        if reopens_hidden(descriptor, number, steps):
            raise _refused(number, "its file is hidden", "give a pipe, or a file that is not hidden")


def _refused(number: int, why: str, fix: str) -> LaunchError:
    from runner_e2e.errors import LaunchError

    return LaunchError(f"standard stream {number} is refused", why=why, fix=fix)


class Relays:
    """The launcher's three streams as the agent gets them: hidden files through pipes, the rest as they are."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.inner = [0, 1, 2]
        self.outputs: dict[int, int] = {}  # pipe the agent writes -> where it goes
        self.input: tuple[int, int] | None = None  # hidden file -> pipe the agent reads
        for number in (0, 1, 2):
            if reopens_hidden(number, number, steps):
                read, write = os.pipe2(os.O_CLOEXEC)
                if number == 0:
                    self.inner[0], self.input = read, (os.dup(0), write)
                else:
                    self.inner[number], self.outputs[read] = write, os.dup(number)

    def close_inner(self) -> None:
        """Closes the agent's ends in this process."""
        for number, descriptor in enumerate(self.inner):
            if descriptor != number:
                os.close(descriptor)
        self.inner = [0, 1, 2]

    def register(self, waiting: select.poll) -> None:
        """Waits until there is something to move."""
        for source in self.outputs:
            waiting.register(source, select.POLLIN)
        if self.input:
            waiting.register(self.input[1], select.POLLOUT)

    def move(self, descriptor: int, waiting: select.poll) -> None:
        """Moves one block through the pipe that is ready; at its end closes it."""
        is_input = self.input is not None and descriptor == self.input[1]
        source, target = self.input if is_input and self.input else (descriptor, self.outputs[descriptor])
        try:
            # No more into a pipe than poll(2) promises room for: a blocked launcher could pass no signal on.
            block = os.read(source, select.PIPE_BUF if is_input else _BLOCK)
            _write_all(target, block)
        except BrokenPipeError:
            block = b""
        if block:
            return
        waiting.unregister(descriptor)
        os.close(source)
        os.close(target)
        if is_input:
            self.input = None
        else:
            del self.outputs[source]

    def drain(self) -> None:
        """Moves what the agent wrote before it ended."""
        for source, target in self.outputs.items():
            while block := os.read(source, _BLOCK):
                _write_all(target, block)

    def close(self) -> None:
        """Closes every pipe that is left."""
        self.close_inner()
        for pair in [*self.outputs.items(), *([self.input] if self.input else [])]:
            for descriptor in pair:
                os.close(descriptor)
        self.outputs, self.input = {}, None


def _write_all(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]
