"""Attempts under an audit: what their records say, with real harnesses and the real strace."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from tests.engine.catalogs import catalog, cells
from tests.engine.test_local import PASS, Bench

from runner_e2e.engine import audited
from runner_e2e.engine.audited import read_audit
from runner_e2e.engine.campaign_plan import RunOptions
from runner_e2e.engine.local import run_campaign
from runner_e2e.errors import LaunchError, UsageError
from runner_e2e.report.results import RESULT_FILE, read_result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.report.results import Result


def run(tmp_path: Path, script: str, *, audit: bool = True) -> Result:
    """The record of the one attempt of one cell whose harness is a shell script."""
    bench = Bench(tmp_path)
    bench.write(script)
    of = catalog()
    options = RunOptions(target=bench.root / "target", output=bench.root / "output", environ=bench.environ, audit=audit)
    outcome = run_campaign(of, cells(of)[:1], options, bench.recorder)
    ((result, *_),) = outcome.results
    planned = outcome.campaign.cells[0]
    assert read_result(planned.directory / "attempt-1" / RESULT_FILE) == result
    return result


def summary(result: Result) -> Mapping[str, object]:
    assert result.audit is not None
    return result.audit


def test_a_clean_attempt(tmp_path: Path) -> None:
    result = run(tmp_path, f"unset PAPERCLIP_RUNNER_E2E_SELECTED_ID; /bin/true; {PASS}")
    assert result.verdict == "passed", result.failure
    found = summary(result)
    assert (found["verdict"], found["argv_leaks"], found["gaps"]) == ("clean", 0, [])
    assert int(str(found["execs"])) >= 2
    assert found["environ_holders"]  # the harness itself
    assert result.id not in json.dumps(found)


def test_an_id_on_a_command_line(tmp_path: Path) -> None:
    result = run(tmp_path, f'/bin/echo "$PAPERCLIP_RUNNER_E2E_SELECTED_ID" > /dev/null; {PASS}')
    assert result.verdict == "passed", result.failure
    assert (summary(result)["verdict"], summary(result)["argv_leaks"]) == ("leak", 1)
    assert result.id not in json.dumps(result.audit)


def test_a_harness_with_a_server_of_launches_leaves_nothing_and_is_seen_whole(tmp_path: Path) -> None:
    launch = f'{sys.executable} -I -S "$RUNNER_E2E_AGENT_SANDBOX" -- /bin/true marker'
    served = shlex.quote(f"{launch}; {launch}; {PASS}")
    result = run(
        tmp_path, f"unset PAPERCLIP_RUNNER_E2E_SELECTED_ID; exec runner-e2e sandbox serve -- /bin/sh -c {served}"
    )
    assert result.verdict == "passed", result.failure
    found = summary(result)
    assert (found["verdict"], found["gaps"], result.left_processes) == ("clean", [], 0)
    report = json.loads(next(tmp_path.rglob(audited.REPORT)).read_text())
    assert report["counts"]["execs"] >= 8


@pytest.mark.parametrize(("script", "code", "signal"), [("exit 7", 7, None), ("kill -KILL $$", None, "SIGKILL")])
def test_the_end_of_the_harness_is_its_own(tmp_path: Path, script: str, code: int | None, signal: str | None) -> None:
    result = run(tmp_path, script)
    assert (result.exit.code, result.exit.signal) == (code, signal)


def test_without_asking_the_record_says_that_nothing_was_audited(tmp_path: Path) -> None:
    result = run(tmp_path, PASS, audit=False)
    assert result.audit == {"verdict": "off", "why": "not asked for"}
    assert result.probe == {"why_not": "not asked for"}


def test_a_machine_that_cannot_audit_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LaunchError("strace is not installed", fix="apt-get install strace")

    monkeypatch.setattr(audited, "audit", fail)
    with pytest.raises(UsageError, match="--audit cannot be used on this machine: strace is not installed") as caught:
        run(tmp_path, f"touch ../started; {PASS}")
    assert caught.value.problem.fix == "apt-get install strace"
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("content", [None, "", "{}", '{"verdict": "clean", "counts": {"execs": -1}}', "[1]"])
def test_a_report_that_is_missing_or_damaged_is_incomplete(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "audit.json"
    if content is not None:
        path.write_text(content)
    found = read_audit(path)
    assert found["verdict"] == "incomplete"
    assert found["gaps"]
