"""``runner-e2e sandbox serve``: it becomes the harness, with what the harness had, and says what it cannot do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HARNESS = """
import subprocess, sys
words = [sys.executable, "-I", "-S", sys.argv[1], "--quiet", "--", "/bin/sh", "-c", "echo launched; exit 7"]
done = subprocess.run(words, stdin=subprocess.DEVNULL)
sys.exit(done.returncode)
"""


def serve(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runner_e2e", "sandbox", "serve", *words]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        start_new_session=True,
    )


def test_the_harness_launches_and_its_status_is_passed_on() -> None:
    done = serve("--", sys.executable, "-c", HARNESS, str(ROOT / "scripts" / "agent_sandbox.py"))
    assert (done.stdout, done.stderr, done.returncode) == ("launched\n", "", 7)


def test_the_harness_has_the_signals_of_a_program_that_a_shell_starts() -> None:
    show = ["/bin/grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]
    # Tests may run in the background of a shell, which ignores SIGINT there.
    bare = subprocess.run(show, stdout=subprocess.PIPE, text=True, check=True)
    assert serve("--", *show).stdout == bare.stdout


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 125, "no command is given"),
        (["--nonsense"], 125, "No such option"),
        (["--", "no-such-harness"], 127, "no-such-harness: command not found\n  why: it is not on PATH"),
        (["--", "/no/such/harness"], 127, "why: there is no /no/such/harness"),
        (["--", "/etc/passwd"], 126, "/etc/passwd: cannot be executed\n  why: Permission denied"),
    ],
)
def test_what_cannot_be_started_is_said(words: list[str], status: int, message: str) -> None:
    done = serve(*words)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr
