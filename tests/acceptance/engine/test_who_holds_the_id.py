"""At the moment an agent runs, every process of the machine is looked at: the harness alone holds the id.

The agent is real: it is started by the harness through ``runner-e2e sandbox exec`` and says when it runs.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "src"
PROGRAM = (
    f'{sys.executable} -I -c \'import sys; sys.path.insert(0, "{SOURCE}"); '
    "from runner_e2e.cli import main; sys.exit(main())'"
)
VARIABLE = "PAPERCLIP_RUNNER_E2E_SELECTED_ID"

CATALOG = """\
version: 1
harness: {{command: [python3, harness.py]}}
retries: 0
profiles: {{scripted: {{}}}}
environments: {{local: {{}}}}
suites:
  demo:
    billable: false
    profiles: [scripted]
    environments: [local]
    timeout: 60s
    cases: {{{case}: {{}}, other: {{}}}}
"""

# Reads its cell, takes the variable away as a harness should, and starts an agent that waits until it was looked at.
HARNESS = """\
import json, os, subprocess
cell = os.environ.pop("PAPERCLIP_RUNNER_E2E_SELECTED_ID")
instance = os.environ["RUNNER_E2E_INSTANCE"]
agent = "touch running; while [ ! -e looked ]; do sleep 0.05; done; tr '\\\\0' '\\\\n' < /proc/self/environ > seen"
done = subprocess.run(["runner-e2e", "sandbox", "exec", "--quiet", "--", "sh", "-c", agent], cwd=instance)
verdict = {"schema": "runner-e2e.harness-result/v1", "verdict": "passed"}
if done.returncode:
    verdict |= {"verdict": "failed", "failure": {"class": "candidate_failure", "message": f"status {done.returncode}"}}
with open(os.environ["RUNNER_E2E_RESULT"], "w") as file:
    json.dump(verdict, file)
"""


class Holder(NamedTuple):
    """A process whose environment or command line shows a text."""

    pid: int
    file: str
    command: str


def holders(text: str) -> list[Holder]:
    """Looks at every process, as another process of the same user can."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for file in ("environ", "cmdline"):
            try:
                content = (process / file).read_bytes()
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if text.encode() in content:
                found.append(Holder(int(process.name), file, command))
    return found


@pytest.fixture
def case() -> str:
    return f"canary-{secrets.token_hex(8)}"


@pytest.fixture
def target(tmp_path: Path, case: str) -> Path:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(CATALOG.format(case=case))
    (tmp_path / "harness.py").write_text(HARNESS)
    return tmp_path


def look(process: subprocess.Popen[str], target: Path, text: str) -> tuple[list[Holder], int, str]:
    """What is seen when the agent runs, then the run's status and output."""
    limit = time.monotonic() + 60
    running: list[Path] = []
    while not running and time.monotonic() < limit and process.poll() is None:
        running = list(target.glob(".runner-e2e/*/*/attempt-1/instance/running"))
        time.sleep(0.02)
    found = holders(text)
    for path in running:
        (path.parent / "looked").touch()
    stdout, stderr = process.communicate(timeout=60)
    assert running, stdout + stderr
    return found, process.returncode, stdout + stderr


@pytest.mark.serial
def test_a_cell_from_the_variable(target: Path, case: str) -> None:
    """As a step of a job does it: a shell that becomes the command."""
    cell = f"demo.scripted.local.{case}"
    environ = {"PATH": os.environ["PATH"], "HOME": str(target), VARIABLE: cell, "INPUT_SELECTED-ID": cell}
    process = subprocess.Popen(
        ["bash", "-e", "-c", f"exec {PROGRAM} run"],
        cwd=target,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    found, status, shown = look(process, target, case)
    assert status == 0, shown
    assert [(holder.file, holder.command.split()[-1]) for holder in found] == [("environ", "harness.py")]
    assert case not in shown
    (seen,) = target.glob(".runner-e2e/*/*/attempt-1/instance/seen")
    assert case not in seen.read_text()


@pytest.mark.serial
def test_selected_cells_of_a_person(target: Path, case: str) -> None:
    """The command line that a person typed is gone from the process that runs; the shell itself was replaced."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(target)}
    (target / "case").write_text(case)
    process = subprocess.Popen(
        ["bash", "-c", f'exec {PROGRAM} run --local --case "$(cat case)"'],
        cwd=target,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    found, status, shown = look(process, target, case)
    assert status == 0, shown
    assert [(holder.file, holder.command.split()[-1]) for holder in found] == [("environ", "harness.py")]
    assert case not in shown


@pytest.mark.serial
def test_the_look_finds_an_id_on_a_command_line(target: Path, case: str) -> None:
    """The check can fail: a harness that hands the id on as an argument is found."""
    (target / "harness.py").write_text(HARNESS.replace('"sh", "-c", agent]', '"sh", "-c", agent, cell]'))
    environ = {"PATH": os.environ["PATH"], "HOME": str(target), VARIABLE: f"demo.scripted.local.{case}"}
    process = subprocess.Popen(
        ["bash", "-c", f"exec {PROGRAM} run"],
        cwd=target,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    found, _, _ = look(process, target, case)
    assert "cmdline" in {holder.file for holder in found}
