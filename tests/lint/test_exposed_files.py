"""Which steps run code that is not trusted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from runner_e2e.lint.exposed_files import checks_out_others, untrusted
from runner_e2e.lint.job_state import JobState
from runner_e2e.lint.repository import Repository
from runner_e2e.lint.run import Run
from runner_e2e.lint.shell.results import Files
from runner_e2e.lint.workflow import Step
from runner_e2e.yaml_positions import compose

if TYPE_CHECKING:
    from pathlib import Path


def step(text: str) -> Step:
    return Step(compose(text, path="w.yml"), 0)


def who(root: Path, text: str, *, others: bool = False) -> str:
    run = Run(Repository(root), deadline=time.process_time() + 5)
    return untrusted(run, step(text), JobState(environment={}, files=Files(), holds_others=others))


@pytest.mark.parametrize(
    "text",
    [
        "run: codex exec task",
        "run: A=1 codex exec task",
        "run: timeout 60 claude -p task",
        "run: npx -y @openai/codex exec task || opencode run task",
        "run: |\n  set -e\n  ./prepare && /usr/local/bin/gemini -p task",
        'run: out=$(claude -p "task")',
        "run: runner-e2e run --local",
        "run: runner-e2e sandbox exec -- tool",
        "uses: org/agent@v1",
        "uses: org/repository/path@v1",
        "uses: docker://image",
        "uses: org/runner-e2e-action@v1\nwith: {command: run}",
    ],
)
def test_agents_and_actions_of_others(tmp_path: Path, text: str) -> None:
    assert who(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "run: echo codex",
        "run: ./codex-results.sh",
        "run: |\n  # codex exec task\n  true",
        "run: codexify task",
        "run: npm test",
        "run: runner-e2e lint",
        "uses: ./action",
        "uses: actions/setup-node@v4",
        "uses: github/codeql-action/init@v3",
        "uses: org/runner-e2e-action@v1\nwith: {command: setup}",
        "name: nothing",
    ],
)
def test_the_rest_is_trusted(tmp_path: Path, text: str) -> None:
    assert not who(tmp_path, text)


@pytest.mark.parametrize("script", ["npm test", "make -C target", "./run", "bash scripts/run.sh", "cd t && pytest"])
def test_code_of_another_checkout(tmp_path: Path, script: str) -> None:
    assert who(tmp_path, f"run: {script}", others=True)
    assert not who(tmp_path, f"run: {script}")
    assert not who(tmp_path, "run: echo done", others=True)


@pytest.mark.parametrize(
    ("arguments", "others"),
    [
        ("{}", False),
        ("{ref: '${{ github.sha }}'}", False),
        ("{ref: '${{github.ref}}', repository: '${{ github.repository }}'}", False),
        ("{ref: main}", True),
        ("{ref: '${{ inputs.ref }}'}", True),
        ("{repository: org/target}", True),
    ],
)
def test_checkouts(arguments: str, others: bool) -> None:
    made = step(f"uses: actions/checkout@v4\nwith: {arguments}")
    assert made.uses is not None
    assert checks_out_others(made, made.uses) is others
    other = step(f"uses: org/checkout@v4\nwith: {arguments}")
    assert other.uses is not None
    assert not checks_out_others(other, other.uses)
