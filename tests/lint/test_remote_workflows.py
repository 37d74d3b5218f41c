"""Calls of reusable workflows that cannot be followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.linter import lint

if TYPE_CHECKING:
    from pathlib import Path

REMOTE = "octo/shared/.github/workflows/plan.yml@v1"
AFTER = """\
 after:
  needs: call
  if: needs.call.outputs.go == 'true'
  runs-on: ubuntu-latest
  steps:
  - run: tool "$C"
    env: {C: "${{ inputs.selected-id }}"}
  - run: tool "$C"
    env: {C: "${{ needs.call.outputs.cell }}"}
"""


def found(root: Path, uses: str, given: str) -> list[tuple[int, str, str]]:
    workflow = root / ".github" / "workflows" / "w.yml"
    workflow.parent.mkdir(parents=True)
    head = "on: {workflow_dispatch: {inputs: {selected-id: {}}}}\njobs:\n call:\n"
    workflow.write_text(f"{head}  uses: {uses}\n  with: {{{given}}}\n  secrets: inherit\n{AFTER}")
    report = lint([workflow], current=root)
    assert report.problems == ()
    rules = {"confidential-argv", "confidential-third-party", "unanalysable-script"}
    return [(each.span.line, each.rule, each.confidence.name) for each in report.findings if each.rule in rules]


def test_a_workflow_of_another_repository_is_told_and_may_give_anything(tmp_path: Path) -> None:
    assert found(tmp_path, REMOTE, 'id: "x-${{ inputs.selected-id }}"') == [
        (5, "confidential-third-party", "MEDIUM"),
        (12, "confidential-argv", "HIGH"),
        (14, "confidential-argv", "LOW"),
    ]


def test_what_it_is_not_given_it_does_not_give(tmp_path: Path) -> None:
    assert found(tmp_path, REMOTE, "id: x") == [(12, "confidential-argv", "HIGH")]


def test_a_local_workflow_that_is_not_there_is_possible(tmp_path: Path) -> None:
    assert found(tmp_path, "./.github/workflows/no.yml", 'id: "${{ inputs.selected-id }}"') == [
        (4, "unanalysable-script", "LOW"),
        (12, "confidential-argv", "HIGH"),
        (14, "confidential-argv", "LOW"),
    ]
