"""How every verb ends: what went wrong is told as fact, cause and fix, and becomes an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import TYPE_CHECKING

from runner_e2e.errors import RunnerE2EError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["guarded"]

# What a write to the screen, or to what stands for it, fails with when there is no room left.
_UNWRITABLE = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))


def guarded(verb: Callable[[], object]) -> int:
    """Calls *verb*, whose output may be waiting to be written; the exit code that it returns (default: 0)."""
    try:
        result = verb()
        sys.stdout.flush()
    except RunnerE2EError as error:
        print(f"runner-e2e: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader (head, less) left: not an error of ours.
        _write_no_more()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _folder_is_gone():
            print("runner-e2e: the current folder is not there any more\n  fix: go to one that is", file=sys.stderr)
            return 2
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _write_no_more()
        print(f"runner-e2e: cannot write the output\n  why: {error.strerror}", file=sys.stderr)
        return 2
    return result if isinstance(result, int) else 0


def _folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


def _write_no_more() -> None:
    """Lets Python write nowhere what is left in its buffers, or it would complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
