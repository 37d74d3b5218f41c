"""What is read out of a workflow before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import ConfigurationError
from runner_e2e.workflow_audit.workflow_file import Uses, WorkflowFile, read_action, read_workflow

if TYPE_CHECKING:
    from pathlib import Path


def read(tmp_path: Path, text: str) -> WorkflowFile:
    path = tmp_path / "w.yml"
    path.write_text(text)
    return read_workflow(path, name="w.yml")


WORKFLOW = """
on:
  workflow_dispatch:
    inputs:
      id: {required: true}
      flag: {type: boolean, default: true}
      level: {type: choice, options: [low, high]}
      none:
  push:
jobs:
  one:
    runs-on: [self-hosted, Big-Box]
    steps:
      - uses: actions/checkout@v4
        with: {uses: not/this@v1}
      - uses: ./.github/actions/x
      - {run: "true", shell: "perl {0}"}
  two:
    strategy: {matrix: {os: [ubuntu-24.04, odd-label], n: ["1 2"]}}
    runs-on: ${{ matrix.os || 'fallback-label' }}
    steps: [{run: "true"}]
  three:
    uses: own/repo/.github/workflows/w.yml@main
"""


def test_a_workflow(tmp_path: Path) -> None:
    found = read(tmp_path, WORKFLOW)
    assert list(found.events) == ["workflow_dispatch", "push"]
    inputs = found.inputs["workflow_dispatch"]
    assert (inputs["id"].required, inputs["id"].kind, inputs["id"].default) == (True, "string", None)
    assert (inputs["flag"].kind, inputs["flag"].default) == ("boolean", "true")
    assert inputs["level"].options == ("low", "high")
    assert set(found.labels) >= {"self-hosted", "Big-Box", "ubuntu-24.04", "odd-label", "fallback-label"}
    assert "1 2" not in found.labels
    assert found.shells == ("perl {0}",)
    assert {uses.text for uses in found.uses} == {
        "actions/checkout@v4",
        "./.github/actions/x",
        "own/repo/.github/workflows/w.yml@main",
    }
    assert found.jobs == ("one", "two", "three")


@pytest.mark.parametrize("on", ["push", "[push, pull_request]", "{push: {branches: [main]}}"])
def test_events_in_every_form(tmp_path: Path, on: str) -> None:
    assert "push" in read(tmp_path, f"on: {on}\njobs: {{a: {{runs-on: x, steps: []}}}}\n").events


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("just text", "it is no mapping"),
        ("[1, 2]", "it is no mapping"),
        ("jobs: {}", "it has no `on`"),
        ("name: x", "it has no `on` and no `jobs`"),
        ("on: push", "no `jobs`"),
        ("on: push\njobs: 3", "mapping of jobs"),
        ("name: x\nruns: {using: composite, steps: []}", "no `on`"),
    ],
)
def test_what_is_no_workflow(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match="not a workflow") as caught:
        read(tmp_path, text)
    assert why in caught.value.problem.why


def test_references() -> None:
    def uses(text: str) -> Uses:
        return Uses(text=text, place=None)  # type: ignore[arg-type]

    assert uses("Actions/Cache/restore@v4").repository == "Actions/Cache@v4"
    assert uses("Actions/Cache/restore@v4").name == "actions/cache"
    assert uses("./here").local
    assert uses("docker://alpine").repository == ""
    assert uses("docker://alpine@sha256:1").repository.startswith("docker:")
    assert uses("owner/name").repository == ""


def test_an_action(tmp_path: Path) -> None:
    assert read_action(tmp_path) is None
    (tmp_path / "action.yaml").write_text("runs: {using: composite, steps: [{uses: a/b@c}, {run: x, shell: fish}]}")
    found = read_action(tmp_path)
    assert found
    assert [uses.text for uses in found.uses] == ["a/b@c"]
    assert found.shells == ("fish",)
