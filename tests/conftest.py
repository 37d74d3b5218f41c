"""What all tests share: on CI nothing is skipped, and no test sees the CI job that it runs in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Generator

ON_CI = bool(os.environ.get("CI"))

# Tests must behave the same in a terminal and inside a job.
for _name in [name for name in os.environ if name.startswith(("GITHUB_", "RUNNER_", "INPUT_"))]:
    del os.environ[_name]
os.environ.pop("CI", None)
os.environ.pop("FORCE_COLOR", None)
os.environ["NO_COLOR"] = "1"
# Git does the same whatever somebody has configured, and within a hook of another repository. So do new files.
for _name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[_name]
os.environ.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1")
os.umask(0o022)

# A busy machine is no failure, and no example is kept from one run for the next.
# The same examples in every run: a change is judged by what it changed. `--hypothesis-profile=explore` tries new ones.
slow = [HealthCheck.too_slow]
settings.register_profile("tests", deadline=None, database=None, suppress_health_check=slow, derandomize=True)
settings.register_profile("explore", deadline=None, suppress_health_check=slow, max_examples=1000)
settings.load_profile("tests")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """On CI a skipped test is a failure: a wall that was not tried is not proven."""
    del item, call
    report = yield
    if ON_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped on CI, where nothing may be skipped: {reason}"
    return report
