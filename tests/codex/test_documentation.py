"""docs/codex.md names options, profiles and files that exist."""

from __future__ import annotations

import re
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
