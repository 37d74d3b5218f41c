"""The judgement of an attempt, as a table: facts in, class of failure out."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from runner_e2e.engine.failures import RETRIED, judge, retry_after
from runner_e2e.engine.harness_result import HarnessReport, Unusable
from runner_e2e.engine.processes import Ended, NotStarted
from runner_e2e.report.billing import Usage
from runner_e2e.report.results import FAILURE_CLASSES, Failure

if TYPE_CHECKING:
    from pathlib import Path

PASSED = HarnessReport(verdict="passed", failure=None, usage=Usage(), notes=())
FAILED = HarnessReport(verdict="failed", failure=None, usage=Usage(), notes=())
FLAKY = HarnessReport(
    verdict="failed",
    failure=Failure(failure_class="provider_variance", message="the model was overloaded"),
    usage=Usage(),
    notes=(),
)
MISSING = Unusable(reason="was not written")


def ended(**facts: Any) -> Ended:
    return Ended(**{"seconds": 1.0, **facts})


@pytest.mark.parametrize(
    ("facts", "report", "expected", "message"),
    [
        ({"code": 0}, PASSED, None, ""),
        ({"code": 0}, FAILED, "candidate_failure", "without saying why"),
        ({"code": 1}, FAILED, "candidate_failure", "without saying why"),
        ({"code": 1}, FLAKY, "provider_variance", "the model was overloaded"),
        ({"code": 3}, PASSED, "permanent_infrastructure", "contradict"),
        ({"code": 0}, MISSING, "permanent_infrastructure", "status 0 and its result was not written"),
        ({"code": 7}, Unusable(reason="is empty"), "permanent_infrastructure", "status 7 and its result is empty"),
        ({"signal": "SIGKILL"}, MISSING, "transient_infrastructure", "SIGKILL, as the kernel does"),
        ({"signal": "SIGSEGV"}, PASSED, "transient_infrastructure", "ended by SIGSEGV"),
        ({"signal": "SIGSEGV"}, FAILED, "transient_infrastructure", "ended by SIGSEGV"),
        ({"signal": "SIGSEGV"}, FLAKY, "provider_variance", "overloaded"),
        ({"signal": "SIGKILL", "timed_out": True}, MISSING, "candidate_failure", "did not end within 90 s"),
        ({"code": 0, "timed_out": True}, PASSED, "cleanup_failure", "though it had reported passed"),
        ({"code": 0, "timed_out": True}, FAILED, "candidate_failure", "did not end within 90 s"),
        ({"code": 0, "timed_out": True}, FLAKY, "provider_variance", "it reported: the model was overloaded"),
        ({"signal": "SIGTERM", "cancelled": signal.SIGINT}, MISSING, "transient_infrastructure", "stopped by SIGINT"),
        ({"code": 1, "cancelled": signal.SIGTERM}, FAILED, "transient_infrastructure", "stopped by SIGTERM"),
        ({"code": 0, "cancelled": signal.SIGINT}, PASSED, None, ""),
        ({"supervisor_lost": True, "complete": False}, MISSING, "transient_infrastructure", "supervises"),
        ({"code": 0, "complete": False, "survivors": ("7 (x)",)}, PASSED, "cleanup_failure", "7 (x)"),
        ({"code": 0, "complete": False}, PASSED, "cleanup_failure", "cannot be seen"),
        ({"not_started": NotStarted(errno=2, path="/no/x")}, MISSING, "permanent_infrastructure", "/no/x does not"),
        ({"not_started": NotStarted(errno=7, path="/x")}, MISSING, "permanent_infrastructure", "too large"),
        ({"not_started": NotStarted(errno=8, path="/x")}, MISSING, "permanent_infrastructure", "names no interpreter"),
        ({"not_started": NotStarted(errno=12, path="/x")}, MISSING, "permanent_infrastructure", "Cannot allocate"),
    ],
)
def test_judgement(facts: dict[str, Any], report: HarnessReport | Unusable, expected: str, message: str) -> None:
    failure = judge(ended(**facts), report, timeout=90.0)
    assert (failure and failure.failure_class) == expected
    assert message in (failure.message if failure else "")


def test_a_shown_secret_outranks_everything() -> None:
    failure = judge(ended(code=0), PASSED, timeout=1.0, leaked=["KEY_B", "KEY_A"])
    assert failure is not None
    assert failure.failure_class == "secret_leak"
    assert "KEY_A, KEY_B" in failure.message


def test_a_missing_interpreter_is_told_apart_from_a_missing_file(tmp_path: Path) -> None:
    script = tmp_path / "harness"
    script.write_text("#!/no/interpreter\n")
    failure = judge(ended(not_started=NotStarted(errno=2, path=str(script))), MISSING, timeout=1.0)
    assert failure is not None
    assert "the interpreter in its first line does not exist" in failure.message


@pytest.mark.parametrize(("directory", "message"), [(False, "chmod +x"), (True, "it is a directory")])
def test_not_executable(tmp_path: Path, directory: bool, message: str) -> None:
    path = tmp_path / "harness"
    path.mkdir() if directory else path.touch()
    failure = judge(ended(not_started=NotStarted(errno=13, path=str(path))), MISSING, timeout=1.0)
    assert failure is not None
    assert message in failure.message


@pytest.mark.parametrize("failure_class", FAILURE_CLASSES)
def test_only_what_may_not_repeat_is_tried_again_and_once(failure_class: Any) -> None:
    failure = Failure(failure_class=failure_class, message="x")
    first = retry_after(failure, attempt=1, attempts=2, cancelled=False)
    assert first.allowed is (failure_class in {"provider_variance", "transient_infrastructure"})
    assert first.allowed is (failure_class in RETRIED)
    assert not retry_after(failure, attempt=2, attempts=2, cancelled=False).allowed
    assert not retry_after(failure, attempt=1, attempts=1, cancelled=False).allowed
    assert not retry_after(failure, attempt=1, attempts=2, cancelled=True).allowed


def test_what_passed_is_not_tried_again() -> None:
    assert not retry_after(None, attempt=1, attempts=2, cancelled=False).allowed
