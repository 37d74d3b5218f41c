"""``artifact exec`` from words to the running artifact, shared by the command line and the quick entry script."""

from __future__ import annotations

import os
import sys

from runner_e2e import kernel
from runner_e2e.artifacts.arguments import OPTIONS, parse_arguments
from runner_e2e.artifacts.launch import prepare
from runner_e2e.artifacts.listing import leave_report, refusal
from runner_e2e.artifacts.reasons import root_refused
from runner_e2e.artifacts.trusted_root import RefusedRoot, set_process_root
from runner_e2e.errors import LaunchError, RunnerE2EError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from runner_e2e.artifacts.trusted_root import TrustedRoot

__all__ = ["entry", "execute", "failure_status", "main", "root_of"]


def execute(words: Sequence[str], *, log: Callable[[str], None]) -> NoReturn:
    """Becomes the artifact that *words* name; raises an error of our tree when that fails."""
    request = parse_arguments(words)
    for word in request.ignored:
        log(_ignored(word))
    if sys.platform != "linux":
        raise LaunchError("no artifact can be launched here", why="it needs Linux", fix="run this on Linux")
    # Until the launch nobody of the same user may open our descriptors or trace us: the snapshot is not sealed yet.
    kernel.set_dumpable(dumpable=False)
    root = root_of(request.trusted_launch_root, log=log)
    try:
        launch = prepare(request.path, sha256=request.sha256, root=root, assigned=request.assigned)
        for line in launch.warnings():
            log(line)
        if not request.quiet:
            log(launch.line())
        leave_report(launch.to_document(), os.environ)
        launch.execute(request.arguments, os.environ)
    except LaunchError as error:
        leave_report(refusal(request.path, request.sha256, error), os.environ)
        raise


def entry(python: str) -> list[str]:
    """The words that start ``artifact exec`` quickly; options and the path come after them."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from runner_e2e.artifacts.command import main; "
    return [python, "-I", "-S", "-c", code + "sys.exit(main(sys.argv[1:]))", source]


def main(words: Sequence[str]) -> int:
    """Becomes the artifact that *words* name, or returns 125 to 127 after one message."""
    try:
        execute(words, log=_log)
    except RunnerE2EError as error:
        _log(f"launch_artifact: {error}")
        return failure_status(error.exit_code)


def _log(line: str) -> None:
    os.write(2, os.fsencode(line) + b"\n")


def root_of(path: str, *, log: Callable[[str], None]) -> TrustedRoot | RefusedRoot | None:
    """Sets the root of this process where one is asked for, and warns when it is not used."""
    if not path:
        return None
    root = set_process_root(path)
    if isinstance(root, RefusedRoot):
        log(root_refused(root.path, root.reason))
    return root


def failure_status(code: int) -> int:
    """The status for an error of our own: 126 and 127 stay, everything else is 125."""
    return code if code in {126, 127} else 125


def _ignored(word: str) -> str:
    if not word.startswith("-"):
        return f"artifact: warning: {word} is ignored with the option before it"
    import difflib  # only now: most launches ignore nothing

    name = word.partition("=")[0]
    near = difflib.get_close_matches(name, [option.name for option in OPTIONS], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"artifact: warning: unknown option {word} is ignored{hint}"
