"""A prompt at which commands about campaigns are entered, and a double of GitHub whose runs are played meanwhile."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.github_double.player import Player
from tests.github_double.server import Server

from runner_e2e.cells.catalog import read_catalog
from runner_e2e.cli.dispatch_progress import Departure
from runner_e2e.cli.group import run as run_command

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KEY", "Shell", "shell"]

ROOT = Path(__file__).resolve().parents[2]
KEY = bytes(range(100, 132))
CATALOG = """\
harness: { command: [python3, harness.py] }
credentials: { OPENAI_API_KEY: }
profiles: { codex: { credential: OPENAI_API_KEY }, opencode: { credential: OPENAI_API_KEY } }
environments: { local: }
groups: { nightly: Every night }
retries: 1
suites:
  chat: { profiles: [codex, opencode], environments: [local], groups: [nightly], cases: [hello, goodbye],
          expected-cost: 0.5 }
  review: { profiles: [codex], environments: [local], groups: [nightly], cases: [diff], expected-cost: 0.25 }
"""


class Shell:
    """A person at a prompt: commands of the product run in this process, others in a shell."""

    def __init__(self, double: Server, player: Player) -> None:
        self.double = double
        self.player = player
        self.status = 0
        self.names: dict[str, str] = {}

    def wait(self, seconds: float) -> None:
        """The runs go on while the client waits."""
        self.double.state.clock.sleep(seconds)
        self.player.play()

    def enter(self, command: str) -> str:
        """Runs one command; what it shows, on both streams."""
        for word, name in self.names.items():
            command = command.replace(word, name)
        if command == "echo $?":
            return str(self.status)
        if not command.startswith("runner-e2e "):
            return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
        words, _, place = command.removeprefix("runner-e2e ").partition(" > ")
        shown, kept = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(kept if place else shown), contextlib.redirect_stderr(shown):
            self.status = run_command(words.split())
        if place:
            Path(place).write_text(kept.getvalue())
        for word, file in (("CAMPAIGN", "campaign.json"), ("SECOND", "second.json")):
            if Path(file).exists():
                self.names[word] = re.findall(r"c-[0-9a-z]{16}-[0-9a-f]{8}", Path(file).read_text())[0]
        return shown.getvalue().rstrip("\n")


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Shell]:
    """The prompt of somebody who has read the page."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "RUNNER_"))]:
        monkeypatch.delenv(name)
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(CATALOG)
    with Server(validating=False) as double:
        state = double.state
        workflow = state.add_workflow(
            ".github/workflows/paid-campaign.yml", inputs={"nonce": False, "selection": False, "target": False}
        )
        workflow.run_name = "Paid campaign ${{ inputs.nonce }}"
        template = (ROOT / "workflows-templates" / "paid-campaign.yml").read_bytes()
        state.write_file(workflow.path, "main", template, "workflow", None)
        state.private = True
        catalog = read_catalog(tmp_path / ".github" / "runner-e2e.yml")
        player = Player(
            double, catalog, keys=[KEY], cost=lambda cell: 0.38 if cell.suite == "chat" else 0.2,
            passes=lambda cell: cell.case != "diff",
        )  # fmt: skip
        typing = Shell(double, player)
        for name, value in {
            "RUNNER_E2E_CAMPAIGN_KEY": KEY.hex(),
            "RUNNER_E2E_LEDGER": str(tmp_path / "ledger.sqlite"),
            "GH_TOKEN": "token-of-alice",
            "GITHUB_API_URL": double.url,
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(Departure, "wait", lambda _, seconds: typing.wait(seconds))
        monkeypatch.setattr("time.time", state.clock.now)
        yield typing
