"""Launches that pass their limits, as root and as an ordinary user, with each way to make the view.

Whatever a program here tries, it is bounded twice: by the limits under test, and by those that the test sets around the
launch.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import SCRATCH_USER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.sandbox_actors import Actor

WAYS = {
    "usual": [],
    "locked": ["--wall", "locked-mounts"],
    "landlock-alone": ["--without", "mounts"],
    "own-user": ["--keep-user"],
}
# More than any limit here, less than what would be felt outside.
BOUNDS = ("prlimit", "--nproc=400", "--as=8589934592", "--fsize=536870912")

# One that gets no more, because nobody has looked in time, keeps what it has.
EATER = (
    "import time\nheld = []\n"
    "while True:\n"
    "    try:\n"
    "        held.append(bytearray(4 << 20))\n"
    "        held[-1][::4096] = b'x' * 1024\n"
    "    except MemoryError:\n"
    "        time.sleep(60)\n"
)
FORKS = (
    "import os, time\n"
    "made = 0\n"
    "try:\n"
    "    for _ in range(120):\n"
    "        if os.fork() == 0:\n"
    "            time.sleep(30)\n"
    "            os._exit(0)\n"
    "        made += 1\n"
    "except OSError as error:\n"
    "    print(error.strerror, made)\n"
    "else:\n"
    "    time.sleep(5)\n"
)


def limited(
    actor: Actor, limits: Mapping[str, object], program: str, *options: object, shell: bool = False
) -> subprocess.CompletedProcess[str]:
    words = [word for name, value in limits.items() for word in ("--limit", f"{name}={value}")]
    command = ["/bin/sh", "-c", program] if shell else [actor.python, "-I", "-S", "-c", program]
    launch = actor.words(
        "--quiet", "--hide", actor.hidden, "--report", actor.place / "report", *words, *options, command=command
    )
    return actor.run([*BOUNDS, *launch])


def ended(actor: Actor) -> dict[str, str] | None:
    (actor.place / "report").chmod(0o644)
    found: dict[str, str] | None = json.loads((actor.place / "report").read_text())["ended"]
    return found


def seen(done: subprocess.CompletedProcess[str], words: str) -> float:
    """How much was used, as told after *words*: at least the limit, and on a busy machine more."""
    found = re.search(re.escape(words) + r" ([0-9.]+) s", done.stderr)
    assert found, done.stderr
    return float(found[1])


@pytest.fixture(autouse=True)
def _report(actor: Actor) -> None:
    """A place for the report that every actor can write and no agent can."""
    actor.place.chmod(0o777)


@pytest.mark.parametrize("way", WAYS)
def test_memory_of_the_whole_tree(actor: Actor, way: str) -> None:
    program = f"import os\nfor _ in range(2): os.fork()\n{EATER}"
    done = limited(actor, {"memory": "200M"}, program, *WAYS[way])
    assert done.returncode == 124, done.stderr
    assert "sandbox: ended by the limit memory (200 MiB): all used " in done.stderr
    assert (ended(actor) or {})["limit"] == "memory"


@pytest.mark.parametrize("way", WAYS)
def test_processes(actor: Actor, way: str) -> None:
    policy = actor.place / "policy.json"
    policy.write_text(json.dumps({"schema": "runner-e2e.sandbox-policy/v1", "user": SCRATCH_USER}))
    done = limited(actor, {"processes": 40}, FORKS, "--policy", policy, *WAYS[way])
    if actor.root and way in {"own-user", "landlock-alone"}:  # the kernel does not count root's: the watch does
        assert (done.returncode, done.stdout) == (124, ""), done.stderr
        assert "ended by the limit processes (40): there were " in done.stderr
        return
    words = done.stdout.split()
    assert words[:-1] == ["Resource", "temporarily", "unavailable"], done.stderr
    # On its own count exactly; where the kernel counts what the same user runs outside, nearly.
    assert 25 <= int(words[-1]) <= 39
    assert ended(actor) is None


@pytest.mark.parametrize("way", ["usual", "landlock-alone"])
def test_processor_time_of_the_whole_tree(actor: Actor, way: str) -> None:
    program = (
        "import os\nfor _ in range(2):\n    if os.fork() == 0:\n"
        "        while True: pass\n"
        "try:\n    os.wait()\nexcept ChildProcessError: pass\n"
    )
    start = time.monotonic()
    done = limited(actor, {"cpu": 1, "time": 60}, program, *WAYS[way])
    assert done.returncode == 124, done.stderr
    assert seen(done, "ended by the limit cpu (1 s): all used") >= 1
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("way", WAYS)
def test_time_ends_the_tree_and_what_ignores_being_asked(actor: Actor, way: str) -> None:
    name = f"66{os.getpid()}{time.monotonic_ns() % 100000}"
    program = f"trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep {name}' &); while :; do sleep {name}; done"
    start = time.monotonic()
    done = limited(actor, {"time": 2}, program, *WAYS[way], shell=True)
    assert done.returncode == 124
    assert seen(done, "sandbox: ended by the limit time (2 s): it ran") >= 2
    assert 3.5 < time.monotonic() - start < 60
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert name not in listing


def test_time_asks_before_it_kills(actor: Actor) -> None:
    done = limited(actor, {"time": "2s"}, "trap 'echo asked; exit 0' TERM; sleep 30 & wait", shell=True)
    assert (done.returncode, done.stdout) == (124, "asked\n")


def test_file_size(actor: Actor) -> None:
    done = limited(actor, {"file-size": "64K"}, "exec head -c 100000 /dev/zero > big", shell=True)
    assert done.returncode == 153
    assert "ended by the limit file-size (64 KiB): the kernel ended the command" in done.stderr
    assert (actor.work / "big").stat().st_size == 64 << 10
    assert ended(actor) == {"limit": "file-size", "seen": "the kernel ended the command"}


def test_open_files(actor: Actor) -> None:
    program = (
        "import os\nheld = []\ntry:\n    while True: held.append(os.dup(0))\nexcept OSError as e: print(e.strerror)"
    )
    done = limited(actor, {"open-files": 32}, program)
    assert (done.returncode, done.stdout) == (0, "Too many open files\n")
    assert ended(actor) is None


def test_file_systems_in_memory(actor: Actor) -> None:
    program = "for place in ~ /dev/shm; do head -c 3000000 /dev/zero > $place/x || echo $(stat -c %s $place/x); done"
    done = limited(actor, {"scratch": "1M"}, program, shell=True)
    assert done.stdout == "1048576\n1048576\n", done.stderr
    assert "No space left on device" in done.stderr
    done = limited(actor, {"memory": "16M"}, "df -B1 --output=size ~ /dev/shm | tail -2 | tr -d ' '", shell=True)
    assert done.stdout == "8388608\n8388608\n", done.stderr


def test_within_its_limits_a_command_is_left_alone(actor: Actor) -> None:
    limits = {"memory": "1G", "processes": 300, "file-size": "1G", "open-files": 256, "cpu": 60, "time": 60}
    done = limited(actor, limits, "sleep 0.3; echo done; exit 7", shell=True)
    assert (done.returncode, done.stdout, done.stderr) == (7, "done\n", "")
    assert ended(actor) is None
    document = json.loads((actor.place / "report").read_text())
    assert document["resources"] == {**limits, "memory": 1 << 30, "file-size": 1 << 30}


@pytest.mark.parametrize("way", WAYS)
def test_limits_hold_where_the_code_of_the_launcher_is_hidden(actor: Actor, way: str) -> None:
    limits = {"time": 2, "open-files": 32}
    done = limited(actor, limits, "ulimit -n; sleep 30", "--hide", actor.source, *WAYS[way], shell=True)
    assert (done.returncode, done.stdout) == (124, "32\n"), done.stderr


def test_limits_come_from_the_policy_and_options_win(actor: Actor) -> None:
    policy = actor.work / "policy.json"
    limits = {"open-files": 64, "time": "1h"}
    policy.write_text(
        json.dumps({"schema": "runner-e2e.sandbox-policy/v1", "hide": [str(actor.hidden)], "limits": limits})
    )
    command = ["/bin/sh", "-c", "ulimit -n"]
    assert actor.launch("--policy", policy, command=command).stdout == "64\n"
    assert actor.launch("--policy", policy, "--limit", "open-files=80", command=command).stdout == "80\n"
    told = actor.launch("--policy", policy, command=["/bin/true"], quiet=False)
    assert "sandbox: limits: open-files 64, time 3600 s" in told.stderr


@pytest.mark.parametrize(
    ("limit", "words"),
    [("memory", "'' is not a value"), ("memory=1", "less than 8 MiB"), ("speed=1", "there is no limit 'speed'")],
)
def test_bad_limits_are_refused(actor: Actor, limit: str, words: str) -> None:
    done = actor.launch("--limit", limit, command=["/bin/echo", "ran"])
    assert (done.returncode, done.stdout) == (125, "")
    assert words in done.stderr
    assert "fix: " in done.stderr
