"""The hook, as pre-commit itself installs and runs it: from a Git repository, into an environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

REPOSITORY = Path(__file__).resolve().parents[3]
HOOKS = REPOSITORY / ".pre-commit-hooks.yaml"
WHEELS = REPOSITORY / ".venv" / "wheels"
PRE_COMMIT = Path(sys.executable).parent / "pre-commit"
WORKFLOW = """\
on:
  workflow_dispatch:
    inputs:
      selected-id:
        required: true
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: tool --id "$ID"
        env:
          ID: ${{ inputs.selected-id }}
"""


def commit(root: Path) -> str:
    """Makes *root* a Git repository with one commit of everything; returns the commit."""
    git = ["git", "-C", str(root), "-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True, env=environment)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """This repository as a user's pre-commit clones it."""
    root = tmp_path / "published"
    shutil.copytree(REPOSITORY / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE", HOOKS.name):
        shutil.copy2(REPOSITORY / name, root)
    commit(root)
    return root


def run_hook(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(root.parent), "PRE_COMMIT_HOME": str(root.parent / "pre-commit"),
        # The packages come from a directory, so that they are installed for real and need no network.
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS), "PIP_NO_COMPILE": "1", "PIP_CONFIG_FILE": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1",
    }  # fmt: skip
    command = [str(PRE_COMMIT), "run", "--all-files", "--color", "never"]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_the_hook_reports_what_is_committed_and_passes_when_it_is_corrected(tmp_path: Path, published: Path) -> None:
    user = tmp_path / "user"
    workflow = user / ".github" / "workflows" / "evaluate.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(WORKFLOW)
    (user / "other.yml").write_text("a: [")
    revision = subprocess.run(
        ["git", "-C", published, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (user / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {published}\n    rev: {revision}\n    hooks:\n      - id: runner-e2e-lint\n"
    )
    commit(user)

    done = run_hook(user)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "runner-e2e lint" in done.stdout
    assert "evaluate.yml:10:24: error: `inputs.selected-id` is an argument of `tool` [confidential-argv" in done.stdout
    assert '  10 |       - run: tool --id "$ID"\n' in done.stdout
    assert "other.yml" not in done.stdout

    workflow.write_text(WORKFLOW[: WORKFLOW.index("      - run:")] + "      - run: tool\n")
    done = run_hook(user)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^runner-e2e lint\.+Passed$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        (".github/workflows/a.yml", True),
        (".github/workflows/a.yaml", True),
        (".github/workflows/folder/a.yml", False),
        (".github/dependabot.yml", False),
        ("workflow-templates/a.yml", True),
        ("workflows-templates/a.yml", True),
        ("action.yml", True),
        ("deep/er/action.yaml", True),
        ("transaction.yml", False),
        ("workflow-templates/a.properties.json", False),
    ],
)
def test_which_files_the_hook_takes(path: str, taken: bool) -> None:
    (hook,) = YAML(typ="safe").load(HOOKS)
    assert bool(re.search(hook["files"], path)) == taken
