"""The stage of a run: the copy of the repository, the shells, the substitutes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import ConfigurationError, LaunchError
from runner_e2e.workflow_audit import staging
from runner_e2e.workflow_audit.staging import Stage, find_act, lay_out

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOW = "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [%s]}}\n"


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def stage(workflow: Path, tmp_path: Path, **local: Path) -> Stage:
    base = tmp_path / "stage"
    base.mkdir()
    return lay_out(
        workflow, base, event={}, local_repositories={key.replace("__", "/"): value for key, value in local.items()}
    )


def test_a_lone_file_becomes_a_repository(tmp_path: Path) -> None:
    found = stage(put(tmp_path / "w.yml", WORKFLOW % "{run: x}"), tmp_path)
    assert found.workflow == found.repository / ".github" / "workflows" / "w.yml"
    status = subprocess.run(["git", "status", "--porcelain"], cwd=found.repository, capture_output=True, check=True)
    assert status.stdout == b""


def test_a_repository_is_copied_without_what_git_ignores(tmp_path: Path) -> None:
    root = tmp_path / "root"
    workflow = put(root / ".github" / "workflows" / "w.yml", WORKFLOW % "{run: x}")
    put(root / ".gitignore", "ignored\n")
    put(root / "ignored", "")
    put(root / "new file", "").chmod(0o755)
    (root / "link").symlink_to("nowhere")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "remote", "add", "origin", "git@github.com:own/repo.git"], cwd=root, check=True)
    found = stage(workflow, tmp_path)
    copied = {path.name for path in found.repository.iterdir()} - {".git"}
    assert copied == {".github", ".gitignore", "new file", "link"}
    assert os.access(found.repository / "new file", os.X_OK)
    assert (found.base / "repository-name").read_text() == "own/repo\n"


def test_actions_that_cannot_be_had_are_all_named(tmp_path: Path) -> None:
    put(
        tmp_path / ".github" / "actions" / "x" / "action.yml", "runs: {using: composite, steps: [{uses: deep/down@v1}]}"
    )
    workflow = put(
        tmp_path / ".github" / "workflows" / "w.yml",
        WORKFLOW % "{uses: ./.github/actions/x}, {uses: one/two/sub@v3}, {uses: actions/checkout@abc}",
    )
    with pytest.raises(ConfigurationError) as caught:
        stage(workflow, tmp_path)
    assert [problem.what.split()[0] for problem in caught.value.problems] == ["deep/down@v1", "one/two/sub@v3"]
    assert "--local-repository one/two@v3=DIR" in caught.value.problems[1].fix


def test_a_directory_that_stands_for_an_action_is_read_too(tmp_path: Path) -> None:
    put(tmp_path / "action" / "action.yml", "runs: {using: composite, steps: [{uses: ab/cd@e}]}")
    workflow = put(tmp_path / "w.yml", WORKFLOW % "{uses: one/two@v3}")
    with pytest.raises(ConfigurationError, match="ab/cd@e cannot be fetched"):
        stage(workflow, tmp_path, **{"one__two@v3": tmp_path / "action"})


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_shell_at_the_gate_hides_itself_and_passes_the_status_on(tmp_path: Path, shell: str) -> None:
    found = stage(put(tmp_path / "w.yml", WORKFLOW % "{run: x}"), tmp_path)
    gate, answer = os.open(found.gate, os.O_RDWR), os.open(found.answer, os.O_RDWR)
    try:
        os.write(answer, b"go\ngo\n")
        done = subprocess.run(
            [found.shells / shell, "-c", 'echo "$PATH|$1"; exit 7', "x", "a b"],
            env={key.decode(): value.decode() for key, value in found.environ().items()},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        begin, end = os.read(gate, 4096).decode().splitlines()
    finally:
        os.close(gate)
        os.close(answer)
    assert (done.returncode, done.stdout) == (7, f"{os.environ['PATH']}|a b\n")
    assert begin.split()[0::2] == ["begin", shell]
    assert end == f"end {begin.split()[1]} 7"


def test_the_job_around_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    found = stage(put(tmp_path / "w.yml", WORKFLOW % "{run: x}"), tmp_path)
    assert b"secret" not in found.environ().values()


def test_act_must_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert find_act().endswith("/act")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    with pytest.raises(LaunchError, match="act is not installed"):
        find_act()


def test_git_must_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="git cannot be started"):
        staging.commit(tmp_path, "own/repo")
