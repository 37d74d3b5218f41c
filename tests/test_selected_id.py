"""The selected id is taken once, and nothing that shows this process's environment holds it afterwards.

Every case runs in a process of its own: what is erased is the environment of a whole process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runner_e2e.selected_id import is_id

SOURCE = Path(__file__).resolve().parent.parent / "src"
VARIABLE = "PAPERCLIP_RUNNER_E2E_SELECTED_ID"
ID = "chat-features.runner-opencode.local.agents.change-manager"

# argv[1] is a list of NAME=VALUE entries: execve with duplicates, which no dict can express.
EXECUTE = """
#define _GNU_SOURCE
#include <unistd.h>
int main(int argc, char **argv) { return execve(argv[1], (char *[]){argv[1], "-I", "-S", argv[2], 0}, argv + 3); }
"""

PRELUDE = f"""
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from runner_e2e import selected_id
from runner_e2e.errors import RunnerE2EError
VARIABLE = {VARIABLE!r}
def attempt(name=VARIABLE):
    try:
        return selected_id.take(name)
    except RunnerE2EError as error:
        print(f"{{error.exit_code}} {{error}}")
"""


def run(script: str, environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PRELUDE + textwrap.dedent(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_takes_the_id() -> None:
    assert run("print(attempt())", {VARIABLE: ID}) == f"{ID}\n"


def test_a_second_take_is_refused() -> None:
    shown = run("attempt(); attempt()", {VARIABLE: ID})
    assert shown.startswith(f"2 the selected id was already taken from {VARIABLE}\n")
    assert ID not in shown


def test_another_process_finds_nothing_in_any_variable() -> None:
    script = """
    import subprocess
    attempt()
    reader = "import sys; sys.stdout.write(open(f'/proc/{sys.argv[1]}/environ').read().replace(chr(0), chr(10)))"
    subprocess.run([sys.executable, "-I", "-S", "-c", reader, str(os.getpid())], check=True)
    """
    environment = {
        "FIRST": "kept",
        "INPUT_SELECTED_ID": ID,
        VARIABLE: ID,
        "EVENT": f'{{"selected-id": "{ID}"}}',
        "LAST": "kept too",
    }
    lines = [line for line in run(script, environment).split("\n") if line]
    assert [line for line in lines if not line.startswith("LC_CTYPE")] == ["FIRST=kept", "LAST=kept too"]


def test_children_and_getenv_do_not_see_it() -> None:
    script = """
    import subprocess
    attempt()
    assert VARIABLE not in os.environ and "COPY" not in os.environ
    print(subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout)
    """
    shown = run(script, {VARIABLE: ID, "COPY": ID, "KEPT": "yes"})
    assert "KEPT=yes" in shown
    assert ID not in shown
    assert "COPY" not in shown


def test_a_value_set_after_the_start_is_overwritten_on_the_heap() -> None:
    script = """
    import ctypes
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    value = sys.argv[1].encode()[::-1]
    os.environb[VARIABLE.encode()] = value
    os.environb[b"ANOTHER"] = b"before " + value
    places = getenv(VARIABLE.encode()), getenv(b"ANOTHER")
    print(*[value in ctypes.string_at(place, 80) for place in places])
    attempt()
    print(*[value in ctypes.string_at(place, 80) for place in places], VARIABLE in os.environ, "ANOTHER" in os.environ)
    """
    assert run(script, {}, ID[::-1]).splitlines() == ["True True", "False False False False"]


def test_a_value_replaced_after_the_start_counts_and_both_are_erased() -> None:
    script = """
    first = os.environ[VARIABLE]
    os.environ[VARIABLE] = ".".join(["another", "profile", "local", "case"])
    print(attempt())
    print(first in open("/proc/self/environ").read(), VARIABLE in os.environ)
    """
    assert run(script, {VARIABLE: ID}).split() == ["another.profile.local.case", "False", "False"]


def test_a_copy_left_by_a_careless_pop_is_erased_and_reported_as_missing() -> None:
    script = """
    first = os.environ.pop(VARIABLE)
    attempt()
    print(first in open("/proc/self/environ").read())
    """
    shown = run(script, {VARIABLE: ID})
    assert shown.startswith(f"2 {VARIABLE} is not set\n")
    assert shown.endswith("False\n")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("suite.profile.local", "it has 3 of the 4 parts"),
        ("suite.profile.local.qzxv; touch x", "only a-z, 0-9"),
        ("suite.profile.local.$(id)", "only a-z, 0-9"),
        ("suite.profile.local.`id`|x", "only a-z, 0-9"),
        ("suite.profile.local.qzxv\nsecond", "a line break or another control character"),
        ("suite.profile.local.qzxv\n", "a line break or another control character"),
        ("suite.profile.local.\x1b[2Jqzxv", "a line break or another control character"),
        ("suite.profile.local.qzxv ", "begins or ends with a blank"),
        ("suite.profile..qzxv", "none is empty"),
        ("suite.profile.local.-qzxv", "begins with a letter or a digit"),
        ("Suite.profile.local.qzxv", "only a-z, 0-9"),
        ("suite.profile.local.qzäv", "only a-z, 0-9"),
        (f"suite.profile.local.{'x' * 580}", "has 600 bytes"),
    ],
)
def test_a_value_that_is_no_id_is_refused_erased_and_not_shown(value: str, reason: str) -> None:
    script = """
    attempt()
    print("left" if VARIABLE in os.environ or VARIABLE in open("/proc/self/environ").read() else "erased")
    """
    shown = run(script, {VARIABLE: value})
    assert shown.startswith("2 ")
    assert reason in shown
    assert shown.endswith("erased\n")
    if value.strip():
        assert value not in shown
        assert "qzx" not in shown


def test_missing() -> None:
    shown = run("attempt()", {"OTHER": "x"})
    assert shown.splitlines()[0] == f"2 {VARIABLE} is not set"
    assert "fix:" in shown


def test_a_name_that_is_none_is_refused() -> None:
    assert run("attempt('A=B')", {}).startswith("2 the name of the selected id's variable")


@pytest.fixture(scope="module")
def execute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("execute")
    source = directory / "execute.c"
    source.write_text(EXECUTE)
    subprocess.run(["gcc", "-o", directory / "execute", source], check=True)
    return directory / "execute"


@pytest.mark.parametrize("second", [ID, "other.profile.local.case"])
def test_set_twice_is_refused_and_both_are_erased(execute: Path, tmp_path: Path, second: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(PRELUDE + "attempt()\nprint(repr(open('/proc/self/environ').read().strip(chr(0))))\n")
    entries = [f"{VARIABLE}={ID}", "KEPT=1", f"{VARIABLE}={second}"]
    done = subprocess.run(
        [execute, os.path.realpath(sys.executable), script, *entries], capture_output=True, text=True, check=True
    )
    first, *_, last = done.stdout.splitlines()
    assert first == f"2 {VARIABLE} is set twice in the environment of this process"
    assert ID not in done.stdout
    assert second not in done.stdout
    assert "KEPT=1" in last


def test_an_id_on_the_own_command_line_is_refused() -> None:
    shown = run("attempt()", {VARIABLE: ID}, "--id", ID)
    assert shown.startswith("2 the selected id stands on the command line of this process")
    assert ID not in shown


def test_what_cannot_be_erased_is_an_error() -> None:
    script = """
    from pathlib import Path
    class Unwritable(selected_id._InitialBlock):
        def overwrite(self, affected, needle):
            pass
    selected_id._InitialBlock = Unwritable
    attempt()
    """
    shown = run(script, {VARIABLE: ID})
    assert shown.startswith("3 the selected id cannot be erased")
    assert ID not in shown


def test_without_proc_nothing_is_taken() -> None:
    script = """
    from pathlib import Path
    selected_id._SELF = Path("/nonexistent")
    attempt()
    """
    assert run(script, {VARIABLE: ID}).startswith("3 the selected id cannot be erased")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ID, True),
        ("a.b.c.d", True),
        ("a.b.c", False),
        ("a.b.c.d\n", False),
        ("a.b.c." + "d" * 506, True),
        ("a.b.c." + "d" * 507, False),
    ],
)
def test_grammar(text: str, expected: bool) -> None:
    assert is_id(text) is expected
