"""Harnesses that the catalog lists as artifacts: they run only with their content, and the record says how."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from tests.engine.test_local import PASS, Bench, only

from runner_e2e.artifacts.listing import Listing
from runner_e2e.cells.model import Artifact, Artifacts
from runner_e2e.engine.listed_artifacts import listing_of

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.report.results import Result


@pytest.fixture(name="bench")
def _bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def run(bench: Bench, script: str, artifacts: Artifacts) -> Result:
    return only(bench.run(script, artifacts=artifacts))


def listed(bench: Bench, script: str, **more: str) -> Artifacts:
    """The harness as it will be written."""
    bench.write(script)
    digest = hashlib.sha256((bench.root / "target" / "harness").read_bytes()).hexdigest()
    return Artifacts(files=(Artifact(path="harness", sha256=digest),), **more)


def test_a_listed_harness_runs_from_a_snapshot(bench: Bench) -> None:
    script = f'{PASS}\nprintf "%s" "$0" > "$RUNNER_E2E_INSTANCE/name"'
    result = run(bench, script, listed(bench, script))
    assert result.failure is None
    (report,) = result.artifacts
    assert report["how"] == "sealed-snapshot"
    assert report["path"] == str(bench.root / "target" / "harness")
    assert report["reason"] == {"code": "no-root", "text": "no trusted launch root is set"}
    (name,) = bench.root.rglob("instance/name")
    assert name.read_text().startswith("/proc/self/fd/")


def test_the_record_says_why_a_root_was_not_used(bench: Bench) -> None:
    artifacts = listed(bench, PASS, trusted_launch_root=str(bench.root))
    result = run(bench, PASS, artifacts)
    assert result.failure is None
    assert result.artifacts[0]["reason"] == {"code": "root-unused", "text": "the trusted launch root is not used"}
    (log,) = bench.root.rglob("harness.log")
    assert "warning: the trusted launch root" in log.read_text()


def test_a_harness_with_another_content_never_runs_and_costs_nothing(bench: Bench) -> None:
    artifacts = Artifacts(files=(Artifact(path="harness", sha256="1" * 64),))
    result = run(bench, f"{PASS}\ntouch {bench.root}/ran", artifacts)
    assert result.failure
    assert result.failure.failure_class == "permanent_infrastructure"
    assert "the harness never ran" in result.failure.message
    assert "its SHA-256 is" in result.failure.message
    assert result.usage.cost_usd == 0
    assert not (bench.root / "ran").exists()
    assert [report["how"] for report in result.artifacts] == ["refused"]


def test_a_harness_that_ends_with_125_itself_is_judged_as_always(bench: Bench) -> None:
    script = "exit 125"
    result = run(bench, script, listed(bench, script))
    assert result.failure
    assert "the harness ended with status 125" in result.failure.message
    assert result.artifacts[0]["how"] == "sealed-snapshot"


def test_a_harness_that_is_not_listed_runs_as_always(bench: Bench) -> None:
    result = run(bench, PASS, Artifacts(files=(Artifact(path="/bin/true", sha256="1" * 64),)))
    assert result.failure is None
    assert result.artifacts == ()


def test_paths_are_compared_by_where_they_lead(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    files = (Artifact(path="link", sha256="a" * 64), Artifact(path="/absent/x", sha256="b" * 64))
    listing = listing_of(Artifacts(files=files), target=tmp_path)
    assert listing == Listing(files={str(tmp_path / "real"): "a" * 64, "/absent/x": "b" * 64})
    assert listing.find(str(tmp_path / "link")) == (str(tmp_path / "real"), "a" * 64)
    assert listing.find("/bin/sh") is None
