"""Campaigns as a person pays for them: real processes at a prompt, against a double of GitHub whose runs are played."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.github_double.clock import RealClock
from tests.github_double.player import Player
from tests.github_double.server import Server
from tests.github_double.state import State

from runner_e2e.cells.catalog import read_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
KEY = bytes(range(100, 132))
PROGRAM = [sys.executable, "-m", "runner_e2e", "dispatch"]
LONGEST = 120.0
CATALOG = """\
harness: { command: [python3, harness.py] }
credentials: { OPENAI_API_KEY: }
profiles: { codex: { credential: OPENAI_API_KEY } }
environments: { local: }
suites:
  chat: { profiles: [codex], environments: [local], cases: [hello, goodbye, thanks], expected-cost: 0.5 }
"""


@dataclass
class Scene:
    """A repository that is ready, and a person's machine. While *playing* is set the runs go on."""

    double: Server
    player: Player
    directory: Path
    environ: dict[str, str]
    playing: threading.Event = field(default_factory=threading.Event)

    def command(self, *words: str) -> list[str]:
        """The arguments of a process."""
        return [*PROGRAM, *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A process from its start to its end."""
        return subprocess.run(
            self.command(*words), cwd=self.directory, env=self.environ, text=True, capture_output=True,
            check=False, timeout=LONGEST,
        )  # fmt: skip

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A process that goes on; its standard error can be read."""
        return subprocess.Popen(
            self.command(*words), cwd=self.directory, env=self.environ, text=True, stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def plan(self) -> str:
        """A plan of all cells in ``campaign.json``; the campaign's id."""
        done = self.run("plan", "--all", "--repo", "octo/evals", "--max-cost", "5", "-o", "campaign.json", "--json")
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["campaign"])

    def state(self, campaign: str) -> dict[str, object]:
        """What the ledger says."""
        found: dict[str, object] = json.loads(self.run("status", campaign, "--json").stdout)
        return found

    @property
    def paid(self) -> Counter[str]:
        """How often each cell was paid for, by the double's own count."""
        return Counter(each.handle for each in self.player.payments)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(CATALOG)
    with Server(State(clock=RealClock()), validating=False) as double:
        state = double.state
        workflow = state.add_workflow(
            ".github/workflows/paid-campaign.yml", inputs={"nonce": False, "selection": False, "target": False}
        )
        workflow.run_name = "Paid campaign ${{ inputs.nonce }}"
        template = (ROOT / "workflows-templates" / "paid-campaign.yml").read_bytes()
        state.write_file(workflow.path, "main", template, "workflow", None)
        player = Player(double, read_catalog(tmp_path / ".github" / "runner-e2e.yml"), keys=[KEY])
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "RUNNER_"))}
        environ = {
            **{name: value for name, value in kept.items() if name not in {"CI", "NO_COLOR", "COLUMNS", "LINES"}},
            "PYTHONPATH": str(ROOT / "src"),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "RUNNER_E2E_CAMPAIGN_KEY": KEY.hex(),
            "RUNNER_E2E_LEDGER": str(tmp_path / "ledger.sqlite"),
            "GH_TOKEN": "token-of-alice",
            "GITHUB_API_URL": double.url,
        }
        made = Scene(double, player, tmp_path, environ)
        made.playing.set()
        ended = threading.Event()
        thread = threading.Thread(target=_play, args=(made, ended))
        thread.start()
        try:
            yield made
        finally:
            ended.set()
            thread.join()


def step(scene: Scene, **changes: str) -> subprocess.CompletedProcess[str]:
    """``command: dispatch`` as the runner starts it, once `setup` has made the environment."""
    summary = scene.directory / "summary"
    summary.write_text("")
    environ = {
        **scene.environ,
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_E2E_INPUT_CAMPAIGN": "campaign.json",
        "RUNNER_E2E_INPUT_GITHUB_TOKEN": scene.environ["GH_TOKEN"],
        **changes,
    }
    del environ["GH_TOKEN"]
    return subprocess.run(
        [sys.executable, "-I", str(ROOT / "scripts" / "dispatch.py")], cwd=scene.directory, env=environ, text=True,
        capture_output=True, check=False, timeout=LONGEST,
    )  # fmt: skip


