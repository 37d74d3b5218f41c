"""Before the first paid cell the sandbox is tried, and in a job a failure of it stops everything."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.engine.catalogs import catalog, cells
from tests.engine.test_local import PASS, Bench

from runner_e2e.engine import walls
from runner_e2e.engine.campaign_plan import RunOptions
from runner_e2e.engine.cancellation import Cancellation
from runner_e2e.engine.local import run_campaign
from runner_e2e.errors import LaunchError, RefusedError
from runner_e2e.sandbox.probe import Check, ProbeResult

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from runner_e2e.engine.local import CampaignOutcome

BROKEN = Check(
    name="read", tries="reads", expected="denied", outside="succeeded", inside="succeeded", verdict="failure"
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.write(f"touch ../started; {PASS}")
    return made


def run(
    bench: Bench,
    probe: Literal["insist", "warn", "off"],
    *,
    billable: bool = True,
    cancellation: Cancellation | None = None,
) -> CampaignOutcome:
    of = catalog()
    suites = {name: replace(suite, billable=billable) for name, suite in of.suites.items()}
    of = replace(of, suites=suites)
    options = RunOptions(target=bench.root / "target", output=bench.root / "output", environ=bench.environ, probe=probe)
    return run_campaign(of, cells(of), options, bench.recorder, cancellation)


def give(monkeypatch: pytest.MonkeyPatch, *checks: Check) -> None:
    result = ProbeResult(layout="generic", seconds=1.0, report={}, checks=checks)
    monkeypatch.setattr(walls, "run_probe", lambda _layout, **_options: result)


def test_a_real_probe_lets_a_paid_cell_start_and_is_recorded(bench: Bench) -> None:
    outcome = run(bench, "insist")
    assert outcome.exit_code == 0
    (line,) = (outcome.campaign.directory / walls.SERVER_LOG).read_text().splitlines()
    assert json.loads(line)["failures"] == []
    assert json.loads(line)["checks"]


def test_a_wall_that_does_not_hold_stops_the_campaign(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, BROKEN)
    with pytest.raises(RefusedError, match="does not hold on this host") as caught:
        run(bench, "insist")
    assert "read" in caught.value.problem.why
    assert not (bench.root / "started").exists()


def test_a_host_without_a_sandbox_stops_it_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_layout: object, **_options: object) -> ProbeResult:
        raise LaunchError("no Landlock here")

    monkeypatch.setattr(walls, "run_probe", fail)
    with pytest.raises(RefusedError, match="cannot be proven"):
        run(bench, "insist")
    assert not (bench.root / "started").exists()


def test_elsewhere_it_is_a_warning(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, BROKEN)
    assert run(bench, "warn").exit_code == 0
    assert any("these checks failed: read" in warning for warning in bench.recorder.warnings)


def test_cells_that_cost_nothing_are_not_held_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, BROKEN)
    assert run(bench, "insist", billable=False).exit_code == 0
    assert not bench.recorder.warnings


def test_asked_to_stop_the_probe_ends_at_once_and_nothing_starts(bench: Bench) -> None:
    cancellation = Cancellation()
    cancellation.request()
    outcome = run(bench, "insist", cancellation=cancellation)
    cancellation.close()
    assert outcome.stopped
    assert not (bench.root / "started").exists()
    assert not (outcome.campaign.directory / walls.SERVER_LOG).exists()
