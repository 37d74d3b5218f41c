"""The example of the section about fixes in ``docs/lint.md`` is executed, and says what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.cli.group import run

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "lint.md").read_text()


def test_the_patch_is_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    section = PAGE.split("\n## Fixes\n")[1].split("\n## ")[0]
    (_, workflow), (_, console) = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    path = tmp_path / ".github" / "workflows" / "evaluate.yml"
    path.parent.mkdir(parents=True)
    path.write_text(workflow)
    monkeypatch.chdir(tmp_path)
    call, said = console.split("\n", 1)
    assert run(shlex.split(call.removeprefix("$ runner-e2e "))) == 1
    assert capsysbinary.readouterr().out.decode() == said
    assert run([*shlex.split(call.removeprefix("$ runner-e2e "))[:-1], "--fix"]) == 0
    assert 'CASE="$INPUTS_SELECTED_ID" docker run -e CASE evaluate' in path.read_text()
