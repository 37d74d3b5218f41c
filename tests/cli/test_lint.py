"""``runner-e2e lint`` as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.cli.group import run
from runner_e2e.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
WORKFLOW = """\
on:
  workflow_dispatch:
    inputs:
      selected-id:
        required: true
jobs:
  a:
    runs-on: ubuntu-latest
    env:
      ID: ${{ inputs.selected-id }}
    steps:
      - run: |
          case=${ID##*.}
          tool "$case"
"""


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "w.yml").write_text(WORKFLOW)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(name="call")
def _call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["lint", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def test_findings_make_the_exit_code_one(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call()
    assert code == 1
    assert ".github/workflows/w.yml:14:16: error: `inputs.selected-id` is an argument of `tool`" in out
    assert "\n     |                ^^^^^^^\n" in out
    assert "2 errors in 1 file" in out  # the header of the log lists the variable


def test_a_clean_repository_is_zero(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".github/workflows/w.yml").write_text(WORKFLOW.replace("inputs.selected-id }}", "inputs.selected-id != '' }}"))
    assert call() == (0, "no findings in 1 file\n", "")


def test_what_cannot_be_read_is_two_and_the_rest_is_shown(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".github/workflows/x.yml").write_text("a: [")
    code, out, _ = call()
    assert code == 2
    assert ".github/workflows/x.yml:2:1: not valid YAML" in out or ".github/workflows/x.yml:1:5: not valid YAML" in out
    assert "is an argument of `tool`" in out
    assert "1 could not be checked" in out


def test_fail_on_sets_the_least_confidence(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".github/workflows/w.yml").write_text(WORKFLOW.replace('tool "$case"', 'tool "$(base64 <<< "$ID")"'))
    select = ("--select", "confidential-argv")
    code, out, _ = call("--format", "json", *select)
    (finding,) = json.loads(out)["findings"]
    assert finding["confidence"] == "low"
    assert code == 0
    assert call("--fail-on", "low", *select)[0] == 1


def test_paths_that_do_not_exist_are_a_usage_error(call: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = call("absent.yml")
    assert code == 2
    assert "there is no file absent.yml" in err


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_is_explained(call: Callable[..., tuple[int, str, str]], rule: str) -> None:
    code, out, _ = call("--explain", rule)
    assert code == 0
    assert out.startswith(f"{rule}: ")
    assert len(out.splitlines()) > 4


def test_an_unknown_rule_is_named_with_those_there_are(call: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = call("--explain", "nope")
    assert code == 2
    assert "confidential-argv" in err


def test_trace_shows_the_variables_before_a_line(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("--trace", ".github/workflows/w.yml:14")
    assert code == 0
    assert 'before `tool "$case"`' in out
    assert "\n  ID = ….….….{inputs.selected-id}\n" in out
    assert "\n  case = {inputs.selected-id}\n" in out
    before = call("--trace", ".github/workflows/w.yml:13")[1]
    assert "  case = " not in before


@pytest.mark.parametrize(
    ("place", "part"),
    [("w.yml", "has no line"), (".github/workflows/w.yml:3", "no command of a script"), ("absent.yml:3", "no command")],
)
def test_trace_needs_a_command(call: Callable[..., tuple[int, str, str]], place: str, part: str) -> None:
    code, _, err = call("--trace", place)
    assert code == 2
    assert part in err


def test_paths_are_shown_from_the_current_folder(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    out = call(str(tmp_path / ".github" / "workflows"))[1]
    assert f"{tmp_path}/.github/workflows/w.yml:14:16" in out
    monkeypatch.chdir(tmp_path / ".github")
    assert "\nworkflows/w.yml:14:16" in "\n" + call("workflows/w.yml")[1]


def test_it_runs_as_a_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runner_e2e", "lint"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == ""
    assert "is an argument of `tool`" in done.stdout
