"""Callees are analysed once for what they are given, and every caller has its own way through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint import jobs, steps
from runner_e2e.lint.linter import lint

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from runner_e2e.lint.finding import Finding

CALLED = """\
on:
  workflow_call:
    inputs:
      cell: {{type: string}}
    outputs:
      cell: {{value: "${{{{ jobs.{job}.outputs.cell }}}}"}}
jobs:
{jobs}
"""
LAST = """\
  a:
    outputs:
      cell: ${{ inputs.cell }}
    steps:
      - run: tool
"""
LAST_SCRIPT = """\
        tool "${{ inputs.cell }}"
        echo "CELL=${{ inputs.cell }}" >> "$GITHUB_ENV"
"""
TOP = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  first:
    uses: ./.github/workflows/w1.yml
    with:
      cell: ${{ inputs.selected-id }}
  second:
    uses: ./.github/workflows/w1.yml
    with:
      cell: ${{ inputs.selected-id }}
  after:
    needs: [first, second]
    steps:
      - run: tool "$CELL"
        env:
          CELL: ${{ needs.first.outputs.cell }}
      - run: tool "$CELL"
        env:
          CELL: ${{ needs.second.outputs.cell }}
"""


def calls(level: int) -> str:
    """Two jobs that call the next workflow with the same input."""
    return "".join(
        f'  {name}:\n    uses: ./.github/workflows/w{level + 1}.yml\n    with: {{cell: "${{{{ inputs.cell }}}}"}}\n'
        for name in ("one", "two")
    )


def write_workflows(root: Path, depth: int) -> None:
    folder = root / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "top.yml").write_text(TOP)
    for level in range(1, depth):
        (folder / f"w{level}.yml").write_text(CALLED.format(job="two", jobs=calls(level)))
    (folder / f"w{depth}.yml").write_text(CALLED.format(job="a", jobs=LAST))


def argv(root: Path, name: str) -> list[Finding]:
    report = lint([root / ".github" / "workflows" / name], current=root)
    assert report.problems == ()
    return [finding for finding in report.findings if finding.rule == "confidential-argv"]


def test_each_workflow_is_analysed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_workflows(tmp_path, 8)
    runs: list[str] = []
    original = jobs._WorkflowRunner.run_jobs

    def counted(self: jobs._WorkflowRunner) -> None:
        runs.append(self.reader.document.path)
        original(self)

    monkeypatch.setattr(jobs._WorkflowRunner, "run_jobs", counted)
    assert len(argv(tmp_path, "top.yml")) == 2
    assert len(runs) == len(set(runs)) == 9


def test_each_caller_has_its_own_way(tmp_path: Path) -> None:
    write_workflows(tmp_path, 3)
    first, second = argv(tmp_path, "top.yml")
    ways = [
        [(place.span.path.rsplit("/", 1)[-1], place.span.line) for place in found.flow] for found in (first, second)
    ]
    lines = TOP.splitlines()
    given = [number for number, line in enumerate(lines, 1) if "cell: ${{ inputs" in line]
    assert [way[0] for way in ways] == [("top.yml", number) for number in given]
    assert ways[0][1:-2] == ways[1][1:-2]
    assert [path for path, _ in ways[0]] == [
        *("top.yml", "w1.yml", "w2.yml", "w3.yml", "w3.yml"),
        *("w2.yml", "w1.yml", "top.yml", "top.yml"),
    ]


def write_actions(root: Path, depth: int) -> None:
    """Actions that use the next one twice."""
    folder = root / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "w.yml").write_text(
        "on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}\n"
        "jobs:\n  a:\n    steps:\n      - uses: ./a1\n        with: {cell: '${{ inputs.selected-id }}'}\n"
    )
    for level in range(1, depth + 1):
        (root / f"a{level}").mkdir()
        step = (
            f"    - uses: ./a{level + 1}\n      with: {{cell: '${{{{ inputs.cell }}}}'}}\n"
            if level < depth
            else f"    - shell: bash\n      run: |\n{LAST_SCRIPT}"
        )
        (root / f"a{level}" / "action.yml").write_text(
            f"inputs: {{cell: {{required: true}}}}\nruns:\n  using: composite\n  steps:\n{step * 2}"
        )


def test_actions_that_use_the_next_one_twice_are_not_doubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    depth = 10
    write_actions(tmp_path, depth)
    count = 0
    original = steps.StepRunner.run_all

    def counted(self: steps.StepRunner, *given: object) -> None:
        nonlocal count
        count += 1
        original(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(steps.StepRunner, "run_all", counted)
    (first, *rest) = argv(tmp_path, "w.yml")
    assert (first.span.path, len(rest)) == ("a10/action.yml", 1)
    assert count <= 1 + 3 * depth  # each once for each state of the job, of which there are few


def test_each_use_of_an_action_has_its_own_way(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    uses = "".join(
        f"      - id: {name}\n        uses: ./say\n        with:\n          cell: ${{{{ inputs.selected-id }}}}\n"
        for name in ("one", "two")
    )
    shown = "".join(f"      - run: tool '${{{{ steps.{name}.outputs.cell }}}}'\n" for name in ("one", "two"))
    text = (
        "on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}\n"
        f"jobs:\n  a:\n    steps:\n{uses}{shown}"
    )
    (folder / "w.yml").write_text(text)
    (tmp_path / "say").mkdir()
    (tmp_path / "say" / "action.yml").write_text(
        "inputs: {cell: {}}\noutputs: {cell: {value: '${{ inputs.cell }}'}}\nruns: {using: composite, steps: []}\n"
    )
    given = [number for number, line in enumerate(text.splitlines(), 1) if "cell: ${{ inputs" in line]
    assert [found.flow[0].span.line for found in argv(tmp_path, "w.yml")] == given
