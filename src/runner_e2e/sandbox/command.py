"""``sandbox exec`` from options to exit status, shared by the command line and the quick entry script."""

from __future__ import annotations

import errno
import os
import stat
import time

from runner_e2e.sandbox.arguments import parse_arguments, policy_of
from runner_e2e.sandbox.launcher import run
from runner_e2e.sandbox.origin import Origin
from runner_e2e.sandbox.planning import current_directory, read_host
from runner_e2e.sandbox.policy import DROPPED_VARIABLES, LISTING_VARIABLE
from runner_e2e.sandbox.prepared import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.artifacts.launch import Launch as Artifact
    from runner_e2e.sandbox.arguments import Request
    from runner_e2e.sandbox.policy import Policy
    from runner_e2e.sandbox.prepared import Prepared
    from runner_e2e.sandbox.report import Report

__all__ = ["REPORTS_VARIABLE", "entry", "execute", "failure_status", "main", "policy_for"]

_SIGINT = 2

# A directory of the engine, outside what agents see: each launch of an attempt leaves its report there.
REPORTS_VARIABLE = "RUNNER_E2E_SANDBOX_REPORTS"


def entry(python: str) -> list[str]:
    """The words that start the quick entry; options and the command come after them."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from runner_e2e.sandbox.command import main; "
    return [python, "-I", "-S", "-c", code + "sys.exit(main(sys.argv[1:]))", source]


def main(
    arguments: Sequence[str],
    also_hide: Sequence[str] = (),
    *,
    origin: Origin | None = None,
    prepared: Prepared | None = None,
) -> int:
    """Runs the command that *arguments* name and returns its status, or 125 to 127 after one message."""
    try:
        request = parse_arguments(arguments)
        return execute(request, also_hide=also_hide, log=_log, origin=origin, prepared=prepared)
    except KeyboardInterrupt:  # before the launch took over the signals
        return 128 + _SIGINT
    except Exception as error:
        from runner_e2e.errors import RunnerE2EError
        from runner_e2e.sandbox.help import asks_for_help, show_help

        if asks_for_help(arguments):  # to the parser it is an unknown option
            return show_help()
        if not isinstance(error, RunnerE2EError):
            raise
        _log(f"agent_sandbox: {error}")
        return failure_status(error.exit_code)


def _log(line: str) -> None:
    os.write(2, os.fsencode(line) + b"\n")


def execute(
    request: Request,
    *,
    also_hide: Sequence[str],
    log: Callable[[str], None],
    origin: Origin | None = None,
    prepared: Prepared | None = None,
) -> int:
    """Runs the command of *request* and returns its status; raises an error of our tree when it never ran.

    *also_hide* are paths to hide where they exist, such as the CI runner's own files. *origin* is who asks for it:
    this process where none is given. *prepared* is the policy of the same request, where it was looked at before.
    """
    origin = origin or Origin()
    if prepared is None:
        prepared = prepare(policy_for(request, also_hide, origin), host=read_host())
    reports = os.environ.get(REPORTS_VARIABLE)
    files = {request.report: _open(request.report)} if request.report else {}
    begun: list[Report] = []

    def started(report: Report) -> None:
        if not request.quiet:
            for line in report.lines():
                log(line)
        if reports:
            path = os.path.join(reports, f"{time.time_ns():020d}-{os.getpid()}.json")
            files[path] = _open(path)
        begun.append(report)
        _write(report, files)

    listed = _prepare_listed(request.command[0], log)
    if listed is None:
        outcome = run(prepared, request.command, started=started, program=-1, origin=origin)
    else:
        with listed:
            outcome = run(prepared, request.command, started=started, program=listed.descriptor, origin=origin)
    last = outcome.report.last_lines()
    for line in (*last, *(() if request.quiet else outcome.report.refusals())):
        log(line)
    if last or outcome.report.asked:
        _complete(outcome.report, begun[0], files, log)
    return outcome.status


def policy_for(request: Request, also_hide: Sequence[str], origin: Origin) -> Policy:
    """The policy that *request* asks for. What it keeps from the agent is taken out of the memory of *origin*."""
    policy = policy_of(request, os.environ)
    policy = policy.replace(hide_if_present=(*policy.hide_if_present, *also_hide))
    if named := _confidential(policy):
        origin.erase(named)
    return policy


def _complete(report: Report, before: Report, files: Mapping[str, int], log: Callable[[str], None]) -> None:
    """Writes the *report* of a launch that has ended over the one *before*, which stays where the disk is full.

    The status is the command's all the same: it ran.
    """
    from runner_e2e.errors import LaunchError

    for path, descriptor in files.items():
        try:
            _write(report, {path: descriptor})
        except LaunchError as error:
            log(f"sandbox: the report {path} lacks its last words: {error.problem.why}")
            _write(before, {path: descriptor})  # over its own blocks, which it still has


def _prepare_listed(name: str, log: Callable[[str], None]) -> Artifact | None:
    """The program *name* as an artifact, where the environment brings a listing that has it."""
    if not os.environ.get(LISTING_VARIABLE):
        return None
    from runner_e2e.artifacts.listing import prepare_listed

    return prepare_listed(name, os.environ, current_directory(), log=log)


def failure_status(code: int) -> int:
    """The status for an error of our own: 126 and 127 stay, everything else is 125."""
    return code if code in {126, 127} else 125


def _confidential(policy: Policy) -> list[str]:
    """The variables that the policy names and that the process which asked for the launch still has.

    It lives as long as the agent: started by a harness that did not take the selected id away, it would show it in
    ``/proc/<pid>/environ``.
    """
    return sorted(set(policy.environment.drop).difference(DROPPED_VARIABLES) & os.environ.keys())


def _open(path: str) -> int:
    """A new or emptied file for a report. Before the launch: afterwards the agent could put a link in its place."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o644)
    except OSError as error:
        raise _unwritable(path, error) from error


def _write(report: Report, files: Mapping[str, int]) -> None:
    """Writes *report* to open files, over what they hold."""
    if not files:
        return
    import json

    content = (json.dumps(report.to_document(), indent=2) + "\n").encode()
    for path, descriptor in files.items():
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            if regular:
                os.lseek(descriptor, 0, os.SEEK_SET)
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            if regular:  # only now: a file gives up its blocks when it is cut, and a full disk does not return them
                os.ftruncate(descriptor, len(content))
        except OSError as error:
            raise _unwritable(path, error) from error


def _unwritable(path: str, error: OSError) -> Exception:
    from runner_e2e.errors import LaunchError

    why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
    return LaunchError(f"the report {path} cannot be written", why=why, fix="name a writable file")
