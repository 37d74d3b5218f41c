"""`--since`: findings that have to do with changed files, and what git cannot tell."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import UsageError
from runner_e2e.lint.changes import changes_since
from runner_e2e.lint.linter import lint
from runner_e2e.lint.selection import Selection

if TYPE_CHECKING:
    from pathlib import Path

RULES = Selection(select=frozenset({"confidential-argv", "unused-ignore"}))
DISPATCH = "on: {workflow_dispatch: {inputs: {selected-id: {required: true}, other: {required: true}}}}\n"
JOB = DISPATCH + "jobs: {a: {runs-on: x, steps: [%s]}}\n"
LEAK = JOB % "{run: 'tool \"$ID\"', env: {ID: '${{ inputs.selected-id }}'}}"
CALLER = JOB % "{uses: ./say, with: {it: '${{ inputs.selected-id }}'}}"
ACTION = """\
inputs: {it: {required: true}}
runs:
  using: composite
  steps: [{run: '%s "$IT"', shell: bash, env: {IT: '${{ inputs.it }}'}}]
"""


def git(root: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip
    command = ["git", "-C", str(root), "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    root = tmp_path / "r"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for name in ("a", "b"):
        write(root, f".github/workflows/{name}.yml", LEAK)
    write(root, ".github/workflows/caller.yml", CALLER)
    write(root, "say/action.yml", ACTION % "tool")
    write(root, "run.sh", "echo\n")
    commit(root)
    git(root, "checkout", "-q", "-b", "topic")
    return root


def paths(root: Path, revision: str = "main", current: Path | None = None) -> list[str]:
    current = current or root
    report = lint([root], current=current, selection=RULES, changes=changes_since(revision, current=current))
    assert report.problems == ()
    return [finding.span.path for finding in report.findings]


def test_without_changes_nothing_is_shown(root: Path) -> None:
    assert paths(root) == []


@pytest.mark.parametrize("how", ["committed", "staged", "working tree", "new", "intended"])
def test_a_changed_file_is_shown_whatever_git_knows_of_it(root: Path, how: str) -> None:
    name = "c" if how in {"new", "intended"} else "a"
    write(root, f".github/workflows/{name}.yml", LEAK.replace("tool", "gh"))
    if how == "committed":
        commit(root)
    elif how == "staged":
        git(root, "add", "-A")
    elif how == "intended":
        git(root, "add", "-N", f".github/workflows/{name}.yml")
    assert paths(root) == [f".github/workflows/{name}.yml"]


def test_changes_of_the_other_branch_do_not_count(root: Path) -> None:
    git(root, "checkout", "-q", "main")
    write(root, ".github/workflows/b.yml", LEAK.replace("tool", "gh"))
    commit(root)
    git(root, "checkout", "-q", "topic")
    write(root, ".github/workflows/a.yml", LEAK.replace("tool", "gh"))
    commit(root)
    assert paths(root) == [".github/workflows/a.yml"]
    assert paths(root, "HEAD~1") == [".github/workflows/a.yml"]


def test_a_finding_in_a_changed_action_is_shown(root: Path) -> None:
    write(root, "say/action.yml", ACTION % "gh")
    assert paths(root) == ["say/action.yml"]


def test_a_finding_whose_value_comes_from_a_changed_caller_is_shown(root: Path) -> None:
    write(root, ".github/workflows/caller.yml", f"# changed\n{CALLER}")
    assert paths(root) == ["say/action.yml"]


def test_a_changed_catalog_concerns_every_file(root: Path) -> None:
    write(root, ".github/runner-e2e.yml", "confidential: {inputs: [selected-id, case]}\n")
    assert len(paths(root)) == 3


def test_paths_count_from_the_current_folder(root: Path) -> None:
    write(root, ".github/workflows/a.yml", LEAK.replace("tool", "gh"))
    assert paths(root, current=root.parent if (root.parent / ".git").exists() else root / ".github") == [
        "workflows/a.yml"
    ]


def test_names_that_git_would_quote(root: Path) -> None:
    write(root, '.github/workflows/ü "x"\n.yml', LEAK)
    assert paths(root) == ['.github/workflows/ü "x"\n.yml']
    commit(root)
    assert paths(root) == ['.github/workflows/ü "x"\n.yml']


# --- What git cannot tell.


def refused(root: Path, revision: str) -> str:
    with pytest.raises(UsageError) as caught:
        changes_since(revision, current=root)
    assert caught.value.problem.fix
    return str(caught.value)


def test_an_unknown_revision(root: Path) -> None:
    assert "git knows no revision 'nope'" in refused(root, "nope")


@pytest.mark.parametrize("revision", ["--output=/tmp/x", "-n", ""])
def test_an_option_is_no_revision(root: Path, revision: str) -> None:
    assert "names no revision" in refused(root, revision)


def test_no_repository(tmp_path: Path) -> None:
    assert "is in none" in refused(tmp_path, "main")


def test_a_shallow_clone_says_how_to_fetch_more(root: Path, tmp_path: Path) -> None:
    commit(root)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", str(clone))
    said = refused(clone, "main")
    assert "fetch-depth: 0" in said
    git(clone, "fetch", "-q", "--depth", "1", "origin", "main")
    write(clone, "x", "")
    said = refused(clone, "FETCH_HEAD")
    assert "shallow" in said
    assert "fetch-depth: 0" in said


def test_another_history(root: Path) -> None:
    git(root, "checkout", "-q", "--orphan", "other")
    write(root, "other", "")
    commit(root)
    assert "no commit in common" in refused(root, "main")


def test_no_git(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "needs git" in refused(root, "main")


def test_a_changed_submodule_holds_all_its_files(root: Path, tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    git(above, "init", "-q")
    git(above, "submodule", "--quiet", "add", str(root), "sub")
    commit(above)
    known = changes_since("HEAD", current=above)
    assert not lint([above / "sub"], current=above, changes=known, selection=RULES).findings
    write(above, "sub/.github/workflows/a.yml", f"{LEAK}# changed\n")
    changed = changes_since("HEAD", current=above)
    found = lint([above / "sub"], current=above, changes=changed, selection=RULES).findings
    assert "sub/.github/workflows/a.yml" in {finding.span.path for finding in found}
