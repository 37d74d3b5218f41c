"""The base hidden set: own sources, every Git store that serves the target, all output, the runner's files."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from runner_e2e.engine import policy as engine_policy
from runner_e2e.engine.policy import git_stores, hidden_set, policy_document
from runner_e2e.errors import UsageError
from runner_e2e.sandbox.policy_json import parse_policy

if TYPE_CHECKING:
    from pathlib import Path


def git(directory: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def test_the_store_of_a_clone_also_from_a_directory_inside_it(clone: Path) -> None:
    inside = clone / "packages" / "product"
    inside.mkdir(parents=True)
    assert git_stores(clone) == [clone / ".git"]
    assert git_stores(inside) == [clone / ".git"]


def test_a_worktree_has_its_own_store_and_the_common_one(clone: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert git_stores(tmp_path / "tree") == [
        tmp_path / "tree" / ".git",
        clone / ".git" / "worktrees" / "tree",
        clone / ".git",
    ]


def test_a_submodule_is_served_by_its_superproject(clone: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(clone), "inner")
    assert git_stores(outer / "inner") == [outer / "inner" / ".git", outer / ".git" / "modules" / "inner"]


def test_a_damaged_git_file_is_itself_hidden(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"gitdir \xff")
    assert git_stores(tmp_path) == [tmp_path / ".git"]


def test_without_git_there_is_nothing(tmp_path: Path) -> None:
    assert [store for store in git_stores(tmp_path) if store.is_relative_to(tmp_path)] == []


def test_the_default_is_tests_where_it_exists(tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert tmp_path / "tests" not in hidden_set(target=tmp_path, output=output, hide=()).paths
    (tmp_path / "tests").mkdir()
    found = hidden_set(target=tmp_path, output=output, hide=())
    assert {tmp_path / "tests", output} <= set(found.paths)
    assert found.absent == ()


def test_named_paths_are_resolved_and_absent_ones_are_told(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    found = hidden_set(target=tmp_path, output=tmp_path / "out", hide=("link", "gone"))
    assert tmp_path / "real" in found.paths
    assert found.absent == ("gone",)
    assert tmp_path / "gone" in found.if_present


@pytest.mark.parametrize("name", ["..", "../elsewhere", "/etc", "."])
def test_nothing_outside_the_target_can_be_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not below the target's root"):
        hidden_set(target=tmp_path, output=tmp_path / "out", hide=(name,))


def test_the_files_of_the_runner_are_added(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.touch()
    found = hidden_set(target=tmp_path, output=tmp_path / "o", hide=(), runner_files=[event, tmp_path / "none"])
    assert {event, tmp_path / "none"} <= set(found.if_present)


def test_the_policy_shows_the_own_instance_alone(tmp_path: Path) -> None:
    output = tmp_path / "out"
    document = policy_document(
        hidden_set(target=tmp_path, output=output, hide=()),
        instance=output / "campaign" / "cell" / "instance",
        confidential=["CELL"],
    )
    output.mkdir()
    (output / "campaign" / "cell" / "instance").mkdir(parents=True)
    policy = parse_policy(json.dumps(document), path="policy.json")
    assert {"CELL", "RUNNER_E2E_*"} <= set(policy.environment.drop)
    assert document["schema"] == "runner-e2e.sandbox-policy/v1"
    assert str(output) in document["hide"]  # type: ignore[operator]
    assert document["expose"] == [str(output / "campaign" / "cell" / "instance")]


def test_a_local_clone_hides_the_store_it_came_from(clone: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    git(tmp_path, "clone", "--quiet", str(clone), str(second))
    assert git_stores(second) == [second / ".git", clone / ".git"]


def test_a_store_that_borrows_objects_hides_where_from(clone: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    git(tmp_path, "clone", "--quiet", "--shared", str(clone), str(second))
    assert git_stores(second) == [second / ".git", clone / ".git", clone / ".git" / "objects"]


def test_a_remote_elsewhere_or_gone_adds_nothing(clone: Path) -> None:
    git(clone, "remote", "add", "origin", "/no/such/place.git")
    git(clone, "remote", "add", "other", "https://example.org/x.git")
    assert git_stores(clone) == [clone / ".git"]


def test_clones_on_one_disk_share_files_and_may(clone: Path, tmp_path: Path) -> None:
    hidden = hidden_set(target=clone, output=tmp_path / "output", hide=())
    document = policy_document(hidden, instance=tmp_path / "output" / "instance", confidential=())
    assert document["allow_hard_links_in"] == [str(clone / ".git")]


def test_the_engines_own_code_is_read_only_for_agents_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = hidden_set(target=tmp_path, output=tmp_path / "output", hide=())
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(engine_policy, "own_code", lambda: (str(tmp_path), str(tmp_path / "none")))
    document = policy_document(hidden, instance=tmp_path / "output" / "instance", confidential=())
    assert document["read_only"] == [str(tmp_path)]
    monkeypatch.setattr("os.geteuid", lambda: 0)
    document = policy_document(hidden, instance=tmp_path / "output" / "instance", confidential=())
    assert document["read_only"] == []
