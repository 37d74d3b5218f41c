"""Work shared among processes: forked from this one, which has everything loaded, and takes part itself."""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from typing import TYPE_CHECKING

from runner_e2e.errors import DefectError
from runner_e2e.lint.result import from_data, to_data
from runner_e2e.lint.scratch import scratch_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.lint.result import FileResult

__all__ = ["shared"]

_NUMBER = struct.Struct("<I")
_QUEUE_BYTES = 60_000
"""Less than a pipe holds, so that the whole queue is written before anybody reads it."""


def shared(numbers: Sequence[int], work: Callable[[int], FileResult], count: int) -> dict[int, FileResult]:
    """``work(number)`` for each of *numbers*, done by *count* processes; what they return comes back as JSON.

    Every process takes the next number from one queue, so that none waits while another has a long row of them. In a
    process with threads, which must not fork, this one does all of it.

    Raises :class:`~runner_e2e.errors.DefectError` when a process ends before its work.
    """
    if _has_threads() or count < 2:
        return {number: work(number) for number in numbers}
    queue = _Queue(numbers)
    children = [_Child(queue, work) for _ in range(count - 1)]
    try:
        found = queue.drain(work)
        for child in children:
            found.update(child.results())
    except BaseException:
        for child in children:
            child.kill()
        raise
    finally:
        queue.close()
    return found


def _has_threads() -> bool:
    """Whether this process may have several threads: where nothing has loaded the module, there is only one."""
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


class _Queue:
    """Numbers in a pipe, several a record where there are very many."""

    def __init__(self, numbers: Sequence[int]) -> None:
        most = _QUEUE_BYTES // (2 * _NUMBER.size)
        size = -(-len(numbers) // most)
        self.numbers = numbers
        self.reader, writer = os.pipe()
        records = range(0, len(numbers), max(size, 1))
        self.size = max(size, 1)
        os.write(writer, b"".join(_NUMBER.pack(start) for start in records))
        os.close(writer)

    def drain(self, work: Callable[[int], FileResult]) -> dict[int, FileResult]:
        """Does what is next until nothing is left."""
        found = {}
        while len(record := os.read(self.reader, _NUMBER.size)) == _NUMBER.size:
            (start,) = _NUMBER.unpack(record)
            for number in self.numbers[start : start + self.size]:
                found[number] = work(number)
        return found

    def close(self) -> None:
        os.close(self.reader)


class _Child:
    """A process that works through the queue and leaves its results in a file without a name."""

    def __init__(self, queue: _Queue, work: Callable[[int], FileResult]) -> None:
        self.file = scratch_file()  # closed by results() and kill()
        self.ended = False
        self.process = os.fork()
        if self.process == 0:
            status = 1
            try:
                data = [[number, to_data(result)] for number, result in queue.drain(work).items()]
                self.file.write(json.dumps(data).encode())
                self.file.flush()
                status = 0
            finally:
                os._exit(status)  # what the parent has buffered or registered is its own

    def results(self) -> dict[int, FileResult]:
        """Waits, and reads what the process left."""
        _, status = os.waitpid(self.process, 0)
        self.ended = True
        if status != 0:
            code = os.waitstatus_to_exitcode(status)
            raise DefectError(
                "a process that lints a share of the files ended early",
                why=f"signal {-code}" if code < 0 else f"exit code {code}",
                fix="call it with `--jobs 1`; when the memory was used up, name fewer files",
            )
        self.file.seek(0)
        with self.file:
            return {number: from_data(data) for number, data in json.loads(self.file.read())}

    def kill(self) -> None:
        """Ends the process, if it has not ended."""
        if not self.ended:
            self.ended = True
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        self.file.close()
