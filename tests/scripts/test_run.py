"""``command: run`` as a runner starts it: outputs, annotations, summary and status, with real harnesses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner_e2e.report.fields import parse_document
from runner_e2e.report.results import result_from

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "run.py"
CANARY = "suite.profile.local.canary-51f2d8"
CATALOG = """
harness: { command: [python3, harness.py] }
profiles: { profile: }
environments: { local: }
suites:
  suite: { profiles: [profile], environments: [local], cases: [canary-51f2d8] }
timeout: 30s
grace: 1s
"""
CLAIMED = {"GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "1", "RUNNER_E2E_INPUT_CLAIM": "manual-7:7:1"}
START = """
import json, os, pathlib, sys, time
def tell(verdict, usage={"cost_usd": 0.25}, **failure):
    result = {"schema": "runner-e2e.harness-result/v1", "verdict": verdict, "usage": usage}
    if failure:
        result["failure"] = failure
    pathlib.Path(os.environ["RUNNER_E2E_RESULT"]).write_text(json.dumps(result))
"""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A target with a harness, and what a runner gives to the step."""

    directory: Path
    environ: dict[str, str]

    def start(self, harness: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command, variables = self.command(harness, **environ)
        return subprocess.run(command, cwd=self.directory, env=variables, capture_output=True, text=True, check=False)

    def command(self, harness: str, **environ: str) -> tuple[list[str], dict[str, str]]:
        (self.directory / "harness.py").write_text(START + harness)
        variables = {name: value for name, value in {**self.environ, **environ}.items() if value}
        return [sys.executable, "-I", str(SCRIPT)], variables

    @property
    def outputs(self) -> dict[str, str]:
        text = Path(self.environ["GITHUB_OUTPUT"]).read_text()
        return dict(re.findall(r"^([a-z-]+)<<\S+\n(.*?)\nrunner-e2e-", text, re.MULTILINE | re.DOTALL))

    @property
    def summary(self) -> str:
        return Path(self.environ["GITHUB_STEP_SUMMARY"]).read_text()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    target = tmp_path / "target"
    (target / ".github").mkdir(parents=True)
    (target / ".github" / "runner-e2e.yml").write_text(CATALOG)
    return Job(
        directory=target,
        environ={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "PAPERCLIP_RUNNER_E2E_SELECTED_ID": CANARY,
            "INPUT_SOMETHING": f"of act: {CANARY}",
        },
    )


def obeyed(log: str) -> list[str]:
    """The commands that the runner obeys: those outside of stopped parts, whose tokens must match."""
    commands, token = [], ""
    for line in log.splitlines():
        if token:
            token = "" if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.rpartition("::")[2]
        elif line.startswith("::"):
            commands.append(line)
    assert not token, "commands stay stopped"
    return commands


def test_a_cell_that_passes(job: Job) -> None:
    done = job.start(
        """
print("my case is", os.environ["PAPERCLIP_RUNNER_E2E_SELECTED_ID"])
print("::error::injected")
print("::add-mask::e")
tell("passed")
"""
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = job.outputs
    handle = outputs["handle"]
    assert re.fullmatch(r"cell-[0-9a-f]{16}", handle)
    assert outputs == {
        "verdict": "passed", "handle": handle, "failure-class": "", "attempts": "1", "cost-usd": "0.250000",
        "result": outputs["result"], "results": outputs["result"],
    }  # fmt: skip
    assert json.loads(Path(outputs["result"]).read_text())["id"] == CANARY
    assert "  my case is ***\n" in done.stdout
    assert obeyed(done.stdout) == [f"::group::{handle}: attempt 1 of 2", "::endgroup::"]
    assert f"### ✅ {handle}: passed" in job.summary
    assert "| 1 of 2 | passed |" in job.summary
    assert "| $0.2500 |" in job.summary
    for text in (done.stdout, done.stderr, job.summary, Path(job.environ["GITHUB_OUTPUT"]).read_text()):
        assert "canary" not in text


def test_a_cell_that_fails_is_told_without_effect_of_what_the_harness_wrote(job: Job) -> None:
    done = job.start(
        """
message = f"wrong | answer in {os.environ['PAPERCLIP_RUNNER_E2E_SELECTED_ID']}\\n::warning::x ![i](http://h/)"
tell("failed", usage={}, **{"class": "candidate_failure", "message": message})
"""
    )
    assert done.returncode == 1, done.stdout + done.stderr
    outputs = job.outputs
    assert (outputs["verdict"], outputs["failure-class"], outputs["cost-usd"]) == ("failed", "candidate_failure", "")
    (annotation,) = [line for line in obeyed(done.stdout) if "group" not in line]
    assert annotation.startswith(f"::error title={outputs['handle']}%3A candidate_failure::wrong | answer in ***")
    (row,) = [line for line in job.summary.splitlines() if line.startswith("| 1 of 2")]
    assert row.count("|") == 6
    assert "![" not in row
    assert "unknown" in row
    assert "canary" not in done.stdout + done.stderr + job.summary


def test_a_second_attempt_is_shown_with_the_cost_of_both(job: Job) -> None:
    done = job.start(
        """
first = pathlib.Path("first")
if first.exists():
    tell("passed")
else:
    first.touch()
    tell("failed", **{"class": "transient_infrastructure", "message": "overloaded"})
"""
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (job.outputs["attempts"], job.outputs["cost-usd"]) == ("2", "0.500000")
    assert "/attempt-2/result.json" in job.outputs["result"]
    # The first attempt has cost something too.
    assert [path.rpartition("/attempt-")[2] for path in job.outputs["results"].splitlines()] == [
        "1/result.json", "2/result.json",
    ]  # fmt: skip
    assert [line for line in job.summary.splitlines() if line.startswith("| 1 of 2 | failed")]
    assert [line for line in job.summary.splitlines() if line.startswith("| 2 of 2 | passed")]
    assert "| all | |" in job.summary
    assert len([line for line in obeyed(done.stdout) if line.startswith("::group::")]) == 2


def test_a_cancelled_job_has_its_result(job: Job) -> None:
    command, variables = job.command("print('ready', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen(
        command, cwd=job.directory, env=variables, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdout
        log = []
        for line in process.stdout:
            log.append(line)
            if "ready" in line:
                break
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        log.append(process.stdout.read())
        status = process.wait(timeout=60)
    assert status == 130
    assert time.monotonic() - began < 30
    assert job.outputs["verdict"] == "failed"
    assert Path(job.outputs["result"]).is_file()
    assert "### ❌" in job.summary
    assert [line for line in obeyed("".join(log)) if line.startswith("::error title=cell-")]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"PAPERCLIP_RUNNER_E2E_SELECTED_ID": ""}, "PAPERCLIP_RUNNER_E2E_SELECTED_ID is not set"),
        ({"PAPERCLIP_RUNNER_E2E_SELECTED_ID": "suite.profile.local.absent-51f2d8"}, "names no cell that may run"),
        ({"PAPERCLIP_RUNNER_E2E_SELECTED_ID": "canary; rm -rf /"}, "fix: "),
        ({"RUNNER_E2E_INPUT_CONFIGURATION": "absent.yml"}, "absent.yml"),
        ({"RUNNER_E2E_INPUT_OUTPUT": "/proc/nowhere"}, "the output directory /proc/nowhere cannot be written to"),
        ({"RUNNER_E2E_CAMPAIGN_KEY": "short"}, "RUNNER_E2E_CAMPAIGN_KEY"),
    ],
)
def test_bad_input_is_one_clear_error_and_starts_nothing(environ: dict[str, str], message: str, job: Job) -> None:
    done = job.start("pathlib.Path('started').touch()\n", **environ)
    assert done.returncode == 2, done.stdout + done.stderr
    (annotation,) = obeyed(done.stdout)
    assert annotation.startswith("::error ")
    assert message in annotation
    assert "fix: " in annotation
    assert not (job.directory / "started").exists()
    assert "Traceback" not in done.stdout + done.stderr
    for value in (CANARY, "51f2d8", "rm -rf", "short"):
        assert value not in done.stdout + done.stderr or value in message


