"""The probe of the command line, and that it notices a sandbox that does not hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.clearing import remove_tree

from runner_e2e.cli.group import runner_e2e
from runner_e2e.sandbox import fixture, probe
from runner_e2e.sandbox.layouts import read_layout

NAMED_DENIED = {
    "run:otherDurableSession",
    "run:durableSessionListing",
    "run:otherRunnerState",
    "run:controlPlaneState",
    "run:otherOpencodeSession",
    "run:otherRunLog",
    "run:databaseWal",
    "run:secrets",
    "run:otherProviderTrace",
    "run:harnessEnviron",
}
NAMED_USABLE = {"run:ownDurableSession", "run:ownOpencodeSession", "run:acpxRuntime", "run:ownProviderTrace"}


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(
        runner_e2e, ["sandbox", "probe", *arguments], catch_exceptions=False, standalone_mode=False
    )


def test_the_probe_holds_and_is_appended_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("started\n")
    done = invoke("--json", "--ci", "--log", str(log))
    document = json.loads(done.output)
    assert done.return_value == 0
    assert document["schema"] == "runner-e2e.sandbox-probe/v1"
    assert document["failures"] == []
    checks = {check["name"]: check for check in document["checks"]}
    assert {name for name in NAMED_DENIED if checks[name]["inside"] == "succeeded"} == set()
    assert {name for name in NAMED_USABLE if checks[name]["inside"] == "succeeded"} == NAMED_USABLE
    assert "run:harnessCmdline" in checks
    first, second = log.read_text().splitlines()
    assert first == "started"
    assert json.loads(second)["failures"] == []


def test_explain_says_what_was_tried_and_what_the_kernel_answered() -> None:
    output = invoke("--explain", "--layout", "paperclip").output
    assert "ok: run:otherRunLog: Read another run's file.\n    outside: succeeded; inside: E" in output
    assert "ok: read: Read a hidden file by its path.\n    outside: succeeded; inside: E" in output
    assert output.endswith("failures: none\n")


def broken_entry(python: str) -> list[str]:
    """An entry that runs the command without any sandbox, and says that it was all there."""
    code = (
        "import json, os, subprocess, sys\n"
        "at = sys.argv.index('--')\n"
        "report = sys.argv[sys.argv.index('--report') + 1]\n"
        "names = json.loads(sys.argv[1])\n"
        "layers = [{'layer': name, 'state': 'active', 'why': ''} for name in names]\n"
        "open(report, 'w').write(json.dumps({'layers': layers}))\n"
        "sys.exit(subprocess.run(sys.argv[at + 1:], close_fds=False).returncode)\n"
    )
    return [python, "-I", "-S", "-c", code, json.dumps(list(probe.OPEN_WITHOUT))]


def test_a_sandbox_that_does_nothing_fails_every_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "entry", broken_entry)
    result = probe.run_probe(read_layout("paperclip"), python=sys.executable)
    applicable = {check.name for check in result.checks if check.verdict != "not-applicable"}
    assert set(result.failures) == applicable - NAMED_USABLE


def test_an_attempt_that_fails_outside_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = fixture.World.trials
    calls: list[int] = []

    def blunt(self: fixture.World, *arguments: Any, **options: Any) -> dict[str, Any]:
        found = trials(self, *arguments, **options)
        if not calls:
            found["read"] = type(found["read"])(name="read", outcome="denied", detail="EACCES")
        calls.append(1)
        return found

    monkeypatch.setattr(fixture.World, "trials", blunt)
    result = probe.run_probe(read_layout("generic"), python=sys.executable)
    assert result.failures == ("read",)


def test_on_ci_a_failure_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "entry", broken_entry)
    assert invoke("--layout", "generic").return_value == 0
    assert invoke("--layout", "generic", "--ci").return_value == 1


def test_an_interrupt_ends_the_probe_and_leaves_nothing() -> None:
    """In whichever phase it comes: while a world is made, while attempts are made outside, and inside."""
    words = [sys.executable, "-m", "runner_e2e", "sandbox", "probe"]
    for sign in ("*/hidden", "*/targets.json", "*/report.json"):
        place = Path(tempfile.mkdtemp())  # short: a socket is made in it
        process = subprocess.Popen(
            words,
            env={**os.environ, "TMPDIR": str(place)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not list(place.glob(sign)) and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=120)
        # 125: a process of the probe got the signal a moment before the probe itself, and was missed.
        assert process.returncode in {0, 125, 130, -signal.SIGINT}
        assert process.returncode == 0 or list(place.iterdir()) == []
        assert "stand_in" not in error
        remove_tree(place)


def test_the_probe_stops_when_it_is_asked_to() -> None:
    read, write = os.pipe()
    os.write(write, b"!")
    with pytest.raises(probe.StoppedError):
        probe.run_probe(read_layout("generic"), stop=read)
    os.close(read)
    os.close(write)
