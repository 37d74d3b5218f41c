"""For whom a launch is made: where signals come from, what the first processes are, and who waits for them."""

from __future__ import annotations

import os

from runner_e2e import kernel
from runner_e2e.sandbox import mounts
from runner_e2e.sandbox.standby import Standby

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.sandbox.request import Packed
    from runner_e2e.sandbox.terminal import Foreground

__all__ = ["Origin"]

_SIGCHLD, _SIGCONT, _SIGSTOP, _SIGTSTP = 17, 18, 19, 20
_FROM_TERMINAL = 0x80  # SI_KERNEL


class Origin:
    """The process that launches, for itself."""

    def __init__(self) -> None:
        self.mask = b""
        self.signals = -1

    def block_signals(self) -> None:
        """Keeps signals for :meth:`pass_on`; ``mask`` is then the one that the agent gets."""
        self.mask = kernel.block_signals()

    def open(self) -> int:
        """A descriptor that can be read when there is something to pass on."""
        self.signals = kernel.signal_descriptor()
        return self.signals

    def pass_on(self, control: int, terminal: Foreground | None) -> bool:
        """Sends one signal on: those of the terminal to the agent's whole group. False when no more can come."""
        message = os.read(self.signals, 128)
        signal = message[0]
        code = int.from_bytes(message[8:12], "little", signed=True)
        if signal == _SIGCHLD:
            return True
        if signal == _SIGCONT and terminal:
            terminal.resume(control)
        try:
            if signal == _SIGTSTP:
                os.write(control, bytes([_SIGSTOP, 1]))
                if terminal:
                    terminal.leave(control)
                os.kill(os.getpid(), _SIGSTOP)
                os.write(control, bytes([_SIGCONT, 1]))
            else:
                os.write(control, bytes([signal, int(code == _FROM_TERMINAL)]))
        except BrokenPipeError:
            return False
        return True

    def close(self) -> None:
        """Lets signals come again."""
        if self.signals >= 0:
            os.close(self.signals)
        self.signals = -1
        kernel.unblock_signals(self.mask)

    def erase(self, names: Sequence[str]) -> None:
        """Takes variables out of the memory of the process that waits as long as the agent lives."""
        from runner_e2e import selected_id

        for name in names:
            selected_id.erase(name)

    def ownership_maps(self, packed: Packed) -> dict[tuple[int, int], int]:
        """Descriptors that the caller closes; raises :class:`OSError` where the host makes no user namespace."""
        return mounts.ownership_maps(packed.owners, agent=packed.agent)

    def first_processes(self, packed: Packed) -> Standby:
        """Those of a launch by *packed*; raises :class:`OSError` where the host refuses them."""
        return Standby(packed.kind, mask=self.mask)

    def tell_begun(self, packed: Packed) -> None:
        """Tells whoever makes the next launches that one by *packed* was asked of the first processes."""

    def collect(self, process: int) -> None:
        """Waits until the first process is gone, after it has told how the command ended."""
        os.waitpid(process, 0)
