"""Files of a repository: found from where a script stands, never outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.repository import Repository, find_root
from runner_e2e.lint.shell.results import Files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="repository")
def _repository(tmp_path: Path) -> Repository:
    root = tmp_path / "repository"
    for name, text in {
        ".github/workflows/w.yml": "on: push\n",
        "run.sh": "root\n",
        "sub/run.sh": "sub\n",
        "say/action.yaml": "runs: {using: composite}\n",
        "bad/action.yml": "a: [\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "outside.sh").write_text("outside\n")
    (root / "link.sh").symlink_to(tmp_path / "outside.sh")
    (root / "inside.sh").symlink_to(root / "run.sh")
    (root / "binary").write_bytes(b"\0\1")
    (root / "latin").write_bytes(b"\xe9")
    return Repository(root)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("run.sh", "root\n"), ("./run.sh", "root\n"), ("sub/../run.sh", "root\n"), ("inside.sh", "root\n"),
        ("link.sh", None), ("../outside.sh", None), ("/etc/hostname", None), ("absent", None), ("sub", None),
        ("binary", None), ("latin", None), ("x" * 5000, None), ("a\0b", None),
    ],
)  # fmt: skip
def test_only_text_files_inside_are_read(repository: Repository, path: str, text: str | None) -> None:
    assert repository.text(path) == text
    script = repository.script(path)
    assert (script.text if script is not None else None) == text


@pytest.mark.parametrize(
    ("directory", "path", "text"),
    [
        ("/github/workspace", "run.sh", "root\n"),
        ("/github/workspace/sub", "run.sh", "sub\n"),
        ("/github/workspace/sub", "../run.sh", "root\n"),
        ("/github/workspace/sub", "/github/workspace/run.sh", "root\n"),
        ("/github/workspace", "/github/workspace/../../etc/hostname", None),
        ("/github/workspace", "/etc/hostname", None),
    ],
)
def test_a_script_is_found_from_the_working_directory(
    repository: Repository, directory: str, path: str, text: str | None
) -> None:
    files = repository.seen_from(Files(), directory)
    assert files.find_script is not None
    found = files.find_script(path)
    assert (found.text if found is not None else None) == text


def test_actions_have_two_names_and_wrong_ones_raise(repository: Repository) -> None:
    found = repository.action("./say")
    assert found is not None
    assert found[0] == "say/action.yaml"
    assert repository.action("./absent") is None
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="not valid YAML"):
            repository.action("./bad")


def test_the_root_is_the_nearest_folder_with_git_or_workflows(tmp_path: Path, repository: Repository) -> None:
    root = repository.root
    assert find_root(root / ".github" / "workflows" / "w.yml") == root
    assert find_root(root / "sub" / "run.sh") == root
    inner = root / "sub" / "inner"
    (inner / ".git").mkdir(parents=True)
    assert find_root(inner / "x.yml") == inner
    assert find_root(tmp_path / "alone.yml") == tmp_path
