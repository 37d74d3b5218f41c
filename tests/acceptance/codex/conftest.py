"""Codex's app-server with this product's arguments, in a place that its sandbox does not hide."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from app_server import AppServer
from planning import model_arguments
from tests.clearing import remove_tree
from tests.model_server.agents import CODEX

from runner_e2e.codex.profile import Host, launch_arguments, profile_name
from runner_e2e.codex.requests import thread_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[3]
WORK = ROOT / "tests" / ".work"
PROGRAMS = Path(sys.executable).parent
HOSTS = Path(__file__).with_name("hosts.py")


@dataclass(frozen=True, kw_only=True)
class Desk:
    """An instance directory with a workspace, Codex's home, and a place that Codex does not see."""

    instance: Path
    workspace: Path
    home: Path
    private: Path

    def host(self, **fields: Any) -> Host:
        return Host(codex_home=str(self.home), package=str(CODEX.parents[1]), **fields)

    def log(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m", "", (self.private / "codex.log").read_text())

    @contextmanager
    def server(
        self,
        host: Host,
        *,
        planning: bool = True,
        prefix: Sequence[str] = (),
        model: str = "http://127.0.0.1:1/v1",
        arguments: Sequence[str] | None = None,
    ) -> Iterator[AppServer]:
        words = launch_arguments(host, planning=planning) if arguments is None else arguments
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "AMBIENT": "s3cret", "RUST_LOG": "info"}
        with AppServer(
            [*prefix, str(CODEX), *words, *model_arguments(model), "app-server"],
            directory=self.workspace,
            environment={**variables, "HOME": str(self.home), "CODEX_HOME": str(self.home)},
            events=self.private / "events.jsonl",
            log=self.private / "codex.log",
        ) as server:
            yield server

    def start(self, server: AppServer, host: Host, *, planning: bool = True) -> dict[str, Any]:
        return server.request("thread/start", **thread_start(host, planning=planning, directory=str(self.workspace)))

    def run(self, server: AppServer, host: Host, *command: str | Path, planning: bool = True) -> dict[str, Any]:
        return server.request(
            "command/exec",
            command=[str(word) for word in command],
            cwd=str(self.workspace),
            permissionProfile=profile_name(host, planning=planning),
        )


@pytest.fixture
def desk() -> Iterator[Desk]:
    WORK.mkdir(exist_ok=True)
    instance = Path(tempfile.mkdtemp(dir=WORK))
    instance.chmod(0o755)
    made = Desk(
        instance=instance,
        workspace=instance / "workspace",
        home=instance / "home",
        private=instance / "private",
    )
    for path in (made.workspace, made.home, made.private):
        path.mkdir()
    subprocess.run(["git", "init", "--quiet", str(made.workspace)], check=True)
    (made.workspace / "AGENTS.md").write_text("Be brief.\n")
    yield made
    remove_tree(instance)


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product's own command is found, and nothing of this host says what kind of host it is."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(PROGRAMS), os.environ["PATH"]]))
    monkeypatch.setenv("CODEX_BINARY", str(CODEX))
    for name in ("PAPERCLIP_RUNNER_EXTERNAL_SANDBOX", "PAPERCLIP_RUNNER_NETWORK_ACCESS"):
        monkeypatch.delenv(name, raising=False)


def on_host(kind: str) -> list[str]:
    """The words before a command that run it as on a host of this kind; see ``hosts.py``."""
    return [sys.executable, str(HOSTS), kind]