def test_a_step_of_the_action_pays_for_a_planned_campaign(scene: Scene) -> None:
    campaign = scene.plan()
    done = step(scene)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(scene.paid.values()) == [1, 1, 1]
    assert campaign in (scene.directory / "summary").read_text()
    assert step(scene).returncode == 0
    assert sorted(scene.paid.values()) == [1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"RUNNER_E2E_INPUT_CAMPAIGN": ""}, "the input `campaign` is missing"),
        ({"RUNNER_E2E_INPUT_CAMPAIGN": "none.json"}, "none.json"),
        ({"RUNNER_E2E_CAMPAIGN_KEY": ""}, "RUNNER_E2E_CAMPAIGN_KEY is not set"),
        ({"RUNNER_E2E_INPUT_GITHUB_TOKEN": ""}, "there is no token for GitHub's API"),
    ],
)
def test_a_step_that_lacks_something_pays_nothing(scene: Scene, changes: dict[str, str], said: str) -> None:
    scene.plan()
    done = step(scene, **changes)
    assert done.returncode in {2, 3}
    assert done.stdout.startswith("::error title=runner-e2e dispatch")
    assert said in done.stdout
    assert not scene.paid


def _play(scene: Scene, ended: threading.Event) -> None:
    while not ended.wait(0.005):
        if scene.playing.is_set():
            scene.player.turn()


class Terminal:
    """A process on a terminal of so many columns, and everything that it wrote."""

    def __init__(self, scene: Scene, *words: str, columns: int = 80, rows: int = 30, **environ: str) -> None:
        self.text = ""
        self._number, self._descriptor = pty.fork()
        if not self._number:
            with contextlib.suppress(BaseException):
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.chdir(scene.directory)
                command = scene.command(*words)
                os.execve(command[0], command, {**scene.environ, **environ})
            os._exit(125)

    def until(self, pattern: str) -> str:
        """Reads until *pattern* was written."""
        end = time.monotonic() + LONGEST
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end, f"no {pattern!r} in …{self.text[-800:]!r}"
            assert self._read(), f"it ended without {pattern!r}: …{self.text[-800:]!r}"
        return found[0]

    def type(self, text: str) -> None:
        """Types *text*."""
        os.write(self._descriptor, text.encode())

    def end(self) -> int:
        """Reads to the end; the status."""
        end = time.monotonic() + LONGEST
        while self._read():
            assert time.monotonic() < end, self.text[-800:]
        os.close(self._descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self._number, 0)[1])

    def _read(self) -> bool:
        """Whether anything more may come."""
        if not select.select([self._descriptor], [], [], 0.5)[0]:
            return True
        try:
            data = os.read(self._descriptor, 65_536)
        except OSError:  # the other end was closed
            return False
        self.text += data.decode(errors="replace")
        return bool(data)


def test_a_campaign_is_planned_started_watched_and_its_results_are_shown(scene: Scene) -> None:
    campaign = scene.plan()
    assert scene.double.requests("POST") == [], "a plan changes nothing"
    started = scene.run("start", "campaign.json", "--yes", "--detach")
    assert started.returncode == 5, started.stderr
    assert f"\n          runner-e2e dispatch watch {campaign}\n" in started.stdout
    watched = scene.run("watch", campaign, "--poll", "1")
    assert watched.returncode == 0, watched.stderr
    assert "cells     3 of 3 passed" in watched.stdout
    assert "money     $1.50 spent, $0.00 reserved, cap $5.00" in watched.stdout
    assert set(scene.paid.values()) == {1}
    assert len(scene.paid) == 3
    results = scene.run("results", campaign[:20], "--ids", "--json")
    cells = json.loads(results.stdout)["cells"]
    assert results.returncode == 0
    assert {cell["handle"] for cell in cells} == set(scene.paid)
    assert {cell["id"] for cell in cells} == {f"chat.codex.local.{case}" for case in ("hello", "goodbye", "thanks")}
    assert [(cell["verdict"], cell["cost_usd"]) for cell in cells] == [("passed", 0.5)] * 3
    again = scene.run("start", "campaign.json")
    assert (again.returncode, "3 of 3 passed" in again.stdout) == (0, True), (
        "nothing is left to pay, so nobody is asked"
    )
    assert len(scene.double.requests("POST", "/dispatches")) == 1