def test_a_refusal_before_anything_is_started_leaves_a_record_that_nothing_was_paid(job: Job) -> None:
    """Without it the cost of the cell would be unknown, and what was reserved for it would stay reserved."""
    path = job.directory / ".github" / "runner-e2e.yml"
    path.write_text(CATALOG.replace("{ profile: }", "{ profile: { credential: KEY } }") + "credentials: { KEY: }\n")
    done = job.start("tell('passed')", KEY=" ", **CLAIMED)
    assert done.returncode == 2, done.stdout + done.stderr
    assert obeyed(done.stdout)[-1].startswith("::error title=runner-e2e run::KEY is not set")
    outputs = job.outputs
    assert (outputs["verdict"], outputs["attempts"], outputs["cost-usd"]) == ("not_run", "0", "0.000000")
    assert outputs["results"] == outputs["result"]
    record = result_from(parse_document(Path(outputs["result"]).read_bytes()))
    assert (record.id, record.handle, record.verdict) == (CANARY, outputs["handle"], "not_run")
    assert record.usage.cost_usd == 0.0
    assert CANARY not in done.stdout + done.stderr


def test_a_refusal_that_cannot_be_recorded_is_told(job: Job) -> None:
    path = job.directory / ".github" / "runner-e2e.yml"
    path.write_text(CATALOG.replace("{ profile: }", "{ profile: { credential: KEY } }") + "credentials: { KEY: }\n")
    (job.directory / ".runner-e2e").write_text("a file")
    done = job.start("tell('passed')", **CLAIMED)
    assert done.returncode == 2, done.stdout + done.stderr
    (error,) = obeyed(done.stdout)
    assert "run: nothing was paid, and that cannot be recorded: " in done.stdout
    assert error.startswith("::error title=runner-e2e run::KEY is not set")


def test_each_mistake_of_a_catalog_is_shown_at_its_line(job: Job) -> None:
    path = job.directory / ".github" / "runner-e2e.yml"
    path.write_text(CATALOG.replace("timeout: 30s", "timeout: soon\nretries: 7"))
    done = job.start("")
    assert done.returncode == 2
    lines = obeyed(done.stdout)
    assert len(lines) == 2
    assert lines[0].startswith("::error title=runner-e2e run,file=.github/runner-e2e.yml,line=7,col=10::")
    assert lines[1].startswith("::error title=runner-e2e run,file=.github/runner-e2e.yml,line=8,col=10::")


def test_a_defect_shows_where_and_nothing_of_its_message(job: Job) -> None:
    """A Python without our packages stands for everything that we did not foresee."""
    _, variables = job.command("")
    python = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run(
        [python, "-I", "-S", str(SCRIPT)], cwd=job.directory, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert re.fullmatch(
        r"::error title=runner-e2e run::defect: ModuleNotFoundError at \S+\.py:\d+%0Afix: report it with this line\n",
        done.stdout,
    )
    assert not done.stderr
