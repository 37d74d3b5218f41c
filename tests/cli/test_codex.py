from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from runner_e2e.cli.group import run
from runner_e2e.codex.identity import launch_identity
from runner_e2e.codex.profile import Host, launch_arguments

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CODEX_HOME", "PAPERCLIP_RUNNER_EXTERNAL_SANDBOX", "PAPERCLIP_RUNNER_NETWORK_ACCESS", "GH_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_arguments_one_a_line_as_json_and_with_nuls(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = list(launch_arguments(Host(external_sandbox=True), planning=True))
    assert run(["codex", "args", "--planning", "--external-sandbox"]) == 0
    assert capsys.readouterr().out.splitlines() == wanted
    assert run(["codex", "args", "--planning", "--external-sandbox", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == wanted
    assert run(["codex", "args", "--planning", "--external-sandbox", "-0"]) == 0
    assert capsys.readouterr().out.split("\0") == [*wanted, ""]


def test_the_environment_says_what_the_options_do_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERCLIP_RUNNER_EXTERNAL_SANDBOX", "1")
    monkeypatch.setenv("CODEX_HOME", "/h")
    assert run(["codex", "context", "--planning"]) == 0
    assert json.loads(capsys.readouterr().out)["rootAccess"] == "read"
    assert run(["codex", "args", "--local", "--planning"]) == 0
    assert '"/h/tmp/arg0"="read"' in capsys.readouterr().out


def test_the_activity_channel_is_granted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["codex", "args", "--planning", "--activity", "/run/a"]) == 0
    assert '"/run/a"="read", "/run/a/channel"="write", "/run/a/channel/lock"="read"' in capsys.readouterr().out


def test_requests(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["codex", "request", "thread/start", "--planning"]) == 0
    assert json.loads(capsys.readouterr().out)["cwd"] == str(tmp_path.resolve())
    assert run(["codex", "request", "turn/start", "--thread", "t", "--text", "x", "--model", "m"]) == 0
    assert json.loads(capsys.readouterr().out)["threadId"] == "t"
    assert run(["codex", "request", "turn/start", "--thread", "t"]) == 2
    assert "turn/start needs" in capsys.readouterr().err


def test_identity(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["codex", "-c", "model=1", "app-server"]
    assert run(["codex", "identity", "--", *words]) == 0
    assert capsys.readouterr().out.strip() == launch_identity(words)


def test_a_bad_path_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["codex", "args", "--read", "here"]) == 2
    assert "absolute" in capsys.readouterr().err
