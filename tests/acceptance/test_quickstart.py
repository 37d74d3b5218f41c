"""The quickstart as a newcomer meets it: what it prints is true, and the snoop's loot proves both halves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def copy() -> Iterator[Path]:
    """A copy of what the quickstart needs, so that its records land elsewhere than a contributor's own.

    Not below pytest's directory: only its owner may pass that one, and as root the agent runs as another user.
    """
    with tempfile.TemporaryDirectory(prefix="quickstart-") as directory:
        place = Path(directory)
        place.chmod(0o755)
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        for name in ("examples", "scripts", "src"):
            shutil.copytree(ROOT / name, place / name, ignore=ignored)
        yield place


@pytest.fixture(scope="module")
def quickstart(copy: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(copy / "examples" / "quickstart.py")], text=True, capture_output=True, check=False
    )


def test_it_passes_and_shows_a_table(quickstart: subprocess.CompletedProcess[str]) -> None:
    assert quickstart.returncode == 0, quickstart.stdout + quickstart.stderr
    rows = re.findall(r"^cell-[0-9a-f]{16} +(\S+) +(\w+) .* (\d)$", quickstart.stdout, re.MULTILINE)
    assert rows == [
        ("first-steps.writer.walled.write-greeting", "passed", "1"),
        ("first-steps.writer.walled.sort-names", "passed", "1"),
        ("first-steps.writer.walled.survive-a-busy-provider", "passed", "2"),
    ]


def test_the_kernels_record_of_the_walled_attempt_is_clean(
    quickstart: subprocess.CompletedProcess[str], copy: Path
) -> None:
    shown = re.search(r"(\d+) programs started, 0 with the id on their command line", quickstart.stdout)
    assert shown, quickstart.stdout
    records = copy.glob(".runner-e2e/quickstart/2/*/cell-*/attempt-1/result.json")
    audits = [json.loads(record.read_text())["audit"] for record in records]
    assert [audit["verdict"] for audit in audits] == ["clean", "clean"]
    assert int(shown[1]) in [audit["execs"] for audit in audits]


def test_the_snoop_finds_the_case_without_the_sandbox_and_nothing_behind_it(
    quickstart: subprocess.CompletedProcess[str], copy: Path
) -> None:
    assert quickstart.returncode == 0
    found = {}
    for record in copy.glob(".runner-e2e/quickstart/2/*/cell-*/attempt-1/result.json"):
        kinds = json.loads((record.parent / "private" / "findings.json").read_text())
        environment = json.loads(record.read_text())["id"].split(".")[2]
        found[environment] = {kind for kind, sources in kinds.items() if sources["named_the_case"]}
    assert found["open"] >= {
        "process environments",
        "sessions of other runs",
        "run logs",
        "the product's database",
        "the CI job's event file",
        "the CI job's step scripts",
    }
    assert found["walled"] == set()


def test_the_agent_behind_the_sandbox_still_reads_what_is_its_own(
    quickstart: subprocess.CompletedProcess[str], copy: Path
) -> None:
    assert quickstart.returncode == 0
    for report in copy.glob(".runner-e2e/quickstart/2/*/cell-*/attempt-1/private/findings.json"):
        assert json.loads(report.read_text())["its own session"]["looked_at"] == 1
