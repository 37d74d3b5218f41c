"""docs/codex.md names options, profiles and files that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from runner_e2e.cli.group import run
from runner_e2e.codex.activity import ActivityChannel
from runner_e2e.codex.profile import PROFILES

PAGE = (Path(__file__).parents[2] / "docs" / "codex.md").read_text()


def test_options_and_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ""
    for command in (["codex"], ["codex", "args"], ["codex", "request"], ["run"], ["sandbox", "exec"]):
        run([*command, "--help"])
        shown += capsys.readouterr().out
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)):
        assert option in shown, option
    for name in re.findall(r"`codex (\w+)", PAGE):
        assert re.search(rf"^  {name}\b", shown, re.MULTILINE), name


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_is_explained(profile: str) -> None:
    assert f"`{profile}`" in PAGE


def test_the_channel_looks_as_it_is_drawn(tmp_path: Path) -> None:
    with ActivityChannel(tmp_path / "activity") as channel:
        for path in channel.root.rglob("*"):
            assert re.search(rf"^ +{re.escape(path.name)}/? +", PAGE, re.MULTILINE), path


def test_the_example_of_the_channel_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With an agent that writes one record after the run has begun."""
    found = re.search(r"<!-- test: channel -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert found
    code = found[1].replace("/run/agent", str(tmp_path))
    record = [str(tmp_path / "activity" / "record-activity"), "progress", "half done"]
    reading = "    for record in channel.read("
    assert reading in code
    code = code.replace(reading, f"    subprocess.run({record!r}, check=True)\n{reading}")
    exec(compile(code, "docs/codex.md", "exec"), {"subprocess": subprocess})
    assert capsys.readouterr().out == "progress half done\n"
    assert not (tmp_path / "activity").exists()
