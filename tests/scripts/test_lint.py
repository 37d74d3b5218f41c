"""``command: lint`` as a runner starts it: log, annotations, summary, SARIF file, outputs and status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e import bootstrap

if TYPE_CHECKING:
    from tests.scripts.conftest import Action

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "lint.py"
LEAK = """\
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
CLEAN = "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo hello\n"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A workspace, and what a runner gives to the step."""

    directory: Path
    environ: dict[str, str]

    def write(self, text: str, name: str = ".github/workflows/w.yml") -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def start(self, **environ: str) -> subprocess.CompletedProcess[str]:
        variables = {name: value for name, value in {**self.environ, **environ}.items() if value}
        return subprocess.run(
            [sys.executable, "-I", str(SCRIPT), "--ready"],
            cwd=self.directory, env=variables, capture_output=True, text=True, check=False,
        )  # fmt: skip

    @property
    def outputs(self) -> dict[str, str]:
        text = Path(self.environ["GITHUB_OUTPUT"]).read_text()
        return dict(re.findall(r"^([a-z-]+)<<\S+\n(.*?)\nrunner-e2e-", text, re.MULTILINE | re.DOTALL))

    @property
    def summary(self) -> str:
        return Path(self.environ["GITHUB_STEP_SUMMARY"]).read_text()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    workspace = tmp_path / "workspace"
    (workspace / ".git").mkdir(parents=True)
    (tmp_path / "temp").mkdir()
    return Job(
        directory=workspace,
        environ={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "GITHUB_ACTIONS": "true",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_SHA": "0" * 40,
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "RUNNER_TEMP": str(tmp_path / "temp"),
        },
    )


def obeyed(log: str) -> list[str]:
    """The lines that the runner takes for commands."""
    found, token = [], ""
    for line in log.splitlines():
        if token:
            token = "" if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif line.lstrip().startswith("::"):
            found.append(line)
    assert not token, "commands are obeyed again at the end"
    return found


def test_findings_are_told_in_every_place(job: Job) -> None:
    job.write(LEAK)
    done = job.start(RUNNER_E2E_INPUT_LINT_PROFILE="confidential")
    assert (done.returncode, done.stderr) == (1, "")
    sarif = Path(job.outputs["sarif-file"])
    assert sarif.is_relative_to(job.environ["RUNNER_TEMP"])
    results = json.loads(sarif.read_text())["runs"][0]["results"]
    assert str(len(results)) == job.outputs["findings"]
    (argv,) = [each for each in results if each["ruleId"] == "confidential-argv"]
    assert argv["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == ".github/workflows/w.yml"
    place = "file=.github/workflows/w.yml,line=10,col=24,endLine=10,endColumn=28"
    assert [
        line for line in obeyed(done.stdout) if f"::error title=confidential-argv (high confidence),{place}::" in line
    ]
    assert "Workflow lint: " in job.summary
    assert f"https://github.com/o/r/blob/{'0' * 40}/.github/workflows/w.yml#L10" in job.summary
    # The log has the report for a reader, in colour, and with a foldable heading.
    assert "::group::The whole report\n::stop-commands::" in done.stdout
    assert "\x1b[1;31m^^^^^\x1b[0m" in done.stdout


def test_a_clean_repository_needs_no_catalog(job: Job) -> None:
    job.write(CLEAN)
    done = job.start(RUNNER_E2E_INPUT_LINT_PROFILE="confidential")
    assert (done.returncode, done.stderr) == (0, "")
    assert job.outputs["findings"] == "0"
    assert json.loads(Path(job.outputs["sarif-file"]).read_text())["runs"][0]["results"] == []
    assert job.summary == "### ✅ Workflow lint: no findings in 1 file\n"
    assert [line for line in obeyed(done.stdout) if not line.startswith(("::group::", "::endgroup::"))] == []


def test_inputs_choose_paths_confidence_rules_and_the_file(job: Job) -> None:
    job.write(LEAK, "elsewhere/one.yml")
    job.write(LEAK, "elsewhere/two.yml")
    job.write("a: [", ".github/workflows/broken.yml")
    done = job.start(
        RUNNER_E2E_INPUT_PATHS="elsewhere/one.yml, elsewhere/two.yml",
        RUNNER_E2E_INPUT_FAIL_ON="never",
        RUNNER_E2E_INPUT_SARIF_FILE="results/lint.sarif",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(job.outputs["findings"]) >= 2
    assert (job.directory / "results" / "lint.sarif").is_file()
    assert "broken.yml" not in done.stdout


def test_a_baseline_leaves_out_what_is_known(job: Job) -> None:
    job.write(LEAK)
    environment = {**job.environ, "PYTHONPATH": str(SCRIPT.parent.parent / "src")}
    command = [sys.executable, "-m", "runner_e2e", "lint", "--write-baseline", "known.json", "--no-actionlint"]
    subprocess.run(command, cwd=job.directory, env=environment, check=True, capture_output=True)
    done = job.start(RUNNER_E2E_INPUT_BASELINE="known.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert job.outputs["findings"] == "0"
    assert "in the baseline" in job.summary


def test_what_cannot_be_read_is_status_two_and_the_rest_is_told(job: Job) -> None:
    job.write(LEAK)
    job.write("a: [", ".github/workflows/broken.yml")
    done = job.start()
    assert done.returncode == 2
    assert "file=.github/workflows/broken.yml" in done.stdout
    assert "is an argument of <code>tool</code>" in job.summary
    assert json.loads(Path(job.outputs["sarif-file"]).read_text())["runs"][0]["invocations"][0][
        "executionSuccessful"
    ] is False  # fmt: skip


def test_text_of_a_workflow_gives_no_command(job: Job) -> None:
    hostile = "::error::from the workflow ##[add-mask]x"
    job.write(LEAK.replace('tool --id "$ID"', f'tool "$ID" "{hostile}" \\x1b'))
    job.write(LEAK, ".github/workflows/::warning::a,b=c.yml")
    done = job.start()
    assert done.returncode == 1
    commands = obeyed(done.stdout)
    assert all(re.match(r"::(error|warning|notice) title=|::(end)?group::", line) for line in commands)
    assert not [line for line in commands if "from the workflow" in line.partition("::error ")[0]]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "there is nothing to lint%0Awhy: no workflow and no action was found in "),
        ({"RUNNER_E2E_INPUT_PATHS": "absent.yml"}, "there is no file absent.yml"),
        (
            {"RUNNER_E2E_INPUT_FAIL_ON": "always"},
            "the input `fail-on` is 'always'%0Afix: give one of low, medium, high",
        ),
        ({"RUNNER_E2E_INPUT_SHELLCHECK": "yes"}, "the input `shellcheck` is 'yes'"),
        (
            {"RUNNER_E2E_INPUT_LINT_PROFILE": "some"},
            "the input `lint-profile` is 'some'%0Afix: give one of confidential",
        ),
        ({"RUNNER_E2E_INPUT_BASELINE": "absent.json"}, "absent.json"),
        ({"RUNNER_E2E_INPUT_SARIF_FILE": "/proc/x/y"}, "the SARIF file /proc/x/y cannot be written"),
        ({"RUNNER_TEMP": ""}, "RUNNER_TEMP is not set"),
    ],
)
def test_bad_input_is_one_clear_error(environ: dict[str, str], message: str, job: Job) -> None:
    if environ and "RUNNER_E2E_INPUT_PATHS" not in environ:
        job.write(CLEAN)
    done = job.start(**environ)
    assert (done.returncode, done.stderr) == (2, "")
    (error,) = [line for line in obeyed(done.stdout) if line.startswith("::error ")]
    assert message in error
    assert "fix: " in error or "absent.json" in error


def test_shellcheck_that_is_asked_for_must_be_there(job: Job) -> None:
    job.write(CLEAN)
    done = job.start(RUNNER_E2E_INPUT_SHELLCHECK="true", PATH="/nonexistent")
    assert done.returncode == 2
    assert "`--shellcheck` needs shellcheck, and there is none on PATH" in done.stdout


def test_it_makes_its_environment_where_setup_has_not(action: Action) -> None:
    """The copy of the action has a lock without our packages: that is as far as it comes, in its own environment."""
    done = action.start("enter.py", {"RUNNER_E2E_INPUT_COMMAND": "lint"})
    lock = action.root / "requirements" / "runtime.txt"
    environment = bootstrap.environment_directory(action.temporary, lock)
    assert "lint: installing the locked packages, each checked against its hash" in done.stdout
    assert (environment / ".complete").is_file()
    assert re.search(r"::error title=runner-e2e lint::defect: ModuleNotFoundError at \S+\.py:\d+", done.stdout)
    again = action.start("enter.py", {"RUNNER_E2E_INPUT_COMMAND": "lint"})
    assert "installing" not in again.stdout


def test_a_secret_in_scope_is_refused_before_anything_is_installed(action: Action) -> None:
    done = action.start("enter.py", {"RUNNER_E2E_INPUT_COMMAND": "lint", "OPENAI_API_KEY": "sk-secret-value"})
    assert done.returncode == 3
    assert "in the environment of this step: OPENAI_API_KEY%0Awhy: lint installs packages" in done.stdout
    assert "sk-secret-value" not in done.stdout + done.stderr
    assert not list(action.temporary.iterdir())


def test_it_works_where_the_system_does_not_tell_which_processors_are_ours(job: Job, tmp_path: Path) -> None:
    """As on macOS: what Linux alone has is not there."""
    job.write(LEAK)
    without = tmp_path / "without_linux.py"
    without.write_text(
        "import os, runpy, sys\n"
        "for name in ('sched_getaffinity', 'memfd_create', 'pidfd_open', 'unshare', 'setns'):\n"
        "    if hasattr(os, name):\n        delattr(os, name)\n"
        "sys.platform = 'darwin'\n"
        f"sys.argv = [{str(SCRIPT)!r}, '--ready']\n"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", str(without)],
        cwd=job.directory,
        env=job.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert Path(job.outputs["sarif-file"]).stat().st_size > 0
