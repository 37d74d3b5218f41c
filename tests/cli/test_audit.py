"""The command line of the audit: what it takes, where it writes, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ID = "smoke.codex.linux.readme-4711"
SOURCE = Path(__file__).resolve().parents[2] / "src"


def run(*words: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.run(
        [sys.executable, "-m", "runner_e2e", "audit", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
        cwd=cwd,
        timeout=120,
    )


def test_the_command_keeps_its_output_and_status() -> None:
    done = run("--selected-id-env", "CASE", "--", "sh", "-c", 'echo "$CASE"; exit 3', CASE=ID)
    assert (done.returncode, done.stdout) == (3, ID + "\n")
    assert "clean: none of 1 exec" in done.stderr
    assert ID not in done.stderr


def test_our_own_command_line_is_not_counted() -> None:
    done = run("--canary", ID, "--fail-on-leak", "--", "true")
    assert done.returncode == 0


def test_a_leak_fails_only_when_asked() -> None:
    words = ["--", "sh", "-c", '/bin/echo "$CASE" >/dev/null; exit 5']
    assert run("--selected-id-env", "CASE", *words, CASE=ID).returncode == 5
    done = run("--selected-id-env", "CASE", "--fail-on-leak", *words, CASE=ID)
    assert done.returncode == 1
    assert "LEAK: 1 of 2 execs" in done.stderr


def test_a_secret_of_any_form_can_be_followed() -> None:
    done = run(
        "--canary-env", "KEY", "--fail-on-leak", "--", "sh", "-c", "/bin/echo $KEY >/dev/null; :", KEY="sk-Ü/abc+12345"
    )
    assert done.returncode == 1


def test_what_was_not_seen_fails_too(tmp_path: Path) -> None:
    script = f"(until [ -e {tmp_path}/go ]; do sleep 0.1; done) >/dev/null 2>&1 &"
    done = run("--canary", ID, "--fail-on-leak", "--linger", "0.1", "--", "sh", "-c", script)
    assert done.returncode == 125
    assert "INCOMPLETE" in done.stderr
    (tmp_path / "go").touch()


def test_json_to_a_file_and_to_standard_error(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run("--canary", ID, "--json", "--report", str(report), "--", "echo", "hello")
    assert done.stdout == "hello\n"
    assert json.loads(done.stderr) == json.loads(report.read_text())
    assert json.loads(done.stderr)["schema"] == "runner-e2e.audit/v1"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_environments_that_may_hold_it() -> None:
    words = ["--selected-id-env", "CASE", "--fail-on-leak", "--allow-environ", "env", "--", "sh", "-c"]
    assert run(*words, "env -u CASE true; :", CASE=ID).returncode == 0
    done = run(*words, "true; /bin/true; :", CASE=ID)
    assert done.returncode == 1
    assert "/bin/true may not hold it" in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["echo"], 125, "put `--` before a command"),
        (["--canary", ID], 125, "no command to audit"),
        (["--"], 125, "no command to audit"),
        (["--no-such-option", "--", "true"], 125, "No such option"),
        (["--linger", "soon", "--", "true"], 125, "soon"),
        (["--canary", "abc", "--", "true"], 125, "its length is 3"),
        (["--canary", ID, "--canary-env", "X", "--", "true"], 125, "exclude each other"),
        (["--canary-env", "ABSENT", "--", "true"], 125, "ABSENT is not set"),
        (["--selected-id-env", "ABSENT", "--", "true"], 125, "ABSENT"),
        (["--fail-on-leak", "--", "true"], 125, "no value to look for"),
        (["--report", "/no/such/place/r.json", "--", "true"], 125, "cannot be written"),
        (["--", "no-such-program"], 127, "was not found"),
        (["--", "/etc/passwd"], 126, "not executable"),
    ],
)
def test_wrong_calls(words: list[str], status: int, text: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (status, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_report_that_cannot_be_written_stops_before_the_command(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    done = run("--report", str(tmp_path / "absent" / "r.json"), "--", "touch", str(mark))
    assert done.returncode == 125
    assert not mark.exists()


def test_a_command_may_be_called_workflow(tmp_path: Path) -> None:
    program = tmp_path / "workflow"
    program.write_text("#!/bin/sh\necho it ran\n")
    program.chmod(0o755)
    done = run("--", "workflow", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (0, "it ran\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["absent.yml", "--input", "id"], "absent.yml does not exist"),
        ([], "Missing argument"),
        (["w.yml", "--input", "id", "--input", "id"], "given twice"),
        (["w.yml", "--input", "=x"], "no name before the ="),
        (["w.yml", "--input", "other"], "no input 'other'"),
        (["w.yml", "--local-repository", "a=b"], "OWNER/NAME@REF=DIR"),
        (["w.yml", "--local-repository", "a/b@c=/no/such"], "is no directory"),
        (["w.yml", "--secret-file", "absent"], "absent does not exist"),
        (["w.yml", "--secret-file", "."], ". is no file"),
        ([".", "--input", "id"], ". is no file"),
        (["w.yml", "--input", "idd"], "did you mean id?"),
        (["w.yml", "--input", "id", "--job", "b"], "known are: a"),
        (["w.yml"], "required and has no default"),
    ],
)
def test_wrong_calls_for_a_workflow(tmp_path: Path, words: list[str], text: str) -> None:
    (tmp_path / "w.yml").write_text(
        "on: {workflow_dispatch: {inputs: {id: {required: true}}}}\n"
        "jobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'true'}]}}\n"
    )
    done = run("workflow", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_help_loads_no_tracer() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "--selected-id-env" in done.stdout
