"""Decides from the facts of an attempt: its verdict, the class of its failure, and whether to try again.

Pure: the same facts give the same judgement. The order of the rules is their rank; the first that fits decides.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner_e2e.engine.harness_result import HarnessReport, Unusable
from runner_e2e.existence import is_directory, is_file
from runner_e2e.report.results import Failure, FailureClass, Retry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.engine.processes import Ended, NotStarted

__all__ = ["RETRIED", "judge", "retry_after"]

# A failure of these classes may not repeat; every other one would only be paid for twice.
RETRIED: Final[frozenset[FailureClass]] = frozenset({"provider_variance", "transient_infrastructure"})


def judge(
    ended: Ended, report: HarnessReport | Unusable, *, timeout: float, leaked: Iterable[str] = ()
) -> Failure | None:
    """Returns why the attempt failed, or None when it passed.

    *timeout* is the cell's, in seconds. *leaked* names the credentials whose values the harness printed.
    """
    if names := ", ".join(sorted(leaked)):
        return _failed("secret_leak", f"the harness printed the value of {names} (redacted in what is kept of it)")
    if ended.not_started:
        return _failed("permanent_infrastructure", _not_started(ended.not_started))
    if ended.supervisor_lost:
        return _failed("transient_infrastructure", "the process that supervises the harness was killed")
    if not ended.complete:
        who = ", ".join(ended.survivors) or "processes that cannot be seen"
        return _failed("cleanup_failure", f"not every process of the attempt could be ended: {who}")
    said = report if isinstance(report, HarnessReport) else None
    finished = said is not None and said.verdict == "passed" and ended.code == 0
    if ended.cancelled and not finished:
        return _failed("transient_infrastructure", f"stopped by {ended.cancelled.name} before it ended")
    if ended.timed_out:
        return _timed_out(said, timeout)
    if ended.signal:
        if said and said.failure:
            return said.failure
        cause = ", as the kernel does when memory runs out" if ended.signal == "SIGKILL" else ""
        return _failed("transient_infrastructure", f"the harness was ended by {ended.signal}{cause}")
    if isinstance(report, Unusable):
        what = f"the harness ended with status {ended.code} and its result {report.reason}"
        return _failed("permanent_infrastructure", what)
    if report.verdict == "failed":
        return report.failure or _failed("candidate_failure", "the harness reported failed without saying why")
    if ended.code != 0:
        return _failed(
            "permanent_infrastructure",
            f"the harness reported passed and ended with status {ended.code}: the two contradict each other",
        )
    return None


def retry_after(failure: Failure | None, *, attempt: int, attempts: int, cancelled: bool) -> Retry:
    """Whether a further attempt follows this one, and why (not)."""
    if failure is None:
        return Retry(allowed=False, reason="it passed")
    if cancelled:
        return Retry(allowed=False, reason="the campaign was stopped")
    if failure.failure_class not in RETRIED:
        return Retry(allowed=False, reason=f"a {failure.failure_class} is not tried again")
    if attempt >= attempts:
        return Retry(allowed=False, reason=f"attempt {attempt} of {attempts} was the last")
    return Retry(allowed=True, reason=f"a {failure.failure_class} is tried once more")


def _failed(failure_class: FailureClass, message: str) -> Failure:
    return Failure(failure_class=failure_class, message=message)


def _timed_out(said: HarnessReport | None, timeout: float) -> Failure:
    what = f"the harness did not end within {timeout:g} s"
    if said is None:
        return _failed("candidate_failure", what)
    if said.verdict == "passed":
        return _failed("cleanup_failure", f"{what}, though it had reported passed")
    if said.failure:
        return _failed(said.failure.failure_class, f"{what}; it reported: {said.failure.message}")
    return _failed("candidate_failure", what)


def _not_started(reason: NotStarted) -> str:
    """Why the kernel did not execute the harness, in the words of its author."""
    path = Path(reason.path)
    if reason.errno == errno.ENOENT:
        if is_file(path):
            return f"{path} cannot be executed: the interpreter in its first line does not exist"
        return f"{reason.path} does not exist (harness.command and harness.directory of the catalog)"
    if reason.errno == errno.EACCES:
        fix = "it is a directory" if is_directory(path) else "it is not executable (chmod +x)"
        return f"{path} cannot be executed: {fix}"
    if reason.errno == errno.ENOEXEC:
        return f"{path} cannot be executed: it is no program, and its first line names no interpreter (#!)"
    if reason.errno == errno.E2BIG:
        return f"{path} cannot be executed: its environment and arguments are too large"
    return f"{path} cannot be executed: {os.strerror(reason.errno)}"
