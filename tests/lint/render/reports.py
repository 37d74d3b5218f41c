"""Reports to write, real and made up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.errors import Place, Problem
from runner_e2e.lint.finding import Edit, Finding, Fix, FlowPlace, Level
from runner_e2e.lint.linter import Report
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOW = """\
on:
  workflow_dispatch:
    inputs:
      selected-id:
        required: true
jobs:
  evaluate:
    runs-on: ubuntu-latest
    steps:
      - run: |
          echo "é 文"; tool --id "$ID" # | `pipe` ``` <b>
        env:
          ID: ${{ inputs.selected-id }}
      - uses: ./act
        with:
          id: ${{ inputs['selected-id'] }}
"""
ACTION = """\
inputs: {id: {required: true}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {X: "${{ inputs.id }}"}
      run: tool --id "$X"
"""


def make_repository(root: Path) -> Path:
    """A repository in which a workflow leaks by itself and by an action."""
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / "act").mkdir()
    (root / ".github" / "workflows" / "w.yml").write_text(WORKFLOW)
    (root / "act" / "action.yml").write_text(ACTION)
    return root


def span(path: str = ".github/workflows/w.yml", line: int = 11, column: int = 33, end: int = 38) -> Span:
    return Span(path=path, line=line, column=column, end_line=line, end_column=end)


def finding(
    *,
    rule: str = "confidential-argv",
    level: Level = "error",
    confidence: Confidence = Confidence.HIGH,
    where: Span | None = None,
    message: str = "`inputs.selected-id` is an argument of `tool`",
    why: str = "every process can read it",
    fix: str = "use the environment",
    flow: tuple[FlowPlace, ...] = (),
) -> Finding:
    return Finding(
        rule=rule,
        level=level,
        confidence=confidence,
        span=where or span(),
        message=message,
        why=why,
        fix=fix,
        flow=flow,
        labels=("inputs.selected-id",),
    )


def report(*findings: Finding, problems: tuple[Problem, ...] = (), fixes: dict[int, Fix] | None = None) -> Report:
    return Report(findings=findings, problems=problems, files=2, fixes=fixes or {})


PROBLEM = Problem(what="not valid YAML", why="a bracket", fix="close it", place=Place(path="x.yml", line=2, column=3))
HOSTILE = "\x1b[2J::error::x\n##[add-mask]y | <script>`*_[a](b) \u202e%0A,:"


def fix_at(start: int, end: int, text: str, *, path: str = ".github/workflows/w.yml") -> Fix:
    edits = (
        Edit(path=path, start=start, end=end, text=text),
        Edit(path="act/action.yml", start=0, end=0, text="# a\n"),
    )
    return Fix(title="take it from the environment", safe=True, edits=edits)
