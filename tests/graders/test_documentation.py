"""What docs/grading.md shows is what happens."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tests.graders.streams import grade_bytes

from runner_e2e.cli.group import run

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "grading.md").read_text()


def example(name: str) -> str:
    found = re.search(rf"<!-- test: {name} -->\n```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found, name
    return found[1]


def test_the_generic_form() -> None:
    result = grade_bytes(example("generic").encode(), workspace=None)
    assert result.verdict == "passed"
    assert len(result.evidence) == 3
    assert result.plan == "1. Leave everything as it is."


def test_the_expectations(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("workspace").mkdir()
    Path("artifacts/logs").mkdir(parents=True)
    Path("expectations.json").write_text(example("expectations"))
    Path("messages.jsonl").write_text('"begun"\n"done: wrote 2 files"\n')
    Path("workspace/answer.txt").write_text("42\n")
    Path("workspace/report.json").write_text(json.dumps({"answers": [{"ok": True}, {"ok": True}]}))
    Path("artifacts/logs/run.log").write_text("x")
    # A command may go on in the next line, as in a shell.
    command, _, shown = example("expectations-run").replace("\\\n", "").partition("\n")
    assert run(shlex.split(command)[2:]) == 0
    assert capsys.readouterr().out == shown


def test_every_verdict_is_explained() -> None:
    from typing import get_args

    from runner_e2e.graders.planning_read_only import Verdict

    assert re.findall(r"^\| `([a-z-]+)` \| [A-Z]", PAGE, re.MULTILINE) == list(get_args(Verdict))
