"""The harness itself: what it finds, and what it refuses to call a verdict."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.truth.__main__ import check_one, command_line, main, run_one, settle
from tests.truth.case import CaseError, find_cases, read_case
from tests.truth.execution import Instruments, execute
from tests.truth.fuzz import workflow
from tests.truth.verdict import read_truth, write_truth

if TYPE_CHECKING:
    from tests.truth.case import Case

ROOT = Path(__file__).resolve().parents[2]


def case(directory: Path, script: str, name: str = "one.leak.yml") -> Case:
    path = directory / name
    path.write_text(workflow(script))
    return read_case(path)


def test_a_leak_has_its_line_and_its_words(tmp_path: Path, tools: Instruments) -> None:
    truth = settle(case(tmp_path, 'echo "$ID"\ntool --id "$ID"'), tools)
    (witness,) = truth.witnesses
    lines = (tmp_path / "one.leak.yml").read_text().splitlines()
    assert lines[witness.line - 1].strip() == 'tool --id "$ID"'
    assert witness.argv == ("tool", "--id", "{id}")
    assert witness.found_by == "bash"
    assert truth.environments == ("bash", "tool")


def test_a_wrong_belief_is_said(tmp_path: Path, tools: Instruments) -> None:
    message = run_one(case(tmp_path, 'tool "$ID"', "one.clean.yml"), tools)
    assert message
    assert "believed clean, execution shows leak" in message
    assert "['tool', '{id}']" in message


def test_a_workflow_that_fails_proves_nothing(tmp_path: Path, tools: Instruments) -> None:
    with pytest.raises(CaseError, match="failed with status 1, so it proves nothing"):
        execute(case(tmp_path, 'tool "$ID"\nfalse'), tools, recorded=False)


def test_a_case_that_behaves_otherwise_when_it_is_watched_is_refused(tmp_path: Path, tools: Instruments) -> None:
    script = 'if [ -n "${LD_PRELOAD:-}" ]; then\n  tool "$ID"\nfi'
    with pytest.raises(CaseError, match="two runs disagree"):
        settle(case(tmp_path, script), tools)


def test_a_line_that_nothing_tells_is_asked_for(tmp_path: Path, tools: Instruments) -> None:
    with pytest.raises(CaseError, match="nothing tells its line"):
        execute(case(tmp_path, "trap 'tool \"$ID\"' EXIT"), tools, recorded=True)
    marked = case(tmp_path, "trap 'tool \"$ID\"' EXIT # leak-here")
    assert [one.found_by for one in execute(marked, tools, recorded=True).witnesses] == ["marker"]


def test_two_marks_for_one_program_are_refused(tmp_path: Path, tools: Instruments) -> None:
    script = "trap 'tool \"$ID\"' EXIT # leak-here\necho # leak-here: tool"
    with pytest.raises(CaseError, match="2 marked lines name tool"):
        execute(case(tmp_path, script), tools, recorded=True)


def test_check_sees_changes_of_the_case_and_of_its_truth(tmp_path: Path, tools: Instruments) -> None:
    one = case(tmp_path, 'tool "$ID"')
    assert "no truth stored" in (check_one(one, tools) or "")
    assert run_one(one, tools) is None
    assert check_one(one, tools) is None
    truth, _ = read_truth(one)
    write_truth(one, replace(truth, witnesses=tuple(replace(found, line=1) for found in truth.witnesses)))
    assert "stored and executed truth differ" in (check_one(one, tools) or "")
    one.path.write_text(workflow('tool x "$ID"'))
    assert "changed since it was executed" in (check_one(one, tools) or "")


def test_a_python_call_has_its_line(tmp_path: Path, tools: Instruments) -> None:
    folder = tmp_path / "one.leak"
    (folder / ".github/workflows").mkdir(parents=True)
    (folder / "run.py").write_text('import os\n\nos.system(\n    "tool " + os.environ["ID"]\n)\n')
    text = workflow("python3 run.py").replace("    steps:\n", "    steps:\n      - uses: actions/checkout@v4\n")
    (folder / ".github/workflows/case.yml").write_text(text)
    truth = execute(read_case(folder), tools, recorded=True)
    assert ("run.py", 3) in {(one.file, one.line) for one in truth.witnesses}
    assert {one.argv for one in truth.witnesses} == {("sh", "-c", "tool {id}"), ("tool", "{id}")}


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = case(tmp_path, 'tool "$ID"')
    assert main(["run", str(tmp_path)]) == 0
    assert json.loads(one.truth_path.read_text())["verdict"] == "leak"
    assert main(["check", str(one.path), str(one.truth_path), "--jobs", "1"]) == 0
    assert "1 cases, 0 to look at" in capsys.readouterr().out
    case(tmp_path, 'tool "$ID"', "two.clean.yml")
    assert main(["check", str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [("stray.yml", "not a case"), ("UPPER.leak.yml", "not a case"), ("empty.leak", "no .github/workflows/case.yml")],
)
def test_a_stray_file_is_an_error(tmp_path: Path, name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name.endswith(".yml"):
        (tmp_path / name).write_text("on: push\n")
    else:
        (tmp_path / name).mkdir()
    with pytest.raises(CaseError, match=words):
        find_cases(tmp_path)
    assert main(["run", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_the_commands_that_the_page_shows_are_commands() -> None:
    page = (ROOT / "docs/contributing/truth.md").read_text()
    shown = re.findall(r"-m tests\.truth ((?:run|check|fuzz)[^`\n]*)", page)
    assert {words.split()[0] for words in shown} == {"run", "check", "fuzz"}
    for words in shown:
        command_line().parse_args(words.replace("[PATH…]", "").split())


def test_a_folder_that_is_not_there() -> None:
    assert main(["run", "no/such/folder"]) == 2
