"""``lint --fix`` and ``--diff`` from the outside: files, streams, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.cli.group import run
from runner_e2e.cli.tag_commits import TagCommits
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[..., tuple[int, str, str]]

BEFORE = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: |  # ä
          case "${{ inputs.selected-id }}" in *) ;; esac
          tool ${{ toJSON(inputs.selected-id) }}
"""
SAFE = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: |  # ä
          case "$INPUTS_SELECTED_ID" in *) ;; esac
          tool ${{ toJSON(inputs.selected-id) }}
        env:
          INPUTS_SELECTED_ID: ${{ inputs.selected-id }}
"""
FILE = Path(".github/workflows/w.yml")
ONLY = ("--select", "confidential-script-file", "--select", "unpinned-uses", "--profile", "all")


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / FILE).write_text(BEFORE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(name="call")
def _call(capsysbinary: pytest.CaptureFixture[bytes]) -> Call:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["lint", *ONLY, *arguments])
        shown = capsysbinary.readouterr()
        return code, shown.out.decode(), shown.err.decode()

    return call


def test_a_preview_is_a_patch_and_writes_nothing(call: Call) -> None:
    code, out, err = call("--diff", ".github")
    assert code == 1  # the findings are there still
    assert err == (
        "1 finding would be fixed in 1 file (confidential-script-file: 1); "
        "1 more with --fix=all, which may change what a workflow does\n"
    )
    assert FILE.read_text() == BEFORE
    subprocess.run(["git", "apply", "-"], input=out.encode(), check=True, env=os.environ | {"GIT_DIR": "/nonexistent"})
    assert FILE.read_text() == SAFE


def test_safe_fixes_are_written_and_the_rest_is_reported(call: Call) -> None:
    code, out, err = call("--fix", ".github")
    assert FILE.read_text() == SAFE
    assert code == 1
    assert out.count("confidential-script-file, high confidence]") == 1
    assert err.startswith("1 finding fixed in 1 file (confidential-script-file: 1); 1 more with --fix=all")
    assert call("--fix=safe")[2].startswith("0 findings fixed in 0 files; 1 more")
    assert FILE.read_text() == SAFE


def test_all_fixes_are_written(call: Call) -> None:
    code, out, err = call("--fix=all")
    assert (code, out) == (0, "no findings in 1 file\n")
    assert err == "2 findings fixed in 1 file (confidential-script-file: 2)\n"
    assert "tool $TOJSON_INPUTS_SELECTED_ID" in FILE.read_text()
    after = FILE.read_text()
    assert call("--fix=all")[2] == "0 findings fixed in 0 files\n"
    assert FILE.read_text() == after


def test_a_preview_of_all_fixes(call: Call) -> None:
    out = call("--diff", "--fix=all")[1]
    assert "+          tool $TOJSON_INPUTS_SELECTED_ID\n" in out
    assert FILE.read_text() == BEFORE


def test_without_findings_a_preview_is_empty(call: Call) -> None:
    FILE.write_text("on: push\njobs: {a: {runs-on: x, steps: [{run: echo}]}}\n")
    assert call("--diff") == (0, "", "0 findings would be fixed in 0 files\n")


def test_a_preview_says_how_much_it_leaves(call: Call) -> None:
    FILE.write_text(BEFORE.replace("- run: |", "- shell: python\n        run: |"))
    code, out, err = call("--diff")
    assert (code, out) == (1, "")
    assert err == "0 findings would be fixed in 0 files; 2 without a fix\n"


def test_a_path_after_a_bare_fix_is_a_path(call: Call) -> None:
    code, _, err = call("--fix", "absent.yml")
    assert code == 2
    assert "there is no file absent.yml" in err
    assert call("--fix=some")[0] == 2
    assert "there is no file --fix" in call("--", "--fix")[2]


def test_a_read_only_file_is_named(call: Call) -> None:
    FILE.chmod(0o444)
    code, _, err = call("--fix")
    assert code == 2
    assert f"{FILE}: the file is read-only" in err
    assert f"chmod u+w {FILE}" in err
    assert FILE.read_text() == BEFORE


def test_options_that_exclude_each_other(call: Call) -> None:
    assert "`--trace` repairs nothing" in call("--fix", "--trace", f"{FILE}:7")[2]
    assert "`--resolve` is about fixes" in call("--resolve")[2]


def test_reports_of_machines_hold_the_fixes(call: Call) -> None:
    found = json.loads(call("--format", "sarif")[1])
    fixes = [result.get("fixes") for result in found["runs"][0]["results"]]
    assert sum(1 for fix in fixes if fix) == 2


# --- commits of tags


@pytest.fixture(name="hub")
def _hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A repository ``o/action`` that git finds at github.com; names -> commits."""
    root = tmp_path / "hub" / "o" / "action"
    root.mkdir(parents=True)

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"]
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    first = git("rev-parse", "HEAD")
    git("tag", "v1")
    git("commit", "-q", "--allow-empty", "-m", "second")
    git("tag", "-a", "-m", "two", "v2")
    git("tag", "main")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{tmp_path}/hub/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    return {"v1": first, "v2": git("rev-parse", "HEAD"), "tag object": git("rev-parse", "v2")}


def test_git_knows_the_commits_of_tags(hub: dict[str, str]) -> None:
    commits = TagCommits()
    assert commits.resolve("o/action", "v1") == hub["v1"]
    assert commits.resolve("O/Action", "v2") == hub["v2"] != hub["tag object"]
    assert commits.resolve("o/action", "v3") is None
    assert commits.resolve("o/action", "main") is None  # a tag and a branch


def test_a_repository_that_is_not_there_is_an_error(hub: dict[str, str]) -> None:
    assert hub
    with pytest.raises(UsageError, match=r"cannot ask github\.com for the tags of o/absent"):
        TagCommits().resolve("o/absent", "v1")


def test_actions_are_pinned_to_the_commits_of_their_tags(hub: dict[str, str], call: Call) -> None:
    head = "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n"
    text = f"{head}      - uses: o/action/sub@v2 # why\n      - uses: o/action@v3\n"
    FILE.write_text(text)
    assert call("--fix=all")[2] == "0 findings fixed in 0 files\n"
    code, out, err = call("--fix", "--resolve")
    assert err == "1 finding fixed in 1 file (unpinned-uses: 1)\n"
    assert FILE.read_text() == text.replace("sub@v2", f"sub@{hub['v2']} # v2")
    assert "`o/action@v3` is not pinned" in out
    assert code == 0  # notes
