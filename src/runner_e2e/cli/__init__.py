"""The command line: one file a verb, loaded only when it is called.

Only this package and ``scripts/`` print or exit the process.
"""

from __future__ import annotations

import codecs
import gc
import io
import os
import signal
import sys

from runner_e2e import __version__

__all__ = ["main"]

_ESCAPED = "runner-e2e-escaped"


def main(arguments: list[str] | None = None) -> int:
    """Runs ``runner-e2e`` with *arguments* (default: those of the process) and returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    _open_streams()
    if given == ["--version"]:  # answered before click is imported: scripts ask this often
        print(f"runner-e2e {__version__}")
        return 0
    try:
        return _run(given)
    except KeyboardInterrupt:  # while modules are loaded
        return 128 + signal.SIGINT
    except Exception:  # noqa: BLE001 - Python's own status for it, 1, would say that something was found
        return _tell_defect(given)
    finally:
        if arguments is None:
            gc.freeze()  # the process ends: to look for garbage in all that is left takes as long as the start


def _run(given: list[str]) -> int:
    if given[:1] == ["lint"]:  # often called, on few files or on such as are known: click would take most of the time
        from runner_e2e.cli.lint_plain import understood

        plain = understood(given[1:])
        if plain is not None:
            from runner_e2e.cli.edge import guarded

            return guarded(plain.run)
    from runner_e2e.cli.group import run

    return run(given)


def _tell_defect(given: list[str]) -> int:
    """Shows the error that is being handled, which nobody foresaw; returns the exit code.

    Not 4 where that may be the status of a program that is run.
    """
    import traceback

    traceback.print_exc()
    print("runner-e2e: this is a defect of runner-e2e\n  fix: report it, with the lines above", file=sys.stderr)
    return 125 if given[:1] in (["sandbox"], ["audit"]) else 4


def _open_streams() -> None:
    """Puts nowhere in the place of streams that this process was started without (``>&-``).

    What the encoding of the screen does not have is written as JSON escapes it, so that JSON stays what it is.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        codecs.register_error(_ESCAPED, _escaped)
        sys.stdout.reconfigure(errors=_ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that an encoding does not have; a handler of errors for :mod:`codecs`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    import json  # few screens need it

    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
