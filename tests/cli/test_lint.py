"""``runner-e2e lint`` as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.remote.test_archive import archive
from tests.remote.test_download import Reply, serving

from runner_e2e.cli.group import run
from runner_e2e.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
WORKFLOW = """\
on:
  workflow_dispatch:
    inputs:
      selected-id:
        required: true
jobs:
  a:
    runs-on: ubuntu-latest
    env:
      ID: ${{ inputs.selected-id }}
    steps:
      - run: |
          case=${ID##*.}
          tool "$case"
"""


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "w.yml").write_text(WORKFLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(name="call")
def _call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["lint", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def test_findings_make_the_exit_code_one(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("--select", "confidential-argv")
    assert code == 1
    assert ".github/workflows/w.yml:14:16: error: `inputs.selected-id` is an argument of `tool`" in out
    assert "\n     |                ^^^^^^^\n" in out
    assert "1 error in 1 file" in out  # the header of the log lists the variable


def test_a_clean_repository_is_zero(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".github/workflows/w.yml").write_text(WORKFLOW.replace("inputs.selected-id }}", "inputs.selected-id != '' }}"))
    assert call() == (0, "no findings in 1 file\n", "")


def test_what_cannot_be_read_is_two_and_the_rest_is_shown(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".github/workflows/x.yml").write_text("a: [")
    code, out, _ = call()
    assert code == 2
    assert ".github/workflows/x.yml:2:1: not valid YAML" in out or ".github/workflows/x.yml:1:5: not valid YAML" in out
    assert "is an argument of `tool`" in out
    assert "1 could not be checked" in out


def test_fail_on_sets_the_least_confidence(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".github/workflows/w.yml").write_text(WORKFLOW.replace('tool "$case"', 'tool "$(base64 <<< "$ID")"'))
    select = ("--select", "confidential-argv")
    code, out, _ = call("--format", "json", *select)
    (finding,) = json.loads(out)["findings"]
    assert finding["confidence"] == "low"
    assert code == 0
    assert call("--fail-on", "low", *select)[0] == 1


def test_notes_never_fail(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".github/runner-e2e.yml").write_text("lint: {rules: {confidential-argv: note}}\n")
    code, out, _ = call("--select", "confidential-argv")
    assert code == 0
    assert "note: `inputs.selected-id` is an argument of `tool`" in out


def test_paths_that_do_not_exist_are_a_usage_error(call: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = call("absent.yml")
    assert code == 2
    assert "there is no file absent.yml" in err


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_is_explained(call: Callable[..., tuple[int, str, str]], rule: str) -> None:
    code, out, _ = call("--explain", rule)
    assert code == 0
    assert out.startswith(f"{rule}: ")
    assert len(out.splitlines()) > 4


def test_a_rule_of_actionlint_is_explained_by_its_page(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("--explain", "actionlint/expression")
    assert code == 0
    assert out.startswith("actionlint/expression: ")
    assert "https://github.com/rhysd/actionlint/" in out


@pytest.mark.parametrize("option", ["--explain", "--select", "--ignore"])
def test_an_unknown_rule_is_told_with_the_one_that_was_meant(
    call: Callable[..., tuple[int, str, str]], option: str
) -> None:
    code, out, err = call(option, "secret-arg")
    assert (code, out) == (2, "")
    assert "there is no rule 'secret-arg'" in err
    assert "did you mean secret-argv?" in err


@pytest.mark.parametrize(
    "options",
    [("--select", ""), ("--select", ","), ("--ignore", " "), ("--select", "secret-argv", "--ignore", "secret-argv"),
     ("--select", "actionlint/events", "--ignore", "actionlint")],
)  # fmt: skip
def test_rules_that_come_to_none_are_refused(
    call: Callable[..., tuple[int, str, str]], options: tuple[str, ...]
) -> None:
    code, out, err = call(*options)
    assert (code, out) == (2, "")
    assert "leave" in err


def test_a_limit_of_time_is_a_number(call: Callable[..., tuple[int, str, str]]) -> None:
    assert call("--time-limit", "nan")[0] == 2
    assert call("--time-limit", "inf")[0] == 2


def test_trace_shows_the_variables_before_a_line(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("--trace", ".github/workflows/w.yml:14")
    assert code == 0
    assert 'before `tool "$case"`' in out
    assert "\n  ID = ….….….{inputs.selected-id}\n" in out
    assert "\n  case = {inputs.selected-id}\n" in out
    before = call("--trace", ".github/workflows/w.yml:13")[1]
    assert "  case = " not in before


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("w.yml", "has no line"),
        (".github/workflows/w.yml:3", "no command of a script"),
        ("absent.yml:3", "no file absent.yml"),
    ],
)
def test_trace_needs_a_command(call: Callable[..., tuple[int, str, str]], place: str, part: str) -> None:
    code, _, err = call("--trace", place)
    assert code == 2
    assert part in err


def test_paths_are_shown_from_the_current_folder(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    out = call(str(tmp_path / ".github" / "workflows"))[1]
    assert f"{tmp_path}/.github/workflows/w.yml:14:16" in out
    monkeypatch.chdir(tmp_path / ".github")
    assert "\nworkflows/w.yml:14:16" in "\n" + call("workflows/w.yml")[1]


def test_it_runs_as_a_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runner_e2e", "lint"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == ""
    assert "is an argument of `tool`" in done.stdout


# --- Which rules.


def rules(out: str) -> set[str]:
    return {finding["rule"] for finding in json.loads(out)["findings"]}


def test_rules_are_selected_and_ignored(call: Callable[..., tuple[int, str, str]]) -> None:
    everything = rules(call("--format", "json")[1])
    assert everything > {"confidential-argv"}
    assert rules(call("--format", "json", "--select", "confidential-argv,secret-argv")[1]) == {"confidential-argv"}
    assert rules(call("--format", "json", "--ignore", "confidential-argv")[1]) == everything - {"confidential-argv"}


def test_a_rule_that_the_catalog_switches_off_runs_when_it_is_selected(
    call: Callable[..., tuple[int, str, str]],
) -> None:
    Path(".github/runner-e2e.yml").write_text("lint: {rules: {confidential-argv: off}}\n")
    assert "confidential-argv" not in rules(call("--format", "json")[1])
    assert rules(call("--format", "json", "--select", "confidential-argv")[1]) == {"confidential-argv"}


def test_the_profile_of_the_command_line_goes_before_the_catalogs(call: Callable[..., tuple[int, str, str]]) -> None:
    by_profile = {rule.id: rule.profile for rule in RULES}
    Path(".github/workflows/w.yml").write_text(f"# runner-e2e: paid\n{WORKFLOW}")
    seen = {}
    for profile in ("confidential", "paid", "all"):
        Path(".github/runner-e2e.yml").write_text(f"lint: {{profile: {profile}}}\n")
        seen[profile] = rules(call("--format", "json")[1])
    assert rules(call("--format", "json", "--profile", "paid")[1]) == seen["paid"]
    assert seen["confidential"] < seen["paid"] <= seen["all"]
    assert all(by_profile[rule] == "confidential" for rule in seen["confidential"])
    Path(".github/runner-e2e.yml").unlink()
    assert rules(call("--format", "json")[1]) == seen["paid"]


def test_all_rules_are_listed_with_profile_level_and_fix(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = call("--list-rules")
    assert (code, err) == (0, "")
    profile, rows, profiles = "", {}, {}
    for line in out.splitlines()[5:]:
        if line.endswith("WHAT IT SAYS"):
            profile = line.split()[0].lower()
        elif line:
            rows[line.split()[0]] = line
            profiles[line.split()[0]] = profile
    assert profiles == {rule.id: rule.profile for rule in RULES}
    for rule in RULES:
        assert f" {rule.level} " in rows[rule.id]
        assert rows[rule.id].endswith(rule.summary)
        assert (" yes " in rows[rule.id].removesuffix(rule.summary)) == (rule.repair is not None)
    assert "confidential  no confidential value" in out


def test_where_nothing_is_to_lint_is_said(call: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, out, _ = call("empty")
    assert code == 0
    assert out.splitlines() == [
        "no findings in 0 files",
        "hint: no workflow and no action is there: lint at the root of a repository, or name files",
    ]


def test_rules_of_actionlint_alone_need_it(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "leave one of them out" in call("--select", "actionlint", "--no-actionlint")[2]
    monkeypatch.setattr("runner_e2e.lint.actionlint.find_actionlint", lambda: None)
    code, out, err = call("--select", "actionlint/events")
    assert (code, out) == (2, "")
    assert "there is none on PATH" in err
    assert call("--select", "actionlint/events,secret-argv")[0] == 0


# --- What is known.


def test_in_a_folder_of_the_repository_nothing_of_the_baseline_is_called_fixed(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".git").mkdir()
    assert call("--write-baseline", "b.json")[0] == 0
    monkeypatch.chdir(".github")
    assert "of the baseline" not in call("--baseline", "../b.json")[1]


def test_a_name_that_is_no_utf_8_is_remembered_and_known(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".git").mkdir()
    Path(".github/workflows/w.yml").rename(".github/workflows/\udcff.yml")
    first = call("--format", "json")
    assert call("--format", "json") == first == call("--format", "json", "--no-cache")
    assert call("--write-baseline", "b.json")[0] == 0
    code, out, _ = call("--baseline", "b.json")
    assert code == 0
    assert "of the baseline" not in out


def test_a_baseline_without_an_end_is_damaged(call: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = call("--baseline", "/dev/zero")
    assert code == 2
    assert "it has more than 64 MiB" in err


def test_a_baseline_holds_what_is_there_and_not_what_comes(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("--write-baseline", "baseline.json")
    assert code == 0
    assert "written to baseline.json" in out
    code, out, _ = call("--baseline", "baseline.json")
    assert code == 0
    Path(".github/workflows/x.yml").write_text(WORKFLOW.replace("tool", "gh"))
    code, out, _ = call("--baseline", "baseline.json", "--format", "json")
    assert code == 1
    assert {finding["path"] for finding in json.loads(out)["findings"]} == {".github/workflows/x.yml"}
    Path(".github/workflows/x.yml").unlink()
    Path(".github/workflows/w.yml").write_text("on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: echo}]}}\n")
    code, out, _ = call("--baseline", "baseline.json")
    assert code == 0
    assert "of the baseline" in out
    assert "`--write-baseline`" in out
    assert "of the baseline" not in call("--baseline", "baseline.json", "--select", "confidential-argv")[1]


def test_a_baseline_that_cannot_be_written_is_told_and_leaves_nothing(
    call: Callable[..., tuple[int, str, str]],
) -> None:
    code, _, err = call("--write-baseline", "absent/baseline.json")
    assert code == 2
    assert "cannot write absent/baseline.json" in err
    code, _, err = call("--write-baseline", "baseline.json", "--since", "HEAD")
    assert code == 2
    assert "exclude each other" in err
    assert not Path("baseline.json").exists()


def test_since_shows_only_what_changed(call: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = call("--since", "main")
    assert code == 2
    assert "is in none" in err
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", ".github"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    assert call("--since", "main")[0] == 0
    Path(".github/workflows/x.yml").write_text(WORKFLOW)
    code, out, _ = call("--since", "main", "--format", "json")
    assert code == 1
    assert {finding["path"] for finding in json.loads(out)["findings"]} == {".github/workflows/x.yml"}


# --- The cache.


def test_results_are_remembered_where_the_options_say(call: Callable[..., tuple[int, str, str]]) -> None:
    first = call("--no-cache")
    assert not Path("cache").exists()
    for _ in range(3):
        assert call("--cache-dir", "here") == first
        time.sleep(0.05)  # a folder that changes while it is linted is not remembered, and this one did
    assert list(Path("here").iterdir())
    assert not Path("cache").exists()
    assert call() == call() == first
    Path("file").write_text("")
    code, _, err = call("--cache-dir", "file/cache")
    assert code == 2
    assert "cannot hold the cache" in err


# --- A repository of GitHub.


def test_a_repository_of_github_is_fetched_and_linted(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = archive(
        (".github/workflows/w.yml", WORKFLOW.replace('tool "$case"', './run.sh "$case"').encode()),
        ("run.sh", b'#!/bin/bash\ngh "$1"\n'),
    )
    with serving(
        {"/repos/org/repo/tarball/v1": Reply(body=data), "/repos/org/repo/tarball": Reply(body=data)}
    ) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        monkeypatch.setenv("GH_TOKEN", "secret-token")
        code, out, err = call("org/repo@v1", "--select", "confidential-argv")
        assert (code, err) == (1, "")
        assert "org/repo@v1:.github/workflows/w.yml:14:20: error:" in out
        assert '  14 |           ./run.sh "$case"' in out
        assert "org/repo@v1:run.sh:2:4: error:" in out
        code, out, _ = call("org/repo", "--select", "confidential-argv", "--format", "sarif")
        places = [
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            for result in json.loads(out)["runs"][0]["results"]
        ]
        assert places == [".github/workflows/w.yml", "run.sh"]
        code, _, err = call("org/absent")
        assert code == 3
        assert "there is no org/absent" in err
    assert [headers["authorization"] for _, headers in server.seen] == ["Bearer secret-token"] * 3


def test_a_baseline_of_a_repository_of_github(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = archive((".github/workflows/w.yml", WORKFLOW.encode()))
    with serving({"/repos/org/repo/tarball": Reply(body=data)}) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        assert call("org/repo", "--write-baseline", "baseline.json")[0] == 0
        assert json.loads(Path("baseline.json").read_text())["findings"][0]["path"] == ".github/workflows/w.yml"
        assert call("org/repo", "--baseline", "baseline.json")[0] == 0
        # The same files from a checkout have the same fingerprints.
        assert call("--baseline", "baseline.json")[0] == 0


@pytest.mark.parametrize("options", [["--since", "main"], ["--fix"], ["--diff"], ["--trace", "a:1"]])
def test_what_needs_files_here_is_refused(
    call: Callable[..., tuple[int, str, str]], options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = archive((".github/workflows/w.yml", WORKFLOW.encode()))
    with serving({"/repos/org/repo/tarball": Reply(body=data)}) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        code, _, err = call("org/repo", *options)
    assert code == 2
    assert f"`{options[0]}` needs files on this machine" in err


@pytest.mark.parametrize("name", ["workflows/absent.yml", ".github/absent", "cache/absent"])
def test_a_typing_mistake_is_no_repository(call: Callable[..., tuple[int, str, str]], name: str) -> None:
    Path("cache").mkdir()
    code, _, err = call(name)
    assert code == 2
    assert f"there is no file {name}" in err


def test_a_path_that_is_there_is_no_repository(call: Callable[..., tuple[int, str, str]]) -> None:
    Path("org/repo@v1").mkdir(parents=True)
    Path("org/repo@v1/w.yml").write_text(WORKFLOW)
    assert "org/repo@v1/w.yml:14:16" in call("org/repo@v1")[1]


def test_a_repository_is_linted_alone(call: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = call("org/repo@v1", ".github/workflows/w.yml")
    assert code == 2
    assert "org/repo@v1 is linted alone" in err
