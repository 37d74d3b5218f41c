from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner_e2e.sandbox.arguments import OPTIONS
from runner_e2e.sandbox.help import asks_for_help, help_text

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "agent_sandbox.py"
QUICK = [sys.executable, "-I", "-S"]


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--hide", "/a", "--help"], ["--help", "--", "true"]])
def test_the_quick_entry_explains_itself(words: list[str]) -> None:
    done = subprocess.run([*QUICK, str(SCRIPT), *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, help_text(), "")


def test_each_option_has_one_line() -> None:
    lines = help_text().splitlines()
    for option in OPTIONS:
        (line,) = (line for line in lines if line.split()[:1] == [option.name])
        assert line.endswith(f" {option.help}")
        assert ("*" in line.removesuffix(option.help)) == option.repeats
        assert option.value in line
    assert max(map(len, lines)) <= 130


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--help"], True),
        (["--quiet", "-h", "--", "x"], True),
        (["--hide=/a", "--help"], True),
        (["--hide", "--help", "--", "x"], False),
        (["--", "agent", "--help"], False),
        (["--hide"], False),
        ([], False),
    ],
)
def test_help_is_asked_for_among_the_options_alone(words: list[str], expected: bool) -> None:
    assert asks_for_help(words) is expected


def test_a_reader_that_is_gone_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*QUICK, str(SCRIPT), "--help"], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (125, "")


def test_a_launch_does_not_load_it() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import runner_e2e.sandbox.command; "
        "sys.exit('runner_e2e.sandbox.help' in sys.modules)"
    )
    source = str(SCRIPT.parent.parent / "src")
    assert subprocess.run([*QUICK, "-c", code, source], check=False).returncode == 0