def test_a_client_that_is_killed_pays_nothing_twice(scene: Scene) -> None:
    scene.playing.clear()
    campaign = scene.plan()
    with scene.begin("start", "campaign.json", "--yes", "--poll", "1") as process:
        assert process.stderr
        for line in process.stderr:
            if "sent as" in line:
                process.kill()
    assert process.returncode == -signal.SIGKILL
    scene.playing.set()
    done = scene.run("start", "campaign.json", "--yes", "--poll", "1")
    assert done.returncode == 0, done.stderr
    assert len(scene.double.requests("POST", "/dispatches")) == 1
    assert set(scene.paid.values()) == {1}
    assert scene.state(campaign)["spent_usd"] == 1.5


def test_one_client_at_a_time_acts_for_a_campaign(scene: Scene) -> None:
    scene.playing.clear()
    campaign = scene.plan()
    with scene.begin("start", "campaign.json", "--yes", "--poll", "1") as process:
        assert process.stderr
        next(line for line in process.stderr if "sent as" in line)
        second = scene.run("watch", campaign)
        assert second.returncode == 3
        assert f"is being run already: process {process.pid}" in second.stderr
        assert scene.run("status", campaign).returncode == 5, "reading is free"
        asked = scene.run("cancel", campaign, "--yes")
        assert (asked.returncode, "it was asked to stop" in asked.stderr) == (5, True), asked.stderr
        said = process.stderr.read()
    assert process.returncode == 1
    assert "cancelled; nothing was paid" in said, said
    assert not scene.paid


@pytest.mark.parametrize("columns", [80, 40])
def test_on_a_terminal_it_asks_draws_and_can_be_left(scene: Scene, columns: int) -> None:
    scene.playing.clear()
    campaign = scene.plan()
    terminal = Terminal(scene, "start", "campaign.json", "--poll", "1", columns=columns)
    terminal.until(re.escape("with all retries at most $3.00"))
    terminal.until(r"Pay for it\? \[y/N\]")
    assert scene.double.requests("POST") == []
    terminal.type("y\n")
    terminal.until("1 sent")
    terminal.until("next look: ")
    terminal.type("\x03")
    assert terminal.end() == 128 + signal.SIGINT
    assert f"runner-e2e dispatch watch {campaign}" in terminal.text
    assert terminal.text.count("\x1b[?25l") == terminal.text.count("\x1b[?25h") == 1, "the cursor is shown again"
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.text).replace("\r", "\n").splitlines()
    assert [line for line in drawn if len(line) > max(columns, 79) and not line.startswith("next ")] == []
    scene.playing.set()
    followed = Terminal(scene, "watch", campaign, "--poll", "1", columns=columns, NO_COLOR="1")
    assert followed.end() == 0
    assert "3 of 3 passed" in followed.text
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-9]|9[0-7])(?:;\d+)*m", followed.text), "NO_COLOR"
    assert set(scene.paid.values()) == {1}


def test_the_answer_no_pays_nothing(scene: Scene) -> None:
    scene.plan()
    terminal = Terminal(scene, "start", "campaign.json")
    terminal.until(r"\[y/N\]")
    terminal.type("\n")
    assert terminal.end() == 3
    assert "nothing was reserved or sent" in terminal.text
    assert scene.run("start", "campaign.json").returncode == 2, "nobody can be asked"
    assert scene.double.requests("POST") == []
    assert not scene.paid
